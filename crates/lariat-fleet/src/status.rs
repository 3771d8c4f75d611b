//! The state of the clusters of a fleet.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// The state of a cluster of a fleet.
///
/// Prints as a line, such as `eu-1: waits 8s to be tried again: …`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MemberStatus {
    /// The name of the cluster.
    pub name: Arc<str>,
    /// What happens with it.
    pub phase: MemberPhase,
    /// The last error, until the cluster runs.
    pub error: Option<Arc<str>>,
    /// How long it has been in this phase.
    pub lasts: Duration,
}

/// What happens with a cluster of a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemberPhase {
    /// It is connected to, and its caches are filled.
    ///
    /// A cluster that is unreachable from the beginning is started again when its factory's sync timeout is over.
    Starting,
    /// Its reconcilers run.
    ///
    /// It stays in this phase while the cluster is unreachable later: watches are opened again as usual.
    Running,
    /// It could not be started, and is tried again after this delay.
    Waiting(Duration),
    /// It leaves the fleet: its queues are drained.
    Leaving,
}

/// The state of a cluster since a time.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) phase: MemberPhase,
    pub(crate) error: Option<Arc<str>>,
    pub(crate) since: Instant,
}

impl State {
    pub(crate) fn new(phase: MemberPhase, error: Option<Arc<str>>) -> Self {
        Self {
            phase,
            error,
            since: Instant::now(),
        }
    }

    pub(crate) fn status(&self, name: &Arc<str>) -> MemberStatus {
        MemberStatus {
            name: Arc::clone(name),
            phase: self.phase,
            error: self.error.clone(),
            lasts: self.since.elapsed(),
        }
    }
}

impl fmt::Display for MemberPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("starts"),
            Self::Running => f.write_str("runs"),
            Self::Waiting(delay) => write!(f, "waits {}s to be tried again", delay.as_secs()),
            Self::Leaving => f.write_str("leaves"),
        }
    }
}

impl fmt::Display for MemberStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.phase)?;
        self.error
            .iter()
            .try_for_each(|error| write!(f, ": {error}"))
    }
}
