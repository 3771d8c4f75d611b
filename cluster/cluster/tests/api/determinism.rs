//! From one seed a cluster does the same every time, byte by byte, in this process and in another.
//!
//! `LARIAT_DETERMINISM_SEED` repeats a run.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use lariat_core::clock;
use tokio::runtime::Builder;

use crate::determinism_steps::transcript;

/// How many steps a run has; a step is one request or some that meet.
const STEPS: usize = 400;

/// Names the file to which another process writes what it was answered.
const TRANSCRIPT: &str = "LARIAT_DETERMINISM_TRANSCRIPT";

/// How tokio makes its own choices.
#[derive(Clone, Copy)]
enum Choices {
    /// They come from the seed, as far as tokio was built to take one.
    Seeded,
    ByChance,
}

fn seed() -> u64 {
    let given = env::var("LARIAT_DETERMINISM_SEED").ok();
    let given = given.and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| fastrand::u64(..));
    println!("LARIAT_DETERMINISM_SEED={seed}");
    seed
}

/// Runs a cluster and its clients in a runtime of their own, and returns what they were answered, line by line.
fn run(seed: u64, choices: Choices) -> Vec<String> {
    let start = SystemTime::UNIX_EPOCH + Duration::from_millis(1_800_000_000_123);
    let _simulated = clock::simulate(move || start);
    let mut runtime = Builder::new_current_thread();
    runtime.enable_all().start_paused(true);
    if let Choices::Seeded = choices {
        take_seed(&mut runtime, seed);
    }
    let runtime = runtime.build().expect("a runtime starts");
    runtime.block_on(transcript(seed, STEPS))
}

fn take_seed(runtime: &mut Builder, seed: u64) {
    #[cfg(tokio_unstable)]
    runtime.rng_seed(tokio::runtime::RngSeed::from_bytes(&seed.to_le_bytes()));
    #[cfg(not(tokio_unstable))]
    let _ = (runtime, seed);
}

fn is_seeded() -> bool {
    cfg!(tokio_unstable)
}

/// Checks that two runs are the same, and shows the first line in which they differ.
#[track_caller]
fn check(seed: u64, one: &[String], other: &[String]) {
    let differs = one.iter().zip(other).position(|(one, other)| one != other);
    if let Some(at) = differs {
        let before = one[at.saturating_sub(5)..at].join("\n");
        panic!(
            "seed {seed}, line {at}, behind\n{before}\n\n{}\n\nis not\n\n{}",
            one[at], other[at]
        );
    }
    assert_eq!(one.len(), other.len(), "seed {seed}");
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort_unstable();
    lines
}

#[test]
fn a_seed_leads_to_the_same_bytes() {
    let seed = seed();
    let one = run(seed, Choices::Seeded);
    assert!(one.len() > STEPS, "{} lines", one.len());
    let other = run(seed, Choices::Seeded);
    // Without a seed tokio chooses which watch wakes first.
    if is_seeded() {
        check(seed, &one, &other);
    } else {
        check(seed, &sorted(one), &sorted(other));
    }
}

#[test]
fn every_client_sees_the_same_whatever_tokio_chooses() {
    let seed = seed();
    let one = sorted(run(seed, Choices::Seeded));
    let other = sorted(run(seed, Choices::ByChance));
    check(seed, &one, &other);
}

#[test]
fn another_seed_leads_to_other_bytes() {
    let seed = seed();
    assert_ne!(run(seed, Choices::Seeded), run(!seed, Choices::Seeded));
}

#[test]
fn a_seed_leads_to_the_same_bytes_in_every_process() {
    let seed = seed();
    let lines = sorted(run(seed, Choices::Seeded)).join("\n");
    if let Ok(file) = env::var(TRANSCRIPT) {
        fs::write(file, lines).expect("the target directory can be written");
        return;
    }
    let name = format!("determinism-{}", std::process::id());
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let name = "determinism::a_seed_leads_to_the_same_bytes_in_every_process";
    let mut process = Command::new(env::current_exe().expect("this process has a program"));
    process.args(["--exact", name]).env(TRANSCRIPT, &file);
    process.env("LARIAT_DETERMINISM_SEED", seed.to_string());
    let output = process.output().expect("the program starts again");
    assert!(output.status.success(), "{output:?}");
    let others = fs::read_to_string(&file).expect("the other process has written it");
    fs::remove_file(&file).expect("it is there");
    let split = |text: &str| text.lines().map(str::to_owned).collect::<Vec<String>>();
    check(seed, &split(&lines), &split(&others));
}
