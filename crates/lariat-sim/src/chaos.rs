//! What may happen in a run.

use std::time::Duration;

/// What may happen in a run, and for how long.
#[derive(Debug, Clone)]
#[must_use = "options do nothing until a simulation has them"]
pub struct Chaos {
    pub(crate) lasts: Duration,
    pub(crate) rests: Duration,
    pub(crate) names: u16,
    pub(crate) faults: bool,
    pub(crate) kills: bool,
    /// The factor by which the pauses between events are longer.
    pub(crate) pace: u32,
}

impl Default for Chaos {
    fn default() -> Self {
        Self {
            lasts: Duration::from_secs(60),
            rests: Duration::from_secs(20 * 60),
            names: 12,
            faults: true,
            kills: true,
            pace: 1,
        }
    }
}

impl Chaos {
    /// Sets for how much virtual time things happen (default a minute).
    ///
    /// Zero is for nothing but the start.
    ///
    /// They happen as often in a long run as in a short one.
    pub fn lasts(self, lasts: Duration) -> Self {
        Self { lasts, ..self }
    }

    /// Sets the time to settle after the last fault (default 20 minutes).
    ///
    /// It has to be longer than the longest wait between two tries of the program.
    pub fn rests(self, rests: Duration) -> Self {
        Self { rests, ..self }
    }

    /// Sets the number of names per kind (default 12; zero counts as one).
    pub fn names(self, names: u16) -> Self {
        Self { names, ..self }
    }

    /// Enables faults of the network and the cluster (default true).
    pub fn faults(self, faults: bool) -> Self {
        Self { faults, ..self }
    }

    /// Enables kills, restarts and pauses of processes, and clock jumps (default true).
    pub fn kills(self, kills: bool) -> Self {
        Self { kills, ..self }
    }
}
