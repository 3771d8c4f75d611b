//! What is counted of a handler.

use std::time::Duration;

use lariat_queue::Histogram;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Ended {
    /// Nothing is left to do.
    Done,
    /// The handler wants to be called again after a delay.
    Requeued,
    /// It said that its error is to be ignored.
    Ignored,
    /// It failed.
    Failed,
    /// It failed, and said that trying again is of no use.
    Terminal,
    /// It panicked.
    Panicked,
    /// It took longer than its timeout.
    TimedOut,
}

impl Ended {
    /// All ways in which a call can end.
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

    /// Returns the word for it, in lower case.
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
    pub(crate) ended: [u64; Ended::ALL.len()],
    /// Of the calls that asked to come again, those that did not want to wait.
    pub(crate) at_once: u64,
    pub(crate) retries: u64,
    /// Failures after which nothing was tried again, because the retries were used up.
    pub(crate) given_up: u64,
    /// How long calls took: those that did not fail, and those that did.
    pub(crate) times: [Histogram; 2],
    /// How long changes waited before the handler was called for them.
    pub(crate) lags: Histogram,
}

impl Totals {
    pub(crate) fn count(&mut self, ended: Ended, attempt: u32, took: Duration, at_once: bool) {
        self.ended[ended as usize] += 1;
        self.at_once += u64::from(at_once);
        self.retries += u64::from(attempt > 1);
        self.times[usize::from(ended.is_failure())].record(took);
    }

    /// Takes in what was counted elsewhere.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (count, more) in self.ended.iter_mut().zip(other.ended) {
            *count += more;
        }
        for (times, more) in self.times.iter_mut().zip(&other.times) {
            times.merge(more);
        }
        self.at_once += other.at_once;
        self.retries += other.retries;
        self.given_up += other.given_up;
        self.lags.merge(&other.lags);
    }
}
