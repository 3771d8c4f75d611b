//! The public switches of the control plane.

use std::sync::Arc;

use crate::server::Server;

/// Pauses and resumes controllers inside the cluster; clones share the state.
///
/// A paused controller simulates a cluster whose controller manager is down: deleted owners leave their dependents
/// behind, namespaces stay `Terminating`. A paused controller still observes changes; once resumed, it processes them
/// all.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use lariat::ObjectKey;
/// use lariat::cluster::Cluster;
/// use lariat::cluster::testing::{config_map, wait_until_gone};
///
/// let cluster = Cluster::for_test().await;
/// let client = cluster.client();
/// let config_maps = config_map("owner", &[]).api(&client);
/// let owner = config_map("owner", &[]).create(&client).await?;
/// config_map("child", &[]).owned_by(&owner).create(&client).await?;
///
/// cluster.control().pause_garbage_collection();
/// config_maps.delete("owner", &Default::default()).await?;
/// let child = ObjectKey::namespaced("default", "child");
/// assert!(cluster.object("configmaps", &child).is_some());
///
/// cluster.control().resume_garbage_collection();
/// wait_until_gone(&config_maps, "child").await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Control {
    pub(crate) server: Arc<Server>,
}

impl Control {
    /// Pauses the garbage collector: dependents of deleted owners stay.
    pub fn pause_garbage_collection(&self) {
        let switches = &self.server.switches;
        switches.set(&switches.garbage_collection_off, true);
    }

    /// Resumes the garbage collector, which catches up on missed changes.
    pub fn resume_garbage_collection(&self) {
        let switches = &self.server.switches;
        switches.set(&switches.garbage_collection_off, false);
    }

    /// Pauses the namespace controller: deleted namespaces stay `Terminating`.
    pub fn pause_namespace_deletion(&self) {
        let switches = &self.server.switches;
        switches.set(&switches.namespaces_off, true);
    }

    /// Resumes the namespace controller, which catches up on missed changes.
    pub fn resume_namespace_deletion(&self) {
        let switches = &self.server.switches;
        switches.set(&switches.namespaces_off, false);
    }
}
