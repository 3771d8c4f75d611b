//! Time as the queue stores it: a number instead of an instant.

use std::time::{Duration, Instant};

/// Nanoseconds since the first time that a queue was given.
///
/// Enough for five centuries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp(u64);

impl Stamp {
    /// Returns the time that has passed since `earlier`; zero if that is later.
    pub(super) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    pub(super) fn of_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds, for sums.
    pub(super) fn nanos(self) -> u64 {
        self.0
    }
}

/// Translates between instants and stamps.
#[derive(Debug, Default)]
pub(super) struct Clock {
    origin: Option<Instant>,
}

/// Thirty years: as good as never, and no clock overflows by it.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

impl Clock {
    pub(super) fn stamp(&mut self, now: Instant) -> Stamp {
        let origin = *self.origin.get_or_insert(now);
        Stamp(nanos(now.saturating_duration_since(origin)))
    }

    /// Returns the stamp of a time, without noting that the queue has been given one.
    ///
    /// Zero before the first stamp: nothing in the queue has a time then.
    pub(super) fn stamp_of(&self, now: Instant) -> Stamp {
        let passed = |origin| now.saturating_duration_since(origin);
        Stamp(self.origin.map_or(0, |origin| nanos(passed(origin))))
    }

    /// Returns the stamp of a future time; a delay is cut to thirty years.
    pub(super) fn later(now: Stamp, after: Duration) -> Stamp {
        Stamp(now.0.saturating_add(nanos(after.min(FAR))))
    }

    pub(super) fn instant(&self, stamp: Stamp) -> Option<Instant> {
        Some(self.origin? + Duration::from_nanos(stamp.0))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
