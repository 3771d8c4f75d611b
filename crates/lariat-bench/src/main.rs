//! Measures Lariat beside others.
//!
//! `cargo run --release -p lariat-bench -- run sync` runs every case of the initial sync, each subject in
//! a process of its own, and prints a table; `--help` lists what there is.

mod bench;
mod meter;
mod options;
mod plot;
mod process;
mod report;

mod cluster;
mod live;
mod pods;
mod queue;
mod server;
mod sql;
mod stage;
mod subjects;

use std::process::ExitCode;

use anyhow::{Result, bail};
use bench::Run;
use options::{Command, Options};
use report::{Report, Row};
use stage::Stage;

fn main() -> ExitCode {
    match Command::parse(std::env::args().skip(1)).and_then(obey) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn obey(command: Command) -> Result<()> {
    match command {
        Command::Help => {
            options::print_usage();
            Ok(())
        }
        Command::Run(options) => run(&options),
        Command::Child { run, url } => child(&run, &url),
        Command::Serve {
            pods,
            modifications,
        } => server::serve(pods, modifications),
        Command::Plot { files } => plot::print(&files),
    }
}

fn run(options: &Options) -> Result<()> {
    let bench = options.bench;
    let runs = (bench.plan)(options);
    if runs.is_empty() {
        bail!("no such run; --help lists what there is");
    }
    let report = Report::begin(options.json, bench.columns);
    let mut stage = Stage::default();
    for run in runs {
        let mut cases: Vec<Vec<Row>> = Vec::new();
        for _ in 0..options.runs {
            let rows = stage.play(&run)?;
            cases.resize_with(rows.len(), Vec::new);
            for (case, row) in cases.iter_mut().zip(rows) {
                // JSON has every run, a table the median.
                if options.json {
                    report.row(&row);
                }
                case.push(row);
            }
        }
        for mut rows in cases.into_iter().filter(|_| !options.json) {
            rows.sort_by(|a, b| (bench.rank)(a).total_cmp(&(bench.rank)(b)));
            report.row(&rows[rows.len() / 2]);
        }
    }
    Ok(())
}

fn child(run: &Run, url: &str) -> Result<()> {
    let rows: Vec<Row> = match run.bench.as_str() {
        "cluster" => vec![cluster::run(run)?],
        "queue" => vec![queue::run(&run.case, &run.subject, run.n)?],
        "sql" => sql::run(run, url)?,
        _ => vec![live::run(run, url)?],
    };
    process::say(&serde_json::to_string(&rows)?)
}
