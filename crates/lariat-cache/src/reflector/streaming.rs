//! Whether everything there is is read by a watch that begins with it, or by a list.

use std::time::Duration;

use tokio::time::Instant;

/// How many watches that begin with everything may break off before one list is tried instead.
const ATTEMPTS: u32 = 3;

/// How long a server that cannot begin a watch with everything is asked for lists. It may be upgraded meanwhile.
const AGAIN_AFTER: Duration = Duration::from_secs(1800);

/// What is known about watches that begin with everything there is.
#[derive(Debug)]
pub(super) struct Streaming {
    is_wanted: bool,
    /// How many in a row broke off.
    broken: u32,
    /// Until when the server is not asked for one, because it cannot do that.
    unsupported_until: Option<Instant>,
}

impl Streaming {
    pub(super) fn new(is_wanted: bool) -> Self {
        Self {
            is_wanted,
            broken: 0,
            unsupported_until: None,
        }
    }

    /// Returns whether the next load is a watch.
    pub(super) fn is_on(&self) -> bool {
        let is_unsupported = |until: Instant| Instant::now() < until;
        self.is_wanted
            && self.broken < ATTEMPTS
            && !self.unsupported_until.is_some_and(is_unsupported)
    }

    /// Notes that the server cannot do that.
    pub(super) fn unsupported(&mut self) {
        self.unsupported_until = Some(Instant::now() + AGAIN_AFTER);
    }

    /// Notes that one broke off, or failed for no known reason.
    pub(super) fn broke_off(&mut self) {
        self.broken += 1;
    }

    /// Notes that everything there is was read, in whatever way.
    pub(super) fn loaded(&mut self) {
        self.broken = 0;
    }
}
