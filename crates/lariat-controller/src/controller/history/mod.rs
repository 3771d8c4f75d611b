//! What ran, and why.

mod history;
mod older;

pub(crate) use history::History;
pub use history::{CallRecord, RunRecord};
