//! The same seed gives the same run, byte by byte.
//!
//! It holds with `--cfg tokio_unstable` alone, which `.cargo/config.toml` sets: without it tokio draws the branch that
//! `select!` polls first, and the receiver that `watch` wakes first, from a generator it seeds at random.
#![cfg(tokio_unstable)]

use std::thread;

use lariat_sim::{Simulation, Trace};

/// Runs a seed once; a run in which something does not hold has to be repeatable, too.
fn trace(seed: u64) -> Trace {
    match Simulation::of_lariat(seed).shrinks(false).run() {
        Ok(report) => report.trace().clone(),
        Err(failure) => failure.trace().clone(),
    }
}

/// Runs seeds twice in one thread, one after the other, and once in a thread of its own.
fn check(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let first = trace(seed);
        assert!(first.count() > 0, "seed {seed} has no trace");
        let elsewhere = thread::spawn(move || trace(seed));
        let elsewhere = elsewhere.join().expect("a run ends");
        for (again, how) in [(trace(seed), "again"), (elsewhere, "in another thread")] {
            if let Err(difference) = first.compare(&again) {
                panic!("seed {seed} differs when it is run {how}: {difference}");
            }
        }
    }
}

#[test]
fn fifty_seeds_repeat_byte_by_byte() {
    check(0..50);
}

#[test]
fn fifty_other_seeds_repeat_byte_by_byte() {
    check(50..100);
}

#[test]
fn other_seeds_lead_to_other_runs() {
    assert_ne!(trace(1).hash(), trace(2).hash());
}
