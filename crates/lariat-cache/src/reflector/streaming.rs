//! Whether everything there is is read by a watch that begins with it, or by a list.

use std::time::{Duration, Instant};

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

    /// Returns the state as numbers; the last is for how many milliseconds the server is not asked.
    pub(super) fn state(&self, now: Instant) -> [u32; 3] {
        let rest = self
            .unsupported_until
            .map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        let millis = u32::try_from(rest.as_millis()).unwrap_or(u32::MAX);
        [u32::from(self.is_wanted), self.broken, millis]
    }

    pub(super) fn of_state([is_wanted, broken, millis]: [u32; 3], now: Instant) -> Self {
        let rest = Duration::from_millis(millis.into());
        Self {
            is_wanted: is_wanted == 1,
            broken,
            unsupported_until: (!rest.is_zero()).then(|| now + rest),
        }
    }

    /// Returns whether the next load is a watch.
    pub(super) fn is_on(&self, now: Instant) -> bool {
        let is_unsupported = |until: Instant| now < until;
        self.is_wanted
            && self.broken < ATTEMPTS
            && !self.unsupported_until.is_some_and(is_unsupported)
    }

    /// Notes that the server cannot do that.
    pub(super) fn unsupported(&mut self, now: Instant) {
        self.unsupported_until = Some(now + AGAIN_AFTER);
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
