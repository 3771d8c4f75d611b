//! The history of runs: what ran, why, and with which result.

mod history;
mod older;
mod record;

pub(crate) use history::History;
pub use record::{CallRecord, RunRecord};
