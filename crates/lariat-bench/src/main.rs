//! Measures Lariat beside others.
//!
//! `cargo run --release -p lariat-bench -- run queue` runs every case of the work queue, each subject in
//! a process of its own, and prints a table; `--help` lists what there is.

mod meter;
mod options;
mod queue;
mod report;

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use options::Options;
use report::Row;

fn main() -> ExitCode {
    let outcome = match Options::parse(std::env::args().skip(1)) {
        Ok(Some(options)) => run(&options),
        Ok(None) => {
            options::print_usage();
            Ok(())
        }
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    if let (Some(case), Some(subject), true) = (&options.case, &options.subject, options.child) {
        let row = queue::run(case, subject, options.n)?;
        println!("{}", serde_json::to_string(&row)?);
        return Ok(());
    }
    let chosen = |wanted: &Option<String>, name: &str| wanted.as_deref().is_none_or(|w| w == name);
    let runs: Vec<(&str, &str)> = queue::CASES
        .iter()
        .flat_map(|case| {
            queue::subjects(case)
                .iter()
                .map(|subject| (*case, *subject))
        })
        .filter(|(case, subject)| chosen(&options.case, case) && chosen(&options.subject, subject))
        .collect();
    if runs.is_empty() {
        bail!("no such case or subject; --help lists them");
    }
    let mut report = report::Report::begin(options.json);
    for (case, subject) in runs {
        let mut rows = (0..options.runs)
            .map(|_| in_a_process_of_its_own(options, case, subject))
            .collect::<Result<Vec<Row>>>()?;
        // As JSON every run is told, as a table the one in the middle.
        if !options.json {
            rows.sort_by(|a, b| a.ops_per_s.total_cmp(&b.ops_per_s));
            rows = vec![rows.swap_remove(rows.len() / 2)];
        }
        rows.iter().for_each(|row| report.row(row));
    }
    Ok(())
}

fn in_a_process_of_its_own(options: &Options, case: &str, subject: &str) -> Result<Row> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([
        "run",
        "queue",
        "--child",
        "--case",
        case,
        "--subject",
        subject,
    ]);
    if let Some(n) = options.n {
        command.args(["--n", &n.to_string()]);
    }
    let output = command.output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        bail!("{case} of {subject} failed: {}", text.trim());
    }
    serde_json::from_slice(&output.stdout).with_context(|| format!("{case} of {subject}"))
}
