//! Status and conditions, which are written only if they change.

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
