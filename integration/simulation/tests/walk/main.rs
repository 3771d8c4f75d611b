//! Random walks of a program with warm files, sources of its own and relations, which the simulator does not have.
//!
//! A walk of a seed has writes of the program and of others, faults, selections, relists, pauses, stops that end or are
//! dropped, outages, restored backups, and new factories over the same folder. Then everything is quiet, and cache,
//! handler, relation and server are compared. Warm files are written on real threads, so a seed repeats its operations, and not each interleaving.

mod compare;
mod faults;
mod objects;
mod outages;
mod program;
mod walk;

use std::panic::{AssertUnwindSafe, catch_unwind};

use walk::Walk;

/// The number of seeds, unless `LARIAT_WALK_SEEDS` says another; they begin with `LARIAT_WALK_SEED`.
const SEEDS: u64 = 40;

#[test]
fn random_walk_ends_with_equal_cache_handler_and_server() {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let first = number("LARIAT_WALK_SEED").unwrap_or(1);
    let count = number("LARIAT_WALK_SEEDS").unwrap_or(SEEDS);
    let failed: Vec<String> = (first..first + count).filter_map(failure).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// Walks by a seed; returns the violations and the last operations before them, if there are any.
fn failure(seed: u64) -> Option<String> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build();
    let runtime = runtime.expect("a runtime can be built");
    match catch_unwind(AssertUnwindSafe(|| runtime.block_on(Walk::run(seed)))) {
        Ok(violations) if violations.is_empty() => None,
        Ok(violations) => Some(format!("seed {seed}: {}", violations.join("\n"))),
        Err(_) => Some(format!("seed {seed} panicked")),
    }
}
