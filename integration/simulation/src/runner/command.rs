//! Runs of many seeds.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use lariat_sim::internals::{ChaosExt, SimulationExt};
use lariat_sim::{Chaos, Failure, Report, Simulation, Trace};
use parking_lot::Mutex;

use super::options::Options;
use super::paint::paint;
use crate::coverage::Coverage;
use crate::trial::{Trial, of_lariat, of_replicas};

/// From how many seeds on everything must have met everything.
// With fewer seeds a rare combination may be missing by chance.
const COVERED: u64 = 2000;

/// The number of failures that are shrunk and shown in full; others have one line.
const SHOWN: usize = 3;

/// The factor by which a soak is slower.
///
/// It has many objects, and each thing that happens may concern all of them.
const SOAK_PACE: u32 = 10;

/// Runs the command with the arguments of the process.
#[must_use]
pub fn main() -> ExitCode {
    // Simulated programs misbehave on purpose, and `--logs` puts what they log into the trace.
    let none = tracing::subscriber::NoSubscriber::default();
    // A subscriber that is there already is as good.
    drop(tracing::subscriber::set_global_default(none));
    match Options::try_parse() {
        Ok(options) => Runner::new(&options).run(),
        Err(error) => {
            // It may be the help that was asked for. If its reader is gone, there is nothing left to do.
            let _ = error.print();
            u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
        }
    }
}

struct Runner<'a> {
    options: &'a Options,
    began: Instant,
    next: AtomicU64,
    is_stopped: AtomicBool,
    totals: Mutex<Totals>,
}

#[derive(Default)]
struct Totals {
    runs: u64,
    calls: u64,
    requests: u64,
    commits: u64,
    steps: u64,
    virtual_seconds: u64,
    coverage: Coverage,
    failed: Vec<u64>,
}

impl<'a> Runner<'a> {
    #[expect(
        clippy::disallowed_methods,
        reason = "it measures how many seeds run in a minute of real time"
    )]
    fn new(options: &'a Options) -> Self {
        Self {
            options,
            began: Instant::now(),
            next: AtomicU64::new(options.first()),
            is_stopped: AtomicBool::new(false),
            totals: Mutex::default(),
        }
    }

    fn run(self) -> ExitCode {
        std::thread::scope(|scope| {
            for _ in 0..self.options.threads() {
                scope.spawn(|| self.work());
            }
        });
        self.conclude()
    }

    /// Runs one seed after the other.
    fn work(&self) {
        let end = self.options.first().saturating_add(self.options.seeds());
        loop {
            let limit = self.options.limit;
            let is_late = limit.is_some_and(|limit| self.began.elapsed() >= limit);
            if is_late || self.is_stopped.load(Ordering::Relaxed) {
                return;
            }
            // Threads take the next seed each, so one long run does not hold back the others.
            let seed = self.next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return;
            }
            self.one(seed);
        }
    }

    fn one(&self, seed: u64) {
        let Trial {
            simulation,
            coverage,
        } = self.trial(seed);
        let result = simulation.clone().shrinks(false).run();
        self.totals.lock().coverage += &coverage.lock();
        // Shrinking takes up to a minute, so `failed` does it for the first failures only.
        match result {
            Ok(report) => self.held(&report),
            Err(failure) => self.failed(&simulation, failure),
        }
    }

    fn trial(&self, seed: u64) -> Trial {
        let mut trial = if self.options.replicas {
            of_replicas(seed)
        } else {
            of_lariat(seed)
        };
        trial.simulation = trial.simulation.logs(self.options.logs);
        if self.options.soaks && !self.options.replicas {
            let chaos = Chaos::default().pace(SOAK_PACE);
            let chaos = chaos.duration(self.options.lasts);
            trial.simulation = trial.simulation.chaos(chaos).filled(self.options.objects);
        }
        trial
    }

    fn held(&self, report: &Report) {
        let mut totals = self.totals.lock();
        totals.runs += 1;
        totals.calls += report.calls();
        totals.requests += report.requests();
        totals.commits += report.commits();
        totals.steps += report.steps() as u64;
        totals.virtual_seconds += report.lasted().as_secs();
        if self.options.trace {
            show(report.trace());
        }
    }

    fn failed(&self, simulation: &Simulation, failure: Box<Failure>) {
        let is_shown = {
            let mut totals = self.totals.lock();
            totals.runs += 1;
            totals.failed.push(failure.seed());
            totals.failed.len() <= SHOWN
        };
        if self.options.stops {
            self.is_stopped.store(true, Ordering::Relaxed);
        }
        // Without the lock, so that other threads go on with their seeds.
        let failure = if is_shown && self.options.shrinks {
            // Runs again, and reduces the plan if it fails as before.
            simulation.run().err().unwrap_or(failure)
        } else {
            failure
        };
        // One failure at a time on the screen.
        let _totals = self.totals.lock();
        if is_shown {
            paint(&failure.to_string());
        } else {
            let text = failure.to_string();
            let few: Vec<&str> = text.lines().take(2).collect();
            paint(&few.join("\n"));
        }
        println!(
            "repeat it with: {} (--trace for every line)\n",
            self.repeat(failure.seed())
        );
        if self.options.trace {
            show(failure.trace());
        }
    }

    fn repeat(&self, seed: u64) -> String {
        let soak = if self.options.soaks { "--soak " } else { "" };
        let replicas = if self.options.replicas {
            "--replicas "
        } else {
            ""
        };
        format!("scripts/simulate.sh {replicas}{soak}--seed {seed}")
    }

    fn conclude(self) -> ExitCode {
        let (totals, took) = (self.totals.into_inner(), self.began.elapsed());
        // What goes wrong for replicas is chosen for their leases, and need not meet everything.
        if totals.runs > 1 && !self.options.replicas {
            println!("{}\n", totals.coverage);
        }
        println!("{}", totals.show(took));
        let counted = self.options.counted();
        if let Some(seeds) = counted.filter(|seeds| totals.runs < *seeds) {
            println!("time was up after {} of {seeds} seeds", totals.runs);
        }
        let missing = totals.coverage.missing();
        // A combination that never happens any more is a failure: it would hide that the plans have become harmless.
        let is_uncovered = !self.options.replicas && totals.runs >= COVERED && !missing.is_empty();
        if is_uncovered {
            println!("never met: {}", missing.join(", "));
        }
        if !totals.failed.is_empty() {
            println!("{} seeds failed: {:?}", totals.failed.len(), totals.failed);
        }
        ExitCode::from(u8::from(is_uncovered || !totals.failed.is_empty()))
    }
}

impl Totals {
    fn show(&self, took: Duration) -> String {
        let seconds = took.as_secs_f64();
        format!(
            "{} seeds in {seconds:.1} s ({:.0} a minute): {} steps, {} commits, {} requests, {} calls, {} virtual hours",
            self.runs,
            self.runs as f64 / seconds * 60.0,
            self.steps,
            self.commits,
            self.requests,
            self.calls,
            self.virtual_seconds / 3600
        )
    }
}

fn show(trace: &Trace) {
    for line in trace.lines() {
        paint(line);
    }
}
