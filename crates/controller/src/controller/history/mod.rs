//! The history of runs: which handlers were called, why, and with which result.
//!
//! `record` has the public records, `history` the last runs of a kind, and `older` the last few runs of each key beyond
//! those, so that busy keys do not evict the runs of quiet ones.

mod history;
mod older;
mod record;

pub(crate) use history::History;
pub use record::{CallRecord, RunRecord};
