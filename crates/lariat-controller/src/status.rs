//! How controllers are doing.

use std::sync::Arc;
use std::time::Duration;

use lariat_cache::KindStatus;
use lariat_queue::{Histogram, QueueStats};

use crate::sentinel::HotLoop;
use crate::totals::{Ended, Totals};

/// State and totals of one handler, for as long as it is registered.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HandlerStatus {
    /// The name it was registered under.
    pub name: Arc<str>,
    /// Calls that have ended.
    pub runs: u64,
    /// Calls that asked to come again at once, of all that [asked to](Ended::Requeued).
    pub at_once: u64,
    /// Calls that came after a failure that was counted, not [held](crate::HandlerError::held); the queue's
    /// `retries` counts those that were scheduled.
    pub retries: u64,
    /// Calls that failed, panics and timeouts included.
    pub failures: u64,
    /// Calls that panicked.
    pub panics: u64,
    /// Calls that took longer than allowed.
    pub timeouts: u64,
    /// Failures after which nothing was tried again, because the retries were used up.
    pub given_up: u64,
    /// The time all calls took together.
    pub busy: Duration,
    /// How long calls took.
    pub times: Histogram,
    /// How long it took from a change to the call for it. Retries do not count, nor does the time in line before
    /// a handler whose [concurrency](crate::HandlerOptions::concurrency) is limited.
    pub lags: Histogram,
    /// Whether the handler is not called yet because a related kind's cache is not filled; see
    /// [`SharedController::watch_related`](crate::SharedController::watch_related).
    pub is_held: bool,
    /// How many keys wait for the handler outside the queue: at the limit of its
    /// [concurrency](crate::HandlerOptions::concurrency), while it is held, or while the content of their objects is
    /// read.
    pub waiting: usize,
    ended: [u64; Ended::ALL.len()],
    /// Those that did not fail, and those that did.
    times_by_failure: [Histogram; 2],
}

impl HandlerStatus {
    pub(crate) fn new(name: Arc<str>, totals: Totals) -> Self {
        let count = |of: Ended| totals.ended[of as usize];
        let failures = Ended::ALL
            .iter()
            .copied()
            .filter(|ended| ended.is_failure());
        let mut times = totals.times[0].clone();
        times.merge(&totals.times[1]);
        Self {
            name,
            runs: totals.ended.iter().sum(),
            at_once: totals.at_once,
            retries: totals.retries,
            failures: failures.map(count).sum(),
            panics: count(Ended::Panicked),
            timeouts: count(Ended::TimedOut),
            given_up: totals.given_up,
            busy: times.sum(),
            ended: totals.ended,
            times,
            times_by_failure: totals.times,
            lags: totals.lags,
            is_held: false,
            waiting: 0,
        }
    }

    /// Returns how many calls ended in some way.
    #[must_use]
    pub fn ended(&self, how: Ended) -> u64 {
        self.ended[how as usize]
    }

    /// Returns how long those calls took that failed, or those that did not.
    #[must_use]
    pub fn times_of(&self, failed: bool) -> &Histogram {
        &self.times_by_failure[usize::from(failed)]
    }
}

/// State and totals of one kind.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ControllerStatus {
    /// The cache.
    pub cache: KindStatus,
    /// The queue.
    pub queue: QueueStats,
    /// How many keys are handled at a time; none if the controller does not run.
    pub workers: Option<usize>,
    /// The handlers, in the order of their registration.
    pub handlers: Vec<HandlerStatus>,
    /// What those have done together that are not registered any more; it has no name.
    pub gone: HandlerStatus,
    /// The keys that are in hot loops, by key; see [`Sentinel`](crate::Sentinel).
    pub hot_loops: Vec<HotLoop>,
}
