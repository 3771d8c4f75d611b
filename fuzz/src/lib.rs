//! Fuzz targets of the framework, and the choice among all: functions that check what must hold for any bytes.
//!
//! A target panics where something does not hold. `scripts/fuzz.sh` runs the targets under libFuzzer, those of the API
//! server in `cluster/fuzz` too; the tests of the two packages run them over their seed corpora and over kept findings.
//! `docs/fuzzing.md` lists them.

#[cfg(fuzzing)]
mod panics;
mod reference;
mod targets;

use lariat_cluster_fuzz::Target;

#[cfg(fuzzing)]
pub use panics::{quiet_panics, run};
pub use targets::TARGETS;

/// Returns all targets, those of the API server too.
pub fn targets() -> impl Iterator<Item = Target> {
    let all = TARGETS.iter().chain(lariat_cluster_fuzz::TARGETS);
    all.copied()
}

/// Returns the target of a name.
#[must_use]
pub fn target(name: &str) -> Option<Target> {
    targets().find(|each| each.name == name)
}
