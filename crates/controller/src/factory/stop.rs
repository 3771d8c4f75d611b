//! The task that stops a run of a factory.

use std::sync::Arc;

use futures::FutureExt as _;
use tokio::sync::oneshot;

use super::FactoryCore;
use super::life::{Life, StopEnd};
use super::phase::FactoryPhase;
use super::run::FactoryRun;
use crate::error::StopError;

/// Spawns the task that stops a run once `begun` resolves; returns the run, and the end of its stop.
///
/// The task may panic, or be dropped with its runtime. Then whoever waits for the end joins the tasks of the run. So
/// the factory has not stopped before they have ended, on whatever runtime it is started next.
pub(super) fn spawn(
    factory: &Arc<FactoryCore>,
    run: Box<FactoryRun>,
    begun: oneshot::Receiver<()>,
) -> (Arc<FactoryRun>, StopEnd) {
    let run: Arc<FactoryRun> = run.into();
    let stop = stop(Arc::clone(factory), Arc::clone(&run), begun);
    let task = factory.stops.spawn_on(stop, run.runtime());
    // Weak, because the factory holds the end. Whoever waits for it has a handle of the factory.
    let (factory, ending) = (Arc::downgrade(factory), Arc::clone(&run));
    let end = async move {
        match (task.await, factory.upgrade()) {
            (Ok(stopped), _) => stopped,
            (Err(error), Some(factory)) => {
                let grace = factory.options.grace_period;
                let (stopped, ()) = tokio::join!(ending.abort(grace), factory.caches.stop());
                factory.mark_stopped();
                // Last, since a subscriber that panics may be the reason. A panic has been printed by the panic hook.
                let panicked = error.is_panic();
                tracing::error!(
                    panicked,
                    "the task of a stop ended early, and running calls were dropped"
                );
                stopped
            }
            (Err(_), None) => Ok(()),
        }
    };
    (run, end.boxed().shared())
}

/// Drains a run and joins its tasks, and stops the caches.
async fn stop(
    factory: Arc<FactoryCore>,
    run: Arc<FactoryRun>,
    begun: oneshot::Receiver<()>,
) -> Result<(), StopError> {
    let _cancelled = Cancelled(&run);
    // An error means that it will not be sent any more.
    let _ = begun.await;
    // Together: the caches may have to wait for a server that does not answer, and the lease must not be held for so
    // long. The first poll of the run's stop begins the drain.
    let drained = run.stop(factory.options.grace_period);
    let (stopped, ()) = tokio::join!(drained, factory.caches.stop());
    tracing::debug!(target: "lariat::factory", "stopped");
    // Before anybody is told: a start that has waited for this stop must find it ended.
    factory.mark_stopped();
    stopped
}

/// Cancels the tasks of a run when its stop ends, in whichever way.
struct Cancelled<'a>(&'a FactoryRun);

impl Drop for Cancelled<'_> {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl FactoryCore {
    /// Ends the stop that is in progress, after the tasks of the run have ended.
    fn mark_stopped(&self) {
        let ended = std::mem::take(&mut self.state.lock().life);
        self.phase.send_replace(FactoryPhase::Stopped);
        debug_assert!(matches!(ended, Life::Stopping(_)), "a stop was in progress");
    }
}
