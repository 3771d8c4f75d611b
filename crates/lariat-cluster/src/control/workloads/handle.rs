//! What tests do to simulated workloads.

use std::sync::Arc;

use lariat_core::ObjectKey;

use crate::server::Server;

/// Controls [simulated workloads](crate::Workloads); clones share the cluster.
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
