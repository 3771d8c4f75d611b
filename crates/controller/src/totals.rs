//! The counters of a handler.

use std::time::Duration;

use lariat_queue::Histogram;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallOutcome {
    /// It succeeded.
    Done,
    /// It succeeded, and the handler asked to be called again.
    Requeued,
    /// It returned an [ignored](crate::HandlerError::ignore) error.
    Ignored,
    /// It failed with a retryable error.
    Failed,
    /// It failed with a terminal error.
    Terminal,
    /// It panicked.
    Panicked,
    /// It exceeded the handler's timeout.
    TimedOut,
}

impl CallOutcome {
    /// All variants.
    pub const ALL: &[Self] = &[
        Self::Done,
        Self::Requeued,
        Self::Ignored,
        Self::Failed,
        Self::Terminal,
        Self::Panicked,
        Self::TimedOut,
    ];

    /// Returns whether the call failed.
    #[must_use]
    pub fn is_failure(self) -> bool {
        !matches!(self, Self::Done | Self::Requeued | Self::Ignored)
    }

    /// Returns the name in lower case, as in metrics and logs.
    ///
    /// ```
    /// use lariat::controller::CallOutcome;
    ///
    /// assert_eq!(CallOutcome::TimedOut.as_str(), "timed_out");
    /// assert!(CallOutcome::TimedOut.is_failure());
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Requeued => "requeued",
            Self::Ignored => "ignored",
            Self::Failed => "failed",
            Self::Terminal => "terminal",
            Self::Panicked => "panicked",
            Self::TimedOut => "timed_out",
        }
    }
}

/// Totals since the handler was registered.
#[derive(Debug, Default, Clone)]
pub(crate) struct Totals {
    pub(crate) ended: [u64; CallOutcome::ALL.len()],
    /// The number of calls that asked for an immediate requeue.
    pub(crate) immediate_requeues: u64,
    pub(crate) retries: u64,
    /// The number of failures that were not retried because the retries were exhausted.
    pub(crate) exhausted: u64,
    /// The durations of successful calls, and of failed ones.
    pub(crate) times: [Histogram; 2],
    /// The times from a change to the call for it.
    pub(crate) lags: Histogram,
}

impl Totals {
    pub(crate) fn count(
        &mut self,
        ended: CallOutcome,
        attempt: u32,
        took: Duration,
        is_immediate: bool,
    ) {
        self.ended[ended as usize] += 1;
        self.immediate_requeues += u64::from(is_immediate);
        self.retries += u64::from(attempt > 1);
        self.times[usize::from(ended.is_failure())].record(took);
    }

    /// Adds other totals.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (count, more) in self.ended.iter_mut().zip(other.ended) {
            *count += more;
        }
        for (times, more) in self.times.iter_mut().zip(&other.times) {
            times.merge(more);
        }
        self.immediate_requeues += other.immediate_requeues;
        self.retries += other.retries;
        self.exhausted += other.exhausted;
        self.lags.merge(&other.lags);
    }
}
