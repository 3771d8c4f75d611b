//! A controller, and what it works on.

use std::sync::Arc;

use tokio::time::Instant;

use super::graph::Graph;
use crate::server::Server;
use crate::store::Change;

/// The server and the graph that the controllers work on.
pub(super) struct ControlPlane {
    pub(super) server: Arc<Server>,
    pub(super) graph: Graph,
}

/// One controller. It never waits: work that takes time is due later.
pub(super) trait Controller: Send {
    /// Observes a commit, and notes the work it causes.
    fn observe(&mut self, plane: &ControlPlane, change: &Change);

    /// Does a part of the work that is due; returns whether more is left.
    fn work(&mut self, plane: &ControlPlane) -> bool;

    /// Returns when there is something to do even if nothing is committed.
    fn due(&self, _plane: &ControlPlane) -> Option<Instant> {
        None
    }

    /// Returns whether its work waits until it is switched on again.
    fn is_paused(&self, _plane: &ControlPlane) -> bool {
        false
    }
}
