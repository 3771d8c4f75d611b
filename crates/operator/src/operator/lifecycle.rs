//! Starts and stops an operator with its factory.

use std::future::Future;
use std::pin::pin;

use lariat_controller::{StartError, StopError};

use lariat_core::debug_as_description;
use lariat_lease::LeaseError;

use super::operator::Operator;
#[cfg(feature = "crd")]
use crate::crd::InstallError;
#[cfg(feature = "rbac")]
use crate::rbac::AccessError;

/// The error of starting, running or stopping an operator.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum OperatorError {
    /// A CRD was not installed.
    #[cfg(feature = "crd")]
    #[error(transparent)]
    Install(#[from] InstallError),
    /// A permission is missing.
    #[cfg(feature = "rbac")]
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The factory did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The stop exceeded its grace period.
    #[error(transparent)]
    Stop(#[from] StopError),
    /// The lease of the leader election is lost.
    #[error(transparent)]
    Lost(LeaseError),
}

debug_as_description!(OperatorError);

impl Operator {
    /// Checks permissions if that is enabled, and installs the [CRDs](Self::installs).
    ///
    /// [`start`](Self::start) does this first; see [`checks_access`](Self::checks_access) for the permissions. If
    /// several operators share a factory, prepare each of them, and then start the factory.
    ///
    /// ```no_run
    /// # use lariat::{Operator, SharedControllerFactory};
    /// # async fn example(factory: SharedControllerFactory) -> Result<(), Box<dyn std::error::Error>> {
    /// let (shops, billing) = (Operator::new("shops", &factory), Operator::new("billing", &factory));
    /// shops.prepare().await?;
    /// billing.prepare().await?;
    /// factory.start(5).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// A CRD could not be installed, or a permission is missing.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, some CRDs may have been written.
    pub async fn prepare(&self) -> Result<(), OperatorError> {
        // First, so that the error names all that is missing, and nothing is written then.
        let is_complete = self.check_access_at_start().await?;
        self.install().await?;
        if !is_complete {
            self.check_access_at_start().await?;
        }
        self.open_events();
        Ok(())
    }

    /// [Prepares](Self::prepare) the operator, and starts its factory.
    ///
    /// `workers` is the number of workers for each kind. See
    /// [`SharedControllerFactory::start`](lariat_controller::SharedControllerFactory::start) for what a start waits
    /// for.
    ///
    /// # Errors
    ///
    /// The preparation fails, or the factory does not start; then nothing keeps running.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, what has started keeps running.
    pub async fn start(&self, workers: impl Into<Option<usize>>) -> Result<(), OperatorError> {
        self.prepare().await?;
        match self.factory().start(workers).await {
            // The factory is running already, and uses the recorder.
            Ok(()) => Ok(()),
            Err(error @ StartError::AlreadyStarted) => Err(error.into()),
            Err(error) => {
                // The factory does not run, so nothing else closes the recorder. Handlers may have published Events
                // before the error.
                self.close_events().await;
                Err(match error {
                    StartError::Lease(reason @ LeaseError::Lost { .. }) => {
                        OperatorError::Lost(reason)
                    }
                    error => error.into(),
                })
            }
        }
    }

    /// Stops the factory, and waits up to 5 seconds for unwritten Events.
    ///
    /// # Errors
    ///
    /// Some keys were due and could not be processed within the grace period.
    ///
    /// # Cancel safety
    ///
    /// As for [`SharedControllerFactory::stop`](lariat_controller::SharedControllerFactory::stop); unwritten Events may
    /// be lost.
    pub async fn stop(&self) -> Result<(), OperatorError> {
        let stopped = self.factory().stop().await;
        self.close_events().await;
        Ok(stopped?)
    }

    /// Starts the operator, runs it until `shutdown` resolves, and stops it.
    ///
    /// The output of `shutdown` is ignored. If it resolves while the start waits for caches, the start is cancelled.
    ///
    /// ```no_run
    /// # use lariat::{Operator, SharedControllerFactory};
    /// # async fn example(factory: SharedControllerFactory) -> Result<(), Box<dyn std::error::Error>> {
    /// let operator = Operator::new("shops", &factory);
    /// // … reconcilers
    /// operator.run(5, lariat::termination()).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start) and [`stop`](Self::stop), or the lease of the [leader
    /// election](lariat_controller::FactoryBuilder::leader_election) is lost.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, what has started keeps running.
    pub async fn run<T>(
        &self,
        workers: impl Into<Option<usize>>,
        shutdown: impl Future<Output = T>,
    ) -> Result<(), OperatorError> {
        let mut shutdown = pin!(shutdown);
        tokio::select! {
            biased;
            // Polled first, so that a signal handler is installed before any reconciler is called.
            _ = &mut shutdown => return self.stop().await,
            started = self.start(workers) => started?,
        }
        // A lost lease stops the operator like a signal, but the caller gets an error.
        let lost = tokio::select! {
            biased;
            _ = shutdown => None,
            reason = self.factory().lease_lost() => Some(reason),
        };
        let stopped = self.stop().await;
        lost.map_or(stopped, |reason| Err(OperatorError::Lost(reason)))
    }
}
