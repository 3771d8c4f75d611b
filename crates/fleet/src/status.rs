//! The state of a fleet's clusters.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// The state of a cluster in a fleet.
///
/// Prints as one line, such as `eu-1: retrying in 8s: connection refused`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MemberStatus {
    /// The name of the cluster.
    pub name: Arc<str>,
    /// The phase of the cluster.
    pub phase: MemberPhase,
    /// The last error; `None` once the operator runs with the credentials of the source.
    pub error: Option<Arc<str>>,
    /// How long the cluster has been in this phase.
    pub lasts: Duration,
}

/// The phase of a cluster in a fleet.
///
/// ```
/// use std::time::Duration;
/// use lariat::fleet::MemberPhase;
///
/// assert_eq!(MemberPhase::Waiting(Duration::from_secs(8)).to_string(), "retrying in 8s");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemberPhase {
    /// The fleet connects to the cluster and fills its caches.
    ///
    /// It ends after 30 seconds if the cluster does not answer, and with the sync timeout of its factory if caches are not
    /// filled.
    Starting,
    /// The reconcilers run.
    ///
    /// The cluster stays in this phase if it becomes unreachable later; its watches are opened again.
    Running,
    /// The cluster could not be started and is retried after this delay.
    Waiting(Duration),
    /// The cluster is leaving; its queues are drained.
    Leaving,
}

/// The phase of a cluster since a time.
#[derive(Debug, Clone)]
pub(crate) struct State {
    /// The phase.
    pub(crate) phase: MemberPhase,
    /// The last error.
    pub(crate) error: Option<Arc<str>>,
    /// When the phase began.
    pub(crate) since: Instant,
}

impl State {
    /// Creates the state of a phase that begins now.
    pub(crate) fn new(phase: MemberPhase, error: Option<Arc<str>>) -> Self {
        Self {
            phase,
            error,
            since: Instant::now(),
        }
    }

    /// Returns the state as users see it.
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
            Self::Starting => f.write_str("starting"),
            Self::Running => f.write_str("running"),
            Self::Waiting(delay) => write!(f, "retrying in {}s", delay.as_secs()),
            Self::Leaving => f.write_str("leaving"),
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
