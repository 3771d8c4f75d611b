//! One call that must come.

use std::time::Duration;

use lariat_core::ObjectKey;
use lariat_sim::internals::{HandlerId, Next};

/// The largest difference between the clock of a runtime and that of the run.
///
/// Timers round up to milliseconds.
pub(crate) const CLOCKS: Duration = Duration::from_millis(2);

/// A call of a handler for a key that must come by a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Promise {
    /// The time at which it was made.
    pub(super) from: Duration,
    pub(super) due: Duration,
    pub(super) reason: DueReason,
    /// The run whose end the delay counts from, and the delay.
    pub(super) run: Option<(u64, Duration)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DueReason {
    /// Code asked for the key: only a call at its due time or later will do.
    Enqueued,
    /// Code asked for the key a second time, with a later due time.
    ///
    /// The kind had no handler at the first time, so the queue may have forgotten the earlier time or not: the due time
    /// is the later one, and any call will do.
    EnqueuedAgain,
    /// The handler asked to be called again.
    Requeued,
    Failed,
    Dropped,
}

/// The longest wait that an API server asks for.
const RETRY_AFTER: Duration = Duration::from_secs(10);

/// The default limiter, `lariat_queue::lasso_default`.
pub(super) fn backoff(attempt: u32) -> Duration {
    if attempt > 30 {
        return Duration::from_secs(120);
    }
    // 5 ms doubled 13 times exceed the 30 s already; the bound only keeps the power from overflowing.
    let doublings = attempt.saturating_sub(1).min(16);
    (Duration::from_millis(5) * 2_u32.pow(doublings)).min(Duration::from_secs(30))
}

impl Promise {
    /// Returns the call that must follow one that has ended; none if it is done.
    pub(super) fn after(next: Next, attempt: Option<u32>, run: u64, now: Duration) -> Option<Self> {
        let retried = backoff(attempt.unwrap_or(1)).max(RETRY_AFTER);
        let (after, reason) = match next {
            Next::Done => return None,
            Next::Again(after) => (after, DueReason::Requeued),
            Next::Retry(Some(after)) => (after, DueReason::Failed),
            Next::Retry(None) | Next::Panicked => (retried, DueReason::Failed),
            // The queue keeps the key over the stop that dropped the call, so it is ready at the next start.
            Next::Dropped => (Duration::ZERO, DueReason::Dropped),
        };
        Some(Self {
            from: now,
            due: now.saturating_add(after),
            reason,
            run: Some((run, after)),
        })
    }

    /// Returns whether a call that begins now is a different one.
    pub(super) fn outlasts(&self, now: Duration) -> bool {
        self.reason == DueReason::Enqueued && self.due > now + CLOCKS
    }

    /// Returns the finding that the call is missing.
    pub(super) fn says(&self, handler: &HandlerId, key: &ObjectKey) -> String {
        let kind = handler.kind.kind();
        let reason = match self.reason {
            DueReason::Enqueued | DueReason::EnqueuedAgain => "was enqueued",
            DueReason::Requeued => "was to be called again",
            DueReason::Failed => "failed",
            DueReason::Dropped => "was dropped",
        };
        format!(
            "{} {reason} for {kind} {key}, due at {:?}, and is not called",
            handler.name, self.due
        )
    }
}
