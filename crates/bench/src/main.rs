//! Measures Lariat beside others.
//!
//! `cargo run --profile dist -p lariat-bench -- run sync` runs every case of the initial sync, each subject in
//! a process of its own, and prints a table: the medians of three runs, with the least and the most. With
//! `--interleave` the subjects take turns. `--help` lists what there is.
//!
//! `sync`, `storm` and `latency` measure the floor too: what it takes to read the same bytes over the same client and
//! throw them away, with a pass over their JSON or without. How far a subject is from it is a ratio of one run, which
//! the speed of the machine does not change.
//!
//! Servers are the embedded one, in a process of its own, or with `--server` a genuine one.

mod arguments;
mod bench;
mod benches;
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
mod target;

use std::process::ExitCode;

use anyhow::{Result, bail};
use arguments::{Arguments, Command};
use bench::Run;
use clap::Parser;
use options::Options;
use report::{Report, Row};
use stage::Stage;
use target::Target;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // If the reader of the output is gone, there is nothing left to do.
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match obey(arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn obey(command: Command) -> Result<()> {
    match command {
        Command::Run(asked) => run(&Options::new(*asked)?),
        Command::Child { run, target } => child(&run, &target),
        Command::Serve {
            pods,
            modifications,
        } => server::serve(pods, modifications.unwrap_or(0)),
        Command::Scrape { address } => subjects::scrape(address),
        Command::Attend { target, pods } => server::genuine::serve(&target, pods),
        Command::Plot { files } => plot::print(&files),
    }
}

fn run(options: &Options) -> Result<()> {
    let bench = options.bench;
    let runs = benches::plan(options);
    if runs.is_empty() {
        bail!("no such run; --help lists what there is");
    }
    let report = Report::begin(options.json, options.runs, bench.columns);
    let mut stage = Stage::new(options.genuine.clone());
    // What takes turns: the subjects of a case, or each run with itself.
    let take_turns =
        |a: &Run, b: &Run| options.interleaves && (&a.case, a.pods) == (&b.case, b.pods);
    for turns in runs.chunk_by(take_turns) {
        let mut cases: Vec<Vec<Vec<Row>>> = turns.iter().map(|_| Vec::new()).collect();
        for _ in 0..options.runs {
            for (cases, run) in cases.iter_mut().zip(turns) {
                // A run may measure several cases, so its rows are kept by case and not by run.
                let rows = stage.play(run)?;
                cases.resize_with(rows.len(), Vec::new);
                for (case, row) in cases.iter_mut().zip(rows) {
                    report.run(&row);
                    case.push(row);
                }
            }
        }
        for case in cases.iter().flatten() {
            report.case(case);
        }
    }
    stage.end()
}

fn child(run: &Run, target: &Target) -> Result<()> {
    let rows: Vec<Row> = match run.bench.as_str() {
        "cluster" => vec![cluster::run(run)?],
        "queue" => vec![queue::run(run)?],
        "sql" => sql::run(run, target)?,
        _ => vec![live::run(run, target)?],
    };
    process::say(&serde_json::to_string(&rows)?)
}
