//! Simulates an operator with a bug, shrinks the failing run, and shows the fix.
//!
//! Run: `cargo run --example simulated -- --seeds 50`. It runs on the simulated cluster only, in simulated time. The
//! same seed gives the same run.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use lariat_examples::simulated::{Cleanup, simulation};
use lexopt::prelude::*;
use tokio::time::Instant;

const USAGE: &str = "\
Runs an operator in virtual time, with everything that goes wrong on a cluster.

Usage: simulated [--seeds N]

  --seeds N   how many seeds are tried (default 50)
  --help      shows this";

fn main() -> ExitCode {
    let result = seeds().and_then(|seeds| seeds.map_or(Ok(()), story));
    if let Err(error) = result {
        eprintln!("error: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Returns the number of seeds; none if help was requested.
fn seeds() -> Result<Option<u64>> {
    let mut seeds = 50;
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("seeds") => seeds = number(&mut parser)?,
            Long("help") | Short('h') => {
                println!("{USAGE}");
                return Ok(None);
            }
            other => bail!("{}; --help lists all options", other.unexpected()),
        }
    }
    Ok(Some(seeds))
}

fn number(parser: &mut lexopt::Parser) -> Result<u64> {
    let value = parser.value()?;
    value
        .parse()
        .map_err(|error: lexopt::Error| anyhow!("--seeds: {error}"))
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
