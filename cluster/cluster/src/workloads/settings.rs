//! Settings of the simulated nodes and workloads.

use std::time::Duration;

/// The settings of simulated nodes, Pods and workloads.
///
/// With it the cluster has nodes, a scheduler that binds Pods to them, kubelets that run Pods (in name
/// only: no process is started), and the controllers of ReplicaSets, Deployments, StatefulSets,
/// DaemonSets, Jobs and CronJobs (in UTC). Services have Endpoints and EndpointSlices, and claims are
/// bound to volumes at once. They write what the real components write; their timing is simplified. All delays are
/// measured by tokio's clock.
///
/// Annotations of a Pod decide how its containers end:
///
/// | annotation | effect |
/// |---|---|
/// | `lariat.dev/run-for: 2s` | its containers end after this time, once they run |
/// | `lariat.dev/exit-code: "3"` | the code they end with (default 0) |
/// | `lariat.dev/fail: "true"` | as exit code 1 |
///
/// Containers of a Pod with `restartPolicy: Always` run for ever unless `run-for` says otherwise, and are
/// then restarted; those of other Pods end after [`run_time`](Self::run_time).
///
/// ```
/// use lariat::cluster::{Cluster, Workloads};
///
/// let builder = Cluster::builder().simulate_workloads(Workloads::default().nodes(3));
/// # let _ = builder;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "it has an effect on a cluster that is built with it"]
pub struct Workloads {
    pub(crate) nodes: usize,
    pub(crate) scheduling: Duration,
    pub(crate) start: Duration,
    pub(crate) readiness: Duration,
    pub(crate) run_time: Duration,
    pub(crate) termination: Duration,
}

impl Default for Workloads {
    fn default() -> Self {
        Self {
            nodes: 1,
            scheduling: Duration::ZERO,
            start: Duration::from_millis(10),
            readiness: Duration::from_millis(10),
            run_time: Duration::from_millis(100),
            termination: Duration::from_millis(10),
        }
    }
}

impl Workloads {
    /// Sets how many nodes there are: `node-1`, `node-2` and so on (default 1).
    ///
    /// Nodes that clients create are used as well; without any node Pods stay pending.
    pub fn nodes(mut self, nodes: usize) -> Self {
        self.nodes = nodes;
        self
    }

    /// Sets how long a Pod waits to be bound to a node (default 0).
    pub fn scheduling(mut self, delay: Duration) -> Self {
        self.scheduling = delay;
        self
    }

    /// Sets how long a bound Pod takes to run (default 10 ms).
    pub fn start(mut self, delay: Duration) -> Self {
        self.start = delay;
        self
    }

    /// Sets how long a running Pod takes to be ready (default 10 ms).
    pub fn readiness(mut self, delay: Duration) -> Self {
        self.readiness = delay;
        self
    }

    /// Sets how long containers of Pods without restarts run (default 100 ms).
    pub fn run_time(mut self, time: Duration) -> Self {
        self.run_time = time;
        self
    }

    /// Sets how long a deleted Pod takes to end (default 10 ms).
    ///
    /// It takes no longer than its grace period.
    pub fn termination(mut self, delay: Duration) -> Self {
        self.termination = delay;
        self
    }
}
