//! From start to stop.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use lariat_controller::{StartError, StopError};
use lariat_core::debug_as_description;

use crate::operator::Operator;

/// How long a stop waits for Events that are not written yet.
const EVENTS: Duration = Duration::from_secs(5);

/// What running an operator can fail with.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum OperatorError {
    /// The factory did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The stop had to cut work short.
    #[error(transparent)]
    Stop(#[from] StopError),
}

debug_as_description!(OperatorError);

impl Operator {
    /// Makes ready what reconcilers need, and starts the factory with this many workers for each kind; see
    /// [`SharedControllerFactory::start`](lariat_controller::SharedControllerFactory::start).
    ///
    /// # Errors
    ///
    /// Something is not ready, or the factory does not start.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, what was started by then goes on running.
    pub async fn start(&self, workers: impl Into<Option<usize>>) -> Result<(), OperatorError> {
        self.shared().events.open();
        Ok(self.factory().start(workers).await?)
    }

    /// Stops the factory, and waits up to 5 seconds until the Events are written that it left.
    ///
    /// # Errors
    ///
    /// What was due could not be finished within the grace period.
    ///
    /// # Cancel safety
    ///
    /// As for [`SharedControllerFactory::stop`](lariat_controller::SharedControllerFactory::stop); Events that are not
    /// written yet may be lost.
    pub async fn stop(&self) -> Result<(), OperatorError> {
        let stopped = self.factory().stop().await;
        self.shared().events.close(EVENTS).await;
        Ok(stopped?)
    }

    /// Starts, runs until a shutdown signal, whatever the future resolves to, and stops; the signal ends a start that
    /// waits too.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start) and [`stop`](Self::stop).
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, what was started by then goes on running.
    pub async fn run<T>(
        &self,
        workers: impl Into<Option<usize>>,
        shutdown: impl Future<Output = T>,
    ) -> Result<(), OperatorError> {
        let mut shutdown = pin!(shutdown);
        tokio::select! {
            started = self.start(workers) => started?,
            _ = &mut shutdown => return self.stop().await,
        }
        let _ = shutdown.await;
        self.stop().await
    }
}
