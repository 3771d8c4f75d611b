//! What users switch off, and do to simulated workloads.

use std::sync::Arc;

use lariat_core::ObjectKey;

use crate::server::Server;

/// Switches of the controllers inside the cluster; a clone switches the same.
///
/// A controller that is off is the fault of a cluster whose controller manager is down: deleted owners
/// leave their dependents behind, namespaces stay `Terminating`. Nothing is lost: switched on again, it
/// does what has come up meanwhile.
#[derive(Debug, Clone)]
pub struct Control {
    pub(crate) server: Arc<Server>,
}

impl Control {
    /// Stops the garbage collector: dependents of deleted owners stay.
    pub fn pause_garbage_collection(&self) {
        let switches = &self.server.switches;
        switches.set(&switches.garbage_collection_off, true);
    }

    /// Lets the garbage collector work, on what has come up meanwhile too.
    pub fn resume_garbage_collection(&self) {
        let switches = &self.server.switches;
        switches.set(&switches.garbage_collection_off, false);
    }

    /// Stops the namespace controller: deleted namespaces are stuck in `Terminating`.
    pub fn pause_namespace_deletion(&self) {
        let switches = &self.server.switches;
        switches.set(&switches.namespaces_off, true);
    }

    /// Lets the namespace controller work, on what has come up meanwhile too.
    pub fn resume_namespace_deletion(&self) {
        let switches = &self.server.switches;
        switches.set(&switches.namespaces_off, false);
    }
}

/// Actions of tests on [simulated workloads](crate::Workloads).
///
/// A clone acts on the same.
#[derive(Debug, Clone)]
pub struct SimulatedWorkloads {
    pub(crate) server: Arc<Server>,
}

impl SimulatedWorkloads {
    /// Lets the containers of a running Pod end with exit code 1, once.
    ///
    /// A Pod that is not restarted is `Failed` from then on; the others wait for their containers to be
    /// started again. It has no effect on a Pod that does not run, or in a cluster without simulation.
    pub fn fail_pod(&self, namespace: &str, name: &str) {
        if self.server.workloads.is_some() {
            let pod = ObjectKey::namespaced(namespace, name);
            self.server.switches.fail(pod);
        }
    }
}
