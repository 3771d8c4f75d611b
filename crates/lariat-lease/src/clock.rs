//! The clocks of an election, and the shortest timeout of a request.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// The shortest timeout of a request: controller-runtime's.
pub(crate) const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);

/// The time of a step.
///
/// It is measured by two clocks: the monotonic one that measures waits, and the wall clock whose time is written into
/// the lease.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) now: Instant,
    pub(crate) wall: Timestamp,
}

/// Returns the time of both clocks; the server stores microseconds.
pub(crate) fn moment() -> Moment {
    let wall = Timestamp::try_from(lariat_core::clock::now()).unwrap_or(Timestamp::UNIX_EPOCH);
    let micros = Timestamp::from_microsecond(wall.as_microsecond());
    Moment {
        now: Instant::now(),
        wall: micros.unwrap_or(wall),
    }
}
