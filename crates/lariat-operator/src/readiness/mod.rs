//! Whether objects are ready, read from their state alone.
//!
//! `kinds` picks the rule of a kind; `workloads` and `others` have the rules of built-in kinds, `generic` those of all.
//! **Invariant:** nothing here knows the time, a cache or a request.

mod fields;
mod generic;
mod kinds;
mod others;
mod readiness;
#[cfg(test)]
mod tests;
mod workloads;

pub use readiness::Readiness;
