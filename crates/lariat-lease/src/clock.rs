//! What time it is, and how long requests may take.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// The shortest time a request is given: controller-runtime's.
pub(crate) const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);

/// The moment of a step.
///
/// It is given by the clock that measures waits, and by the one whose time is written into the lease.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) now: Instant,
    pub(crate) wall: Timestamp,
}

/// Returns what time it is by both clocks; the server keeps microseconds.
pub(crate) fn moment() -> Moment {
    let wall = Timestamp::try_from(lariat_core::clock::now()).unwrap_or(Timestamp::UNIX_EPOCH);
    let micros = Timestamp::from_microsecond(wall.as_microsecond());
    Moment {
        now: Instant::now(),
        wall: micros.unwrap_or(wall),
    }
}
