//! Telling what became of calls.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};

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

/// From this delay on every failure is told.
const SLOW: Duration = Duration::from_secs(1);

/// Logs the failures of a run together, each with the name of its handler.
pub(super) fn log(kind: &Gvk, key: &ObjectKey, calls: &[CallRecord]) {
    let failed = |call: &&CallRecord| call.ended.is_failure() && call.again.is_some();
    let failures: Vec<&CallRecord> = calls.iter().filter(failed).collect();
    if failures.is_empty() {
        return;
    }
    let one = |call: &&CallRecord| {
        let error = call.error.as_deref().unwrap_or_default();
        format!("handler {}: {error}", call.handler)
    };
    let error = failures.iter().map(one).collect::<Vec<_>>().join(", ");
    let attempt = failures.iter().map(|call| call.attempt).max();
    let retry_in = failures.iter().filter_map(|call| call.again).min();
    let attempt = attempt.unwrap_or(1);
    // The first attempts come within moments, and mostly say the same.
    let is_worth_a_line = attempt.is_power_of_two() || retry_in.is_some_and(|delay| delay >= SLOW);
    let retry_in = format!("{:?}", retry_in.unwrap_or_default());
    // The next attempt sees the new state, so a conflict is everyday life and not worth a warning.
    if failures.iter().all(|call| call.is_conflict) {
        tracing::debug!(%kind, %key, error, attempt, retry_in, "a conflict, to be tried again");
    } else if !is_worth_a_line {
        tracing::debug!(%kind, %key, error, attempt, retry_in, "failed, to be tried again");
    } else {
        tracing::warn!(%kind, %key, error, attempt, retry_in, "failed, to be tried again");
    }
}
