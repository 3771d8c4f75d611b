//! The life of a registered handler.

use std::fmt;
use std::sync::Arc;

use super::core::ControllerCore;
use crate::lane::Lane;

/// A registered handler. Dropping this changes nothing: the handler stays registered.
pub struct Registration {
    core: Arc<ControllerCore>,
    lane: Arc<Lane>,
}

impl Registration {
    pub(super) fn new(core: Arc<ControllerCore>, lane: Arc<Lane>) -> Self {
        Self { core, lane }
    }

    /// Returns the name of the handler.
    #[must_use]
    pub fn name(&self) -> &str {
        self.lane.name()
    }

    /// Takes the handler away; once this returns it is not running and will never be called again.
    ///
    /// Its name is free at once. Called from the handler itself this would wait for itself, for ever:
    /// spawn it instead.
    ///
    /// # Cancel safety
    ///
    /// No further call begins from the first poll on. If the future is dropped, only the wait for the
    /// call under way is lost.
    pub async fn deregister(self) {
        self.core.lanes().remove(&self.lane).await;
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("kind", self.core.gvk())
            .field("name", &self.lane.name())
            .finish_non_exhaustive()
    }
}
