//! Simulates an operator with a bug, shrinks the failing run, and shows the fix.
//!
//! Run: `cargo run -p lariat-operators --example simulated -- --seeds 50`. It runs on the simulated cluster only, in
//! simulated time. The same seed gives the same run.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Parser;
use lariat_operators::arguments;
use lariat_operators::simulated::{Cleanup, simulation};
use tokio::time::Instant;

/// Runs an operator in virtual time, with everything that goes wrong on a cluster
#[derive(Debug, Parser)]
#[command(
    bin_name = "cargo run -p lariat-operators --example simulated --",
    max_term_width = 100
)]
struct Options {
    /// How many seeds are tried
    #[arg(long, value_name = "N", default_value_t = 50)]
    seeds: u64,
}

fn main() -> ExitCode {
    let options = arguments::<Options>();
    let result = options.and_then(|options| options.map_or(Ok(()), |it| story(it.seeds)));
    if let Err(error) = result {
        eprintln!("error: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn story(seeds: u64) -> Result<()> {
    println!("A handler deletes the Secret when its ConfigMap is deleted. Up to {seeds} seeds:\n");
    let Some(failure) =
        (0..seeds).find_map(|seed| simulation(seed, Cleanup::ByHandler).run().err())
    else {
        bail!("{seeds} seeds do not show the bug: try more with --seeds");
    };
    println!("{failure}");

    println!("The Secret gets an owner reference instead. {seeds} seeds:\n");
    let (mut virtually, mut calls, mut requests) = (Duration::ZERO, 0, 0);
    let began = Instant::now();
    for seed in 0..seeds {
        match simulation(seed, Cleanup::ByOwner).run() {
            Ok(report) => {
                virtually += report.lasted();
                calls += report.calls();
                requests += report.requests();
            }
            Err(failure) => bail!("{failure}"),
        }
    }
    let hours = virtually.as_secs_f64() / 3600.0;
    println!(
        "no Secret was left behind in {hours:.1} virtual hours ({:.1?} of yours), {calls} calls and {requests} requests",
        began.elapsed()
    );
    Ok(())
}
