//! The result of a run in which every check passed.

use std::time::Duration;

use crate::trace::Trace;

/// The result of a run in which every check passed.
///
/// ```
/// use lariat::Gvk;
/// use lariat::sim::{Chaos, Objects, Simulation};
/// use std::time::Duration;
///
/// let report = Simulation::new(7)
///     .objects(Objects::new(Gvk::new("", "v1", "ConfigMap"), "configmaps"))
///     .chaos(Chaos::default().duration(Duration::from_secs(5)).settle(Duration::from_secs(60)))
///     .program("idle", |process| async move {
///         process.terminated().await;
///         Ok(())
///     })
///     .run()
///     .unwrap_or_else(|failure| panic!("{failure}"));
/// assert_eq!(report.seed(), 7);
/// assert!(report.lasted() >= Duration::from_secs(65));
/// ```
#[derive(Debug, Clone)]
pub struct Report {
    pub(crate) seed: u64,
    pub(crate) steps: usize,
    pub(crate) calls: u64,
    pub(crate) requests: u64,
    pub(crate) commits: u64,
    pub(crate) lasted: Duration,
    pub(crate) trace: Trace,
}

impl Report {
    /// Returns the seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the number of writes, faults and commands of the plan.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Returns the number of calls of handlers.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Returns the number of requests that the processes sent.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Returns the number of writes that the server committed.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.commits
    }

    /// Returns the virtual time that passed.
    #[must_use]
    pub fn lasted(&self) -> Duration {
        self.lasted
    }

    /// Returns the trace of the run, event by event.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }
}
