//! Plans: the writes that reconcilers would make, found by dry runs.

mod book;
mod plan;
mod receipt;
mod write;

pub(crate) use book::Book;
pub use plan::Plan;
pub(crate) use receipt::dry_run;
pub use write::PlannedWrite;
