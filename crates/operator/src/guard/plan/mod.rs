//! Plans: the writes that a program would make, found by dry runs.

mod book;
mod plan;
mod receipt;
mod write;

pub(crate) use book::Book;
pub use plan::Plan;
pub(crate) use receipt::PlanGate;
pub use write::PlannedWrite;
