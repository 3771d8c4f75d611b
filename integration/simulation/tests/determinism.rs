//! The same seed gives the same run, byte by byte.
//!
//! It holds with `--cfg tokio_unstable` alone, which `.cargo/config.toml` sets: without it tokio draws the branch that
//! `select!` polls first, and the receiver that `watch` wakes first, from a generator it seeds at random.

use std::thread;

use lariat_sim::{Simulation, Trace};
use lariat_simulation::{of_lariat, of_replicas};

/// Runs a seed once; a run in which something does not hold has to be repeatable, too.
fn trace(seed: u64) -> Trace {
    trace_of(of_lariat(seed).simulation)
}

/// Says whether tokio's scheduler takes a seed.
fn is_seeded() -> bool {
    cfg!(tokio_unstable)
}

fn trace_of(simulation: Simulation) -> Trace {
    assert!(
        is_seeded(),
        "build with --cfg tokio_unstable: RUSTFLAGS hides the flags of .cargo/config.toml"
    );
    match simulation.shrinks(false).run() {
        Ok(report) => report.trace().clone(),
        Err(failure) => failure.trace().clone(),
    }
}

/// Runs ten seeds twice in one thread, and once in a thread of its own.
fn check_ten(first: u64) {
    for seed in first..first + 10 {
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

/// Makes a test of every ten seeds, for tests run beside each other.
macro_rules! tens_repeat_byte_by_byte {
    ($($name:ident from $first:literal,)*) => {$(
        #[test]
        fn $name() {
            check_ten($first);
        }
    )*};
}

tens_repeat_byte_by_byte! {
    seeds_0_to_9_repeat_byte_by_byte from 0,
    seeds_10_to_19_repeat_byte_by_byte from 10,
    seeds_20_to_29_repeat_byte_by_byte from 20,
    seeds_30_to_39_repeat_byte_by_byte from 30,
    seeds_40_to_49_repeat_byte_by_byte from 40,
    seeds_50_to_59_repeat_byte_by_byte from 50,
    seeds_60_to_69_repeat_byte_by_byte from 60,
    seeds_70_to_79_repeat_byte_by_byte from 70,
    seeds_80_to_89_repeat_byte_by_byte from 80,
    seeds_90_to_99_repeat_byte_by_byte from 90,
}

#[test]
fn replicas_repeat_byte_by_byte() {
    let trace = |seed| trace_of(of_replicas(seed).simulation);
    for seed in 0..6 {
        let first = trace(seed);
        let elsewhere = thread::spawn(move || trace(seed));
        let elsewhere = elsewhere.join().expect("a run ends");
        if let Err(difference) = first.compare(&elsewhere) {
            panic!("seed {seed} of replicas differs when it is run again: {difference}");
        }
    }
}

#[test]
fn other_seeds_lead_to_other_runs() {
    assert_ne!(trace(1).hash(), trace(2).hash());
}
