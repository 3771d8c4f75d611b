//! From start to stop.

use std::future::Future;
use std::pin::pin;

use lariat_controller::{LeaseError, StartError, StopError};
use lariat_core::debug_as_description;

use super::operator::Operator;
#[cfg(feature = "crd")]
use crate::crd::InstallError;
#[cfg(feature = "rbac")]
use crate::rbac::AccessError;

/// What running an operator can fail with.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum OperatorError {
    /// CRDs are not installed.
    #[cfg(feature = "crd")]
    #[error(transparent)]
    Install(#[from] InstallError),
    /// Something is not allowed.
    #[cfg(feature = "rbac")]
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The factory did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The stop had to cut work short.
    #[error(transparent)]
    Stop(#[from] StopError),
    /// The lease of the leader election is lost.
    #[error(transparent)]
    Lost(LeaseError),
}

debug_as_description!(OperatorError);

impl Operator {
    /// Makes ready what reconcilers need: installs [CRDs](Self::installs), and checks
    /// [permissions](Self::checks_access) if that was asked for.
    ///
    /// [`start`](Self::start) does this. Where several operators share a factory, prepare each and start the factory.
    ///
    /// # Errors
    ///
    /// A CRD is not established, or something is not allowed.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, CRDs may have been written or not.
    pub async fn prepare(&self) -> Result<(), OperatorError> {
        self.install().await?;
        self.check_access_if_asked().await?;
        self.open_events();
        Ok(())
    }

    /// [Prepares](Self::prepare), and starts the factory with this many workers for each kind; see
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
        self.prepare().await?;
        match self.factory().start(workers).await {
            // It runs, and so does the recorder.
            Ok(()) => Ok(()),
            Err(error @ StartError::AlreadyStarted) => Err(error.into()),
            Err(error) => {
                // Handlers may have published already what keeps it from starting.
                self.close_events().await;
                Err(error.into())
            }
        }
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
        self.close_events().await;
        Ok(stopped?)
    }

    /// Starts, runs until a shutdown signal, whatever the future resolves to, and stops; the signal ends a start that
    /// waits too.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start) and [`stop`](Self::stop), or the lease of the
    /// [leader election](lariat_controller::FactoryBuilder::leader_election) is lost.
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
            biased;
            // First, so that a signal has who waits for it before a reconciler does anything.
            _ = &mut shutdown => return self.stop().await,
            started = self.start(workers) => started?,
        }
        let lost = tokio::select! {
            biased;
            _ = shutdown => None,
            reason = self.factory().lease_lost() => Some(reason),
        };
        let stopped = self.stop().await;
        lost.map_or(stopped, |reason| Err(OperatorError::Lost(reason)))
    }
}
