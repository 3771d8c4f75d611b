//! The checkers: what must hold, on the way and at rest.
//!
//! Each guarantee is one checker. Most look at events as they happen; what can only be said when faults have stopped
//! and nothing is under way is looked at once, at rest.

mod calls;
mod check;
mod checks;
mod due;
mod fairness;
#[cfg(test)]
mod harness;
mod idle;
mod incarnations;
mod lanes;
mod lifecycle;
mod memory;
mod noticed;
mod operator;
mod outage;
mod own_writes;
mod quiet;
mod relists;
mod replicas;
mod requests;
mod states;
mod wanted;

pub(crate) use check::{Check, Findings};
pub(crate) use checks::Checks;
