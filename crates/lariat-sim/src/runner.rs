//! The command `simulate`: many seeds, on all processors.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::simulation::Simulation;

const USAGE: &str = "\
Runs the simulation that Lariat is tried with, seed after seed.

Usage: simulate [--seeds N] [--minutes M] [--first SEED] [--seed SEED] [--threads N]
                [--stop-at-first] [--no-shrink] [--logs] [--trace]

  --seeds N          runs N seeds (default 2000)
  --minutes M        runs for M minutes instead
  --first SEED       the first seed (default 0); the others follow it
  --seed SEED        runs one seed, and prints its trace if --trace is given
  --threads N        runs N seeds at a time (default: the number of processors)
  --stop-at-first    stops at the first seed that fails
  --no-shrink        shows failures as they were found
  --logs             puts warnings of the libraries into the trace

Exit code: 0 if everything held, 1 if a seed failed, 2 for wrong options.
";

#[derive(Debug, Clone)]
struct Options {
    seeds: u64,
    limit: Option<Duration>,
    first: u64,
    threads: usize,
    stops: bool,
    shrinks: bool,
    logs: bool,
    trace: bool,
}

fn options() -> Result<Options, lexopt::Error> {
    use lexopt::prelude::*;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut options = Options {
        seeds: 2000,
        limit: None,
        first: 0,
        threads,
        stops: false,
        shrinks: true,
        logs: false,
        trace: false,
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("seeds") => options.seeds = parser.value()?.parse()?,
            Long("minutes") => {
                let minutes: f64 = parser.value()?.parse()?;
                options.limit = Duration::try_from_secs_f64(minutes * 60.0).ok();
                options.seeds = u64::MAX;
            }
            Long("first") => options.first = parser.value()?.parse()?,
            Long("seed") => {
                options.first = parser.value()?.parse()?;
                options.seeds = 1;
            }
            Long("threads") => options.threads = parser.value()?.parse()?,
            Long("stop-at-first") => options.stops = true,
            Long("no-shrink") => options.shrinks = false,
            Long("logs") => options.logs = true,
            Long("trace") => options.trace = true,
            _ => return Err(argument.unexpected()),
        }
    }
    Ok(options)
}

/// Runs the command with the arguments of the process.
#[must_use]
pub fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprint!("{error}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    run(&options)
}

#[derive(Default)]
struct Totals {
    runs: u64,
    calls: u64,
    requests: u64,
    commits: u64,
    steps: u64,
    virtual_seconds: u64,
    failed: Vec<u64>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "it measures how many seeds run in a minute of real time"
)]
fn run(options: &Options) -> ExitCode {
    let began = Instant::now();
    let next = AtomicU64::new(options.first);
    let stopped = AtomicBool::new(false);
    let totals = Mutex::new(Totals::default());
    let end = options.first.saturating_add(options.seeds);
    std::thread::scope(|scope| {
        for _ in 0..options.threads.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let is_late = options.limit.is_some_and(|limit| began.elapsed() >= limit);
                    if seed >= end || is_late || stopped.load(Ordering::Relaxed) {
                        return;
                    }
                    if !one(seed, options, &totals) && options.stops {
                        stopped.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let totals = totals.into_inner();
    let took = began.elapsed();
    println!(
        "{} seeds in {:.1} s ({:.0} a minute): {} steps, {} commits, {} requests, {} calls, {} virtual hours",
        totals.runs,
        took.as_secs_f64(),
        totals.runs as f64 / took.as_secs_f64() * 60.0,
        totals.steps,
        totals.commits,
        totals.requests,
        totals.calls,
        totals.virtual_seconds / 3600
    );
    if totals.failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("{} seeds failed: {:?}", totals.failed.len(), totals.failed);
    ExitCode::FAILURE
}

/// Runs one seed; returns whether everything held.
fn one(seed: u64, options: &Options, totals: &Mutex<Totals>) -> bool {
    let simulation = Simulation::of_lariat(seed)
        .shrinks(options.shrinks)
        .logs(options.logs);
    let result = simulation.run();
    let mut totals = totals.lock();
    totals.runs += 1;
    match result {
        Ok(report) => {
            totals.calls += report.calls();
            totals.requests += report.requests();
            totals.commits += report.commits();
            totals.steps += report.steps() as u64;
            totals.virtual_seconds += report.lasted().as_secs();
            if options.trace {
                for line in report.trace().lines() {
                    println!("{line}");
                }
            }
            true
        }
        Err(failure) => {
            totals.failed.push(seed);
            for violation in failure.violations().iter().take(1) {
                println!("seed {seed}: {}: {}", violation.check, violation.what);
            }
            println!("{failure}");
            println!("repeat it with: scripts/simulate.sh --seed {seed}\n");
            if options.trace {
                for line in failure.trace().lines() {
                    println!("{line}");
                }
            }
            false
        }
    }
}
