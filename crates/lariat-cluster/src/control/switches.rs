//! What of the control plane is switched off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lariat_core::ObjectKey;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::server::Server;
use crate::time::Time;
use crate::workloads::Workloads;

/// How the control plane of a new cluster works.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) time: Time,
    pub(crate) garbage_collection: bool,
    pub(crate) namespace_deletion: bool,
    pub(crate) workloads: Option<Workloads>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            time: Time::default(),
            garbage_collection: true,
            namespace_deletion: true,
            workloads: None,
        }
    }
}

/// Which controllers work.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    garbage_collection_off: AtomicBool,
    namespaces_off: AtomicBool,
    /// Pods that are to fail.
    failing: Mutex<Vec<ObjectKey>>,
    turned: Notify,
}

impl Switches {
    pub(crate) fn new(garbage_collection: bool, namespaces: bool) -> Self {
        Self {
            garbage_collection_off: AtomicBool::new(!garbage_collection),
            namespaces_off: AtomicBool::new(!namespaces),
            failing: Mutex::default(),
            turned: Notify::new(),
        }
    }

    /// Waits until something is switched.
    pub(super) async fn turned(&self) {
        self.turned.notified().await;
    }

    pub(super) fn collects_garbage(&self) -> bool {
        !self.garbage_collection_off.load(Ordering::Relaxed)
    }

    pub(super) fn empties_namespaces(&self) -> bool {
        !self.namespaces_off.load(Ordering::Relaxed)
    }

    /// Lets a simulated Pod fail.
    pub(super) fn fail(&self, pod: ObjectKey) {
        self.failing.lock().push(pod);
        self.turned.notify_one();
    }

    pub(super) fn take_failing(&self) -> Vec<ObjectKey> {
        std::mem::take(&mut self.failing.lock())
    }

    fn set(&self, switch: &AtomicBool, off: bool) {
        switch.store(off, Ordering::Relaxed);
        self.turned.notify_one();
    }
}

/// Switches of the controllers that run inside the cluster; a clone switches the same.
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

/// What a test does to [simulated workloads](crate::Workloads); a clone does it to the same.
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
