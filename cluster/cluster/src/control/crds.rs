//! The controller of CustomResourceDefinitions.

use tokio::time::Instant;

use super::controller::{ControlPlane, Controller};
use super::definitions::Definitions;
use crate::store::{Change, EventType};

/// The lifecycle of CRDs, looked at when it may have moved.
#[derive(Debug)]
pub(super) struct CrdController {
    definitions: Definitions,
    is_due: bool,
}

impl CrdController {
    pub(super) fn new() -> Self {
        Self {
            definitions: Definitions::default(),
            // What was served before a rewind may have no CRD any more.
            is_due: true,
        }
    }
}

impl Controller for CrdController {
    fn observe(&mut self, plane: &ControlPlane, change: &Change) {
        // A CRD that is being deleted waits until its instances are deleted.
        self.is_due |= change.table == plane.server.kinds.definitions
            || (change.event.event == EventType::Deleted
                && self.definitions.waits_for(change.table));
    }

    fn work(&mut self, plane: &ControlPlane) -> bool {
        let now = Instant::now();
        let is_time = self.definitions.due().is_some_and(|at| at <= now);
        if std::mem::take(&mut self.is_due) || is_time {
            self.definitions.reconcile(&plane.server);
        }
        false
    }

    fn due(&self, _plane: &ControlPlane) -> Option<Instant> {
        self.definitions.due()
    }
}
