//! The clocks of an election, and the shortest request timeout.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// The shortest timeout of a request, as in controller-runtime.
pub(crate) const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);

/// The time on both clocks of an election.
///
/// Waits are measured on the monotonic clock. The wall clock's time is written into the lease, and is never compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// The time on the monotonic clock.
    pub(crate) now: Instant,
    /// The time on the wall clock.
    pub(crate) wall: Timestamp,
}

/// Returns the time on both clocks, in the server's precision of microseconds.
pub(crate) fn moment() -> Moment {
    let wall = Timestamp::try_from(lariat_core::clock::now()).unwrap_or(Timestamp::UNIX_EPOCH);
    let micros = Timestamp::from_microsecond(wall.as_microsecond());
    Moment {
        now: Instant::now(),
        wall: micros.unwrap_or(wall),
    }
}
