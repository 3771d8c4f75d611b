//! Where a factory is between its start and its stop.

use std::fmt;

use tokio::sync::watch;

use super::factory::SharedControllerFactory;

/// Where a factory is between its start and its stop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FactoryPhase {
    /// It has not been started.
    #[default]
    Idle,
    /// It was started; its caches may not be synced yet.
    Running,
    /// It stops: what was due is being processed.
    Stopping,
    /// It has stopped, and can be started again.
    Stopped,
}

impl fmt::Display for FactoryPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "not started",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        })
    }
}

impl SharedControllerFactory {
    /// Returns where the factory is between its start and its stop, and follows that.
    ///
    /// The receiver does not keep the factory alive: it is closed when the last clone is dropped. A reader sees the
    /// newest phase, and may miss those in between.
    ///
    /// ```no_run
    /// use lariat_controller::{FactoryPhase, SharedControllerFactory};
    ///
    /// # async fn example(factory: &SharedControllerFactory) {
    /// let mut phases = factory.phases();
    /// // An error means that the factory was dropped.
    /// let _ = phases.wait_for(|phase| *phase == FactoryPhase::Stopped).await;
    /// # }
    /// ```
    #[must_use]
    pub fn phases(&self) -> watch::Receiver<FactoryPhase> {
        self.core.phase.subscribe()
    }
}

/// Publishes the end of a stop, also of one whose future is dropped.
pub(super) struct PublishStopped<'a>(pub(super) &'a watch::Sender<FactoryPhase>);

impl Drop for PublishStopped<'_> {
    fn drop(&mut self) {
        self.0.send_replace(FactoryPhase::Stopped);
    }
}
