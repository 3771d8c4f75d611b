//! Status and conditions: what a reconciler says about its object, written when it changes.

mod applied;
mod condition;
mod decisions;
mod diff;
mod error;
mod listed;
mod methods;
mod report;
mod unwritten;
mod writer;

pub(crate) use applied::Applied;
pub use condition::{ConditionError, ConditionUpdate, Conditions};
pub use error::StatusError;
pub(crate) use report::Report;
pub use writer::StatusWriter;
