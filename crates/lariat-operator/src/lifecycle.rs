//! From start to stop.

use std::future::Future;
use std::pin::pin;

use lariat_controller::{StartError, StopError};
use lariat_core::debug_as_description;

use crate::crd::InstallError;
use crate::operator::Operator;
use crate::rbac::AccessError;

/// What running an operator can fail with.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum OperatorError {
    /// Definitions are not installed.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// Something is not allowed.
    #[error(transparent)]
    Access(#[from] AccessError),
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
        self.ensure_definitions().await?;
        self.check_access_if_asked().await?;
        Ok(self.factory().start(workers).await?)
    }

    /// Stops the factory.
    ///
    /// # Errors
    ///
    /// What was due could not be finished within the grace period.
    ///
    /// # Cancel safety
    ///
    /// As for [`SharedControllerFactory::stop`](lariat_controller::SharedControllerFactory::stop).
    pub async fn stop(&self) -> Result<(), OperatorError> {
        Ok(self.factory().stop().await?)
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
