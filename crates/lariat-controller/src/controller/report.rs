//! Telling what became of calls.

use std::sync::Arc;
use std::time::Duration;

use super::history::CallRecord;
use crate::lane::{Ended, Lane};

/// How one call went.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report {
    pub(super) ended: Ended,
    pub(super) attempt: u32,
    pub(super) took: Duration,
    /// The API server refused a write because the object had changed since.
    pub(super) is_conflict: bool,
}

impl Report {
    pub(super) fn record(
        self,
        lane: &Lane,
        error: Option<Arc<str>>,
        again: Option<Duration>,
    ) -> CallRecord {
        CallRecord {
            handler: Arc::clone(lane.name()),
            ended: self.ended,
            took: self.took,
            attempt: self.attempt,
            is_conflict: self.is_conflict,
            error,
            again,
        }
    }
}
