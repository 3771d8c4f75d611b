//! The server's state of simulated workloads.

use lariat_core::ObjectKey;
use parking_lot::Mutex;

use super::settings::Workloads;

/// The settings of the simulation, and the failures that tests ask for.
#[derive(Debug)]
pub(crate) struct Simulated {
    pub(crate) settings: Workloads,
    /// Pods that are to fail.
    failing: Mutex<Vec<ObjectKey>>,
}

impl Simulated {
    pub(crate) fn new(settings: Workloads) -> Self {
        Self {
            settings,
            failing: Mutex::default(),
        }
    }

    /// Marks a Pod as one that is to fail.
    pub(crate) fn fail(&self, pod: ObjectKey) {
        self.failing.lock().push(pod);
    }

    /// Takes the Pods that are to fail.
    pub(crate) fn take_failing(&self) -> Vec<ObjectKey> {
        std::mem::take(&mut self.failing.lock())
    }
}
