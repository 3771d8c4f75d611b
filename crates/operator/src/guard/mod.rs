//! Guards, which limit the writes of handlers, and plans, which record them as dry runs.
//!
//! A [`Guard`] has `rules` ([`Budget`]s for some verbs) and a `state` (counts in a sliding `window`, and writes that
//! were `announced` by a deletion). `gate` asks it before each write; a refused write gets an error of `refused`.
//! `plan` turns writes into dry runs, and collects what they would change.

mod announced;
mod budget;
mod gate;
mod guard;
mod plan;
mod refused;
mod rules;
mod state;
#[cfg(test)]
mod tests;
mod window;

pub use budget::Budget;
pub(crate) use gate::{announce, judge};
pub use guard::Guard;
pub(crate) use plan::{Book, PlanGate};
pub use plan::{Plan, PlannedWrite};
pub use state::{GuardState, Trip};
