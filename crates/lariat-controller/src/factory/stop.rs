//! The task that stops a run of a factory.

use std::sync::Arc;

use tokio::sync::watch;

use super::FactoryCore;
use super::life::{Life, StopEnd, StopResult};
use super::phase::FactoryPhase;
use super::run::FactoryRun;

/// A stop, as its task owns it. Dropping it marks the factory as stopped.
pub(super) struct Stop {
    factory: Arc<FactoryCore>,
    ended: watch::Sender<StopResult>,
}

impl Stop {
    pub(super) fn new(factory: &Arc<FactoryCore>) -> (Self, StopEnd) {
        let (ended, end) = StopEnd::new();
        let factory = Arc::clone(factory);
        (Self { factory, ended }, end)
    }

    /// Drains a run and joins its tasks, and stops the caches.
    pub(super) async fn run(self, run: Box<FactoryRun>) {
        let core = &self.factory;
        // Together: the caches may have to wait for a server that does not answer, and the lease must not be held for
        // so long. The first poll of the run's stop begins the drain.
        let drained = run.stop(core.options.grace_period);
        let (stopped, ()) = tokio::join!(drained, core.caches.stop());
        // Before anybody is told: a start that has waited for this stop must find it ended.
        self.mark_stopped();
        self.ended.send_replace(Some(stopped));
    }

    fn mark_stopped(&self) {
        let mut state = self.factory.state.lock();
        if matches!(state.life, Life::Stopping(_)) {
            state.life = Life::Stopped;
            drop(state);
            tracing::debug!(target: "lariat::factory", "stopped");
            self.factory.phase.send_replace(FactoryPhase::Stopped);
        }
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        // The task may have panicked, or been dropped with its runtime. The next start must not wait for it.
        self.mark_stopped();
    }
}
