//! Decides from its state alone whether an object is ready.
//!
//! `generic` has the rules for all kinds, which come first. `kinds` chooses the rule of a built-in kind, which is in
//! `workloads` (kinds with replicas) or `others`.
//!
//! **Invariant:** the decision uses no clock, no cache and no request.

mod fields;
mod generic;
mod kinds;
mod others;
mod readiness;
#[cfg(test)]
mod tests;
mod workloads;

pub use readiness::Readiness;
