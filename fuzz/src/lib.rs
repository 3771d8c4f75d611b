//! Fuzz targets of Lariat: functions that check what must hold for any bytes.
//!
//! A target panics where something does not hold. `scripts/fuzz.sh` runs the targets under libFuzzer; the tests of this
//! package run them over their seed corpora and over kept findings. `docs/fuzzing.md` lists them.

mod cluster;
mod input;
#[cfg(fuzzing)]
mod panics;
mod reference;
mod targets;

#[cfg(fuzzing)]
pub use panics::{quiet_panics, run};
pub use targets::{TARGETS, Target, seeds, target};
