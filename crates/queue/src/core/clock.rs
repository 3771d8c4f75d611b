//! Time as the queue stores it: nanoseconds since the first call.

use std::time::{Duration, Instant};

/// A time, in nanoseconds since the first time the queue was given.
///
/// 64 bits last for five centuries and take half the space of an `Instant`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp(u64);

impl Stamp {
    /// Returns the time since `earlier`, or zero if `earlier` is later.
    pub(super) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Converts between instants and stamps.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// The instant of stamp zero; `None` before the first call.
    origin: Option<Instant>,
}

/// The longest delay, thirty years: adding it to the clock cannot overflow.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

impl Clock {
    /// Returns the stamp of a time; the first call sets the origin.
    pub(super) fn stamp(&mut self, now: Instant) -> Stamp {
        let origin = *self.origin.get_or_insert(now);
        Stamp(nanos(now.saturating_duration_since(origin)))
    }

    /// Returns the stamp of a time without setting the origin.
    ///
    /// Zero if there is no origin yet: then nothing in the queue has a time either.
    pub(super) fn stamp_of(&self, now: Instant) -> Stamp {
        let passed = |origin| now.saturating_duration_since(origin);
        Stamp(self.origin.map_or(0, |origin| nanos(passed(origin))))
    }

    /// Returns the stamp of a future time; delays are capped at thirty years.
    pub(super) fn later(now: Stamp, after: Duration) -> Stamp {
        Stamp(now.0.saturating_add(nanos(after.min(FAR))))
    }

    /// Returns the instant of a stamp; `None` before the first call.
    pub(super) fn instant(&self, stamp: Stamp) -> Option<Instant> {
        Some(self.origin? + Duration::from_nanos(stamp.0))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
