//! Starts, runs and stops a factory.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use lariat_lease::LeaseError;
use tokio::sync::{oneshot, watch};
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::factory::SharedControllerFactory;
use super::life::{Life, StopEnd};
use super::options::Election;
use super::phase::FactoryPhase;
use super::run::{FactoryRun, LostLease};
use super::{duplicates, stop};
use crate::error::{RunError, StartError, StopError};
use crate::{notices, panics};

/// The pause between two waits for the caches, after the future of a start was dropped.
const SYNC_RETRY: Duration = Duration::from_secs(1);

/// How a start continues.
enum Started {
    /// The factory runs. The token is cancelled when this run stops; the sender is used when the caches are synced.
    Now(CancellationToken, oneshot::Sender<()>),
    /// The stop of the last run has to end first.
    After(StopEnd),
}

impl SharedControllerFactory {
    /// Starts all controllers, and waits until their caches are synced.
    ///
    /// `start(5)` runs five workers for each kind that does not set [`workers`](crate::ControllerOptions::workers)
    /// itself. `start(None)` takes the number from the factory's default options, or else five.
    ///
    /// ```no_run
    /// use lariat::controller::StartError;
    /// use lariat::SharedControllerFactory;
    ///
    /// # async fn example(factory: &SharedControllerFactory) -> Result<(), StartError> {
    /// factory.start(5).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// A kind's handlers are called as soon as its own cache and those of its relations are synced, even while this
    /// method still waits for other kinds. Kinds and handlers that are added later start by themselves.
    ///
    /// A stopped factory can be started again. Keys that were left in the queues, and objects that changed meanwhile,
    /// are processed then. If a stop is in progress, this method waits for its end.
    ///
    /// The first start in a process installs a panic hook that records where a handler panicked, with a backtrace if
    /// `RUST_BACKTRACE` is set. If there was no custom hook before and errors are logged through `tracing`, a handler's
    /// panic is not printed on stderr as well. A custom hook is still called.
    ///
    /// # Errors
    ///
    /// - [`NoWorkers`](StartError::NoWorkers): the number of workers is zero.
    /// - [`AlreadyStarted`](StartError::AlreadyStarted): the factory runs already.
    /// - [`NotSynced`](StartError::NotSynced): a cache did not sync in time. Everything is stopped again; the error
    ///   names the kinds and their errors.
    /// - [`Stopped`](StartError::Stopped): [`stop`](Self::stop) was called before the caches were synced.
    /// - [`Lease`](StartError::Lease): the lease is misconfigured, or was lost before the caches were synced. Everything
    ///   is stopped again.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the controllers that have started keep running; only the wait ends. Nothing is started
    /// by a start that was dropped while it waited for the end of a stop.
    pub async fn start(&self, workers: impl Into<Option<usize>>) -> Result<(), StartError> {
        let workers = workers.into();
        self.core.options.check_workers(workers)?;
        if let Some(Election::Invalid(error)) = &self.core.options.election {
            return Err(error.clone().into());
        }
        // Before any handler runs, so that its first panic is recorded with a location.
        panics::note();
        let (stopped, synced) = loop {
            match self.set_running(workers)? {
                Started::Now(stopped, synced) => break (stopped, synced),
                Started::After(stop) => drop(stop.await),
            }
        };
        let caches = &self.core.caches;
        let filled = caches.wait_for_sync(self.core.options.sync_timeout);
        let filled = tokio::select! {
            biased;
            filled = stopped.run_until_cancelled(filled) => filled,
            // A process that waited on would neither handle the kinds that are synced nor stand by.
            reason = self.lease_lost() => {
                let _ = self.stop_if(|| !stopped.is_cancelled()).await;
                return Err(StartError::Lease(reason));
            }
        };
        match filled {
            None => Err(StartError::Stopped),
            Some(Ok(())) => {
                // It has no receiver without a ring.
                let _ = synced.send(());
                duplicates::warn_of_any(&self.core);
                Ok(())
            }
            Some(Err(error)) => {
                // Only the sync error is returned: it is the reason why this stop may leave keys unprocessed. If
                // another caller has stopped this run meanwhile, `stopped` is cancelled, and a later run must not be
                // stopped.
                let _ = self.stop_if(|| !stopped.is_cancelled()).await;
                Err(error.into())
            }
        }
    }

    /// Starts the controllers in use, unless a stop has to end first.
    fn set_running(&self, workers: Option<usize>) -> Result<Started, StartError> {
        let core = &self.core;
        let mut state = core.state.lock();
        match &state.life {
            Life::Stopped => {}
            Life::Running(_) => return Err(StartError::AlreadyStarted),
            Life::Stopping(stop) => return Ok(Started::After(stop.clone())),
        }
        let mut run = FactoryRun::new(workers, &core.options, &core.watched);
        let stopped = run.stopping.drain.clone();
        let (synced, start) = oneshot::channel();
        // Before any controller is spawned: a controller reads its abort token, which is the election's, when it is
        // spawned.
        if let Some(election) = &core.options.election {
            let (caches, timeout) = (core.caches.clone(), core.options.sync_timeout);
            let clients = core.caches.clients();
            run.take_part(election, clients, async move {
                // If the future of the start was dropped, nothing else waits for the caches.
                if start.await.is_err() {
                    while caches.wait_for_sync(timeout).await.is_err() {
                        time::sleep(SYNC_RETRY).await;
                    }
                }
            });
        }
        core.caches.start();
        for slot in core.slots() {
            if slot.in_use().is_some() {
                run.own(&slot);
            }
        }
        for follower in &state.followers {
            run.follow(follower);
        }
        // A factory may be started only for its caches, which needs no handler.
        if !core.has_handlers(&state) && core.caches.status().is_empty() {
            tracing::warn!(
                "factory started without handlers; it does nothing until one is registered"
            );
        }
        state.life = Life::Running(Box::new(run));
        core.phase.send_replace(FactoryPhase::Running);
        tracing::debug!(target: "lariat::factory", workers, "started");
        Ok(Started::Now(stopped, synced))
    }

    /// Starts the factory, runs it until `shutdown` resolves, and stops it.
    ///
    /// `shutdown` is any future; its output is ignored. If it resolves while the start waits for caches, the factory is
    /// stopped as well. If the lease is lost, this method does not wait for `shutdown`.
    ///
    /// ```no_run
    /// # async fn example(factory: lariat::SharedControllerFactory)
    /// # -> Result<(), lariat::controller::RunError> {
    /// factory.run(5, async { tokio::signal::ctrl_c().await.ok() }).await
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start) and [`stop`](Self::stop), or [`Lost`](RunError::Lost) if the lease was lost. If
    /// `shutdown` resolves while the start still waits, the start's error is not returned.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the controllers that have started keep running. If `shutdown` had resolved, the stop
    /// continues as for [`stop`](Self::stop).
    pub async fn run<T>(
        &self,
        workers: impl Into<Option<usize>>,
        shutdown: impl Future<Output = T>,
    ) -> Result<(), RunError> {
        notices::run_without_subscriber();
        let mut shutdown = pin!(shutdown);
        tokio::select! {
            biased;
            // Polled first, so that a signal handler is installed by the first poll, before any handler is called.
            _ = &mut shutdown => return self.stop_run(self.lease()).await,
            started = self.start(workers) => match started {
                Err(StartError::Lease(reason @ LeaseError::Lost { .. })) => return Err(RunError::Lost(reason)),
                started => started?,
            },
        }
        self.run_until(shutdown).await
    }

    /// Runs until `shutdown` resolves or the lease is lost, and stops.
    ///
    /// `shutdown` is any future; its output is ignored.
    ///
    /// # Errors
    ///
    /// As for [`stop`](Self::stop), or [`Lost`](RunError::Lost) if the lease of the [leader
    /// election](crate::FactoryBuilder::leader_election) or of the ring was lost.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before `shutdown` resolves changes nothing; afterwards as for [`stop`](Self::stop).
    pub async fn run_until<T>(&self, shutdown: impl Future<Output = T>) -> Result<(), RunError> {
        let lease = self.lease();
        tokio::select! {
            biased;
            _ = shutdown => {}
            _ = self.lease_lost() => {}
        }
        self.stop_run(lease).await
    }

    /// Stops a run, whose lease may be lost before the stop or during it.
    async fn stop_run(&self, lease: Option<LostLease>) -> Result<(), RunError> {
        let stopped = self.stop().await;
        match lease.as_ref().and_then(LostLease::known) {
            // Its dropped calls are all that the stop's own error would add.
            Some(reason) => Err(RunError::Lost(reason.clone())),
            None => Ok(stopped?),
        }
    }

    /// Returns the lease of the present run, to learn of its loss.
    fn lease(&self) -> Option<LostLease> {
        self.core.state.lock().life.run().and_then(FactoryRun::lost)
    }

    /// Waits until the lease of this run is lost, and returns the reason.
    ///
    /// Without an election, or if the factory does not run, it never resolves.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: once the lease is lost, every call resolves immediately until the factory is stopped.
    pub async fn lease_lost(&self) -> LeaseError {
        match self.lease() {
            Some(lease) => lease.reason().await,
            None => std::future::pending().await,
        }
    }

    /// Stops the factory: ends the watches, drains the queues, joins all tasks.
    ///
    /// Keys that are due when the stop begins are processed within the [grace
    /// period](crate::FactoryBuilder::grace_period). Retries, delayed keys, and keys that are enqueued during the stop
    /// are kept for the next start. A second stop waits for the first, and returns the same result. Stopping a factory
    /// that does not run does nothing.
    ///
    /// The number of remaining keys is logged when the stop begins, and the running calls every few seconds.
    ///
    /// The grace period bounds the wait for calls. A cache that is [saved for the next
    /// start](lariat_cache::CacheFactoryBuilder::warm_restart) may take longer, up to ten seconds if the API server
    /// does not answer. A [lease](crate::FactoryBuilder::leader_election) is released when all calls have ended,
    /// without waiting for that; the release takes up to ten seconds if the API server does not answer. If calls were
    /// dropped, it is not released but expires, since a request that such a call has sent may still arrive.
    ///
    /// A handler that awaits the stop of its own factory waits for itself until the grace period is over, and is
    /// dropped. Spawn the stop on a task of its own, or resolve the `shutdown` of [`run`](Self::run).
    ///
    /// # Errors
    ///
    /// Some keys that were due were not processed within the grace period, or before the lease was lost. The factory
    /// has stopped nevertheless; the keys are kept for the next start.
    ///
    /// # Cancel safety
    ///
    /// The stop begins with the first poll. It runs on a task of its own: dropping the future afterwards changes
    /// nothing but that nobody gets the result. A later stop or start waits for its end.
    pub async fn stop(&self) -> Result<(), StopError> {
        self.stop_if(|| true).await
    }

    /// Stops the run if `wanted` returns true, and waits for the stop that is in progress.
    async fn stop_if(&self, wanted: impl FnOnce() -> bool) -> Result<(), StopError> {
        match self.begin_stop(wanted) {
            Some(stop) => stop.await,
            None => Ok(()),
        }
    }

    /// Begins to stop the run if `wanted` returns true; returns the stop that is in progress.
    fn begin_stop(&self, wanted: impl FnOnce() -> bool) -> Option<StopEnd> {
        let core = &self.core;
        let mut state = core.state.lock();
        match &state.life {
            Life::Stopped => return None,
            Life::Stopping(stop) => return Some(stop.clone()),
            Life::Running(_) if !wanted() => return None,
            Life::Running(_) => {}
        }
        let Life::Running(run) = std::mem::take(&mut state.life) else {
            unreachable!("it was running under the same lock");
        };
        let (begun, beginning) = oneshot::channel();
        // On a task, so that dropping the future of this stop neither shortens the grace period nor lets a start begin
        // beside it.
        let (run, end) = stop::spawn(core, run, beginning);
        state.life = Life::Stopping(end.clone());
        core.phase.send_replace(FactoryPhase::Stopping);
        drop(state);
        tracing::debug!(target: "lariat::factory", "stopping");
        // Before the caches stop, which the task does: it notes which of them are synced.
        run.begin_stop();
        let _ = begun.send(());
        Some(end)
    }

    /// Returns a receiver of the factory's present phase.
    ///
    /// The receiver does not keep the factory alive: it is closed when the last clone is dropped. A reader sees the
    /// newest phase, and may miss phases in between.
    ///
    /// ```no_run
    /// use lariat::controller::FactoryPhase;
    /// use lariat::SharedControllerFactory;
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
