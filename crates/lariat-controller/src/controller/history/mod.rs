//! What ran, and why.

mod history;
mod older;
mod record;

pub(crate) use history::History;
pub use record::{CallRecord, RunRecord};
