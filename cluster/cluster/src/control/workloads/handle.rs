//! The handle by which tests control simulated workloads.

use std::sync::Arc;

use lariat_core::ObjectKey;

use crate::server::Server;

/// Controls [simulated workloads](crate::Workloads); clones share the cluster.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use lariat::cluster::testing::{pod, wait_for};
/// use lariat::cluster::{Cluster, Workloads};
/// use std::time::Duration;
///
/// let workloads = Workloads::default().run_time(Duration::from_secs(3600));
/// let cluster = Cluster::builder().simulate_workloads(workloads).for_test().await;
/// let job = pod("job").set("/spec/restartPolicy", "Never");
/// let pods = job.api(&cluster.client());
/// job.create(&cluster.client()).await?;
/// wait_for(&pods, "job", |pod| pod.data["status"]["phase"] == "Running").await?;
/// cluster.workloads().fail_pod("default", "job");
/// wait_for(&pods, "job", |pod| pod.data["status"]["phase"] == "Failed").await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct SimulatedWorkloads {
    pub(crate) server: Arc<Server>,
}

impl SimulatedWorkloads {
    /// Ends the containers of a running Pod with exit code 1, once.
    ///
    /// A Pod that is not restarted is `Failed` from then on; the others wait for their containers to be
    /// started again. It has no effect on a Pod that does not run, or in a cluster without simulation.
    pub fn fail_pod(&self, namespace: &str, name: &str) {
        if let Some(simulated) = &self.server.workloads {
            simulated.fail(ObjectKey::namespaced(namespace, name));
            self.server.switches.notify();
        }
    }
}
