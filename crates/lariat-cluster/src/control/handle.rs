//! What users switch off.

use std::sync::Arc;

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
