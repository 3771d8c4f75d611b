//! Fuzz targets of the embedded API server: functions that check what must hold for any bytes.
//!
//! A target panics where something does not hold. The package `lariat-fuzz` in `fuzz/` has those of the framework, and
//! runs all under libFuzzer. `docs/fuzzing.md` lists them.

pub mod corpus;
pub mod input;

mod cluster;
mod reference;
mod target;
mod targets;

pub use target::Target;
pub use targets::{TARGETS, write_seeds};
