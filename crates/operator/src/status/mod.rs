//! Status and conditions, which are written only if they change.
//!
//! [`StatusWriter`] computes the change from the newest state, in `diff`, and writes it with the retries of `wire`.
//! [`ConditionUpdate`] and [`Conditions`] are typed conditions; `listed` has the same on JSON. `report` writes the
//! condition for the result of a call, using the `decisions` of the call itself. `applied` remembers the last applies,
//! and `unwritten` limits the logging of failures.

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
