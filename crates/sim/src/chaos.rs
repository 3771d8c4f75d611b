//! The disturbances of a run.

use std::time::Duration;

/// Configures the writes, faults and kills of a run, and its duration.
///
/// ```
/// use lariat::sim::{Chaos, Simulation};
/// use std::time::Duration;
///
/// // Half a minute of writes and broken connections, without killed processes.
/// let chaos = Chaos::default().duration(Duration::from_secs(30)).kills(false);
/// let simulation = Simulation::new(7).chaos(chaos);
/// # drop(simulation);
/// ```
#[derive(Debug, Clone)]
#[must_use = "options do nothing until a simulation has them"]
pub struct Chaos {
    pub(crate) duration: Duration,
    pub(crate) settle: Duration,
    pub(crate) names: u16,
    pub(crate) faults: bool,
    pub(crate) kills: bool,
    /// The factor by which the pauses between events are longer.
    pub(crate) pace: u32,
}

impl Default for Chaos {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(60),
            settle: Duration::from_secs(20 * 60),
            names: 12,
            faults: true,
            kills: true,
            pace: 1,
        }
    }
}

impl Chaos {
    /// Sets how long writes and faults go on, in virtual time (default 1 min).
    ///
    /// With zero the programs only start. Their rate does not depend on the duration.
    pub fn duration(self, duration: Duration) -> Self {
        Self { duration, ..self }
    }

    /// Sets the time to settle after the last fault (default 20 minutes).
    ///
    /// It must be longer than the longest backoff of the program; otherwise the checks at rest fail.
    pub fn settle(self, settle: Duration) -> Self {
        Self { settle, ..self }
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
