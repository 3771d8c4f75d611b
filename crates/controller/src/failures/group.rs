//! Counts the failures of one handler with the same error, and decides when they are logged.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};
use tokio::time::Instant;

use super::Failed;
use crate::notices;

/// The least time between the first line about an error and the second. It doubles with each line.
const FIRST_INTERVAL: Duration = Duration::from_secs(1);

/// The longest least time between two lines about an error.
const LONGEST_INTERVAL: Duration = Duration::from_secs(600);

/// The delay between the success of the last failing key and its log line.
///
/// Other keys may begin to fail in the meantime; then nothing has recovered.
const RECOVERY: Duration = Duration::from_secs(1);

/// The least time after which an error that is over counts as new.
const QUIET: Duration = Duration::from_secs(60);

/// The number of keys a line names as examples.
const EXAMPLES: usize = 3;

/// The failures of one handler with the same error; a copy of it is a line of the log.
#[derive(Clone, Default)]
pub(super) struct Group {
    error: Arc<str>,
    /// The number of tracked keys that fail now.
    pub(super) failing: usize,
    /// The first keys with a failure that is due to be logged; at most [`EXAMPLES`].
    pub(super) examples: Vec<ObjectKey>,
    /// The number of failures since the last line.
    pub(super) failures: u64,
    /// When the last failing key succeeded; none while keys fail, and once that is logged.
    pub(super) recovered: Option<Instant>,
    /// When the next line about failures may be logged; none before the first.
    next: Option<Instant>,
    /// The time between the last line and the next.
    interval: Duration,
}

impl Group {
    /// Counts a failure; returns whether it is logged now, in a line of its own.
    pub(super) fn failed(&mut self, failed: &Failed<'_>, is_due: bool, now: Instant) -> bool {
        (self.error, self.recovered) = (Arc::clone(failed.error), None);
        if is_due && self.examples.is_empty() && self.next.is_none_or(|next| next <= now) {
            self.logged(now);
            return true;
        }
        self.failures += 1;
        if is_due && self.examples.len() < EXAMPLES && !self.examples.contains(failed.key) {
            self.examples.push(failed.key.clone());
        }
        false
    }

    /// Removes a key; `success` says that it has succeeded.
    pub(super) fn release(&mut self, success: Option<Instant>) {
        self.failing = self.failing.saturating_sub(1);
        self.recovered = success.filter(|_| self.failing == 0);
    }

    /// Returns when a line is due, or when the group is over; none as long as all is logged and keys fail.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.recovered {
            // Failures that are not logged yet are logged with the recovery. So a key that fails and recovers by turns
            // is logged as rarely as a key that only fails.
            _ if !self.examples.is_empty() => self.next,
            Some(at) => Some(at + RECOVERY),
            None if self.failing == 0 => self.next.map(|next| next + QUIET),
            None => None,
        }
    }

    /// Returns what is to be logged, if anything.
    pub(super) fn take_line(&mut self, now: Instant) -> Option<Self> {
        let is_any = self.recovered.is_some() || !self.examples.is_empty();
        let line = is_any.then(|| self.clone())?;
        self.logged(now);
        Some(line)
    }

    fn logged(&mut self, now: Instant) {
        self.examples.clear();
        self.interval = (self.interval * 2).clamp(FIRST_INTERVAL, LONGEST_INTERVAL);
        (self.failures, self.recovered, self.next) = (0, None, Some(now + self.interval));
    }

    /// Logs a line about failures that were counted, or a recovery.
    pub(super) fn log(&self, kind: &Gvk, handler: &str) {
        let (error, failures, failing) = (&*self.error, self.failures, self.failing);
        if self.recovered.is_some() {
            tracing::info!(%kind, %handler, error, failures, "handler recovered");
            return;
        }
        let examples: Vec<&str> = self.examples.iter().map(ObjectKey::as_str).collect();
        let examples = examples.join(", ");
        if failing == 0 {
            tracing::error!(%kind, %handler, error, failures, %examples, "handler failed again, not retrying");
        } else {
            tracing::warn!(%kind, %handler, error, failures, failing, %examples, "handler keeps failing");
        }
        notices::failure_without_subscriber(kind, handler, error);
    }
}
