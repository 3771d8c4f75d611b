//! Whether a factory runs, and the stop of a run.

use std::sync::Arc;

use tokio::sync::watch;

use super::FactoryCore;
use super::phase::FactoryPhase;
use super::run::FactoryRun;
use crate::error::StopError;

/// The life of a factory. A run cannot begin before the stop of the run before has ended.
#[derive(Default)]
pub(super) enum Life {
    /// The factory was not started, or has stopped.
    #[default]
    Stopped,
    /// The factory runs.
    Running(Box<FactoryRun>),
    /// A task stops the last run.
    Stopping(StopEnd),
}

impl Life {
    /// Returns the present run; none while the factory is stopping or has stopped.
    pub(super) fn run(&self) -> Option<&FactoryRun> {
        match self {
            Self::Running(run) => Some(run),
            Self::Stopped | Self::Stopping(_) => None,
        }
    }

    pub(super) fn run_mut(&mut self) -> Option<&mut FactoryRun> {
        match self {
            Self::Running(run) => Some(run),
            Self::Stopped | Self::Stopping(_) => None,
        }
    }
}

/// The result of a stop; none while it lasts.
type StopResult = Option<Result<(), StopError>>;

/// The end of a stop, for those who wait for it.
#[derive(Clone)]
pub(super) struct StopEnd(watch::Receiver<StopResult>);

impl StopEnd {
    /// Waits until the stop has ended, and returns its result.
    pub(super) async fn wait(mut self) -> Result<(), StopError> {
        match self.0.wait_for(Option::is_some).await {
            Ok(result) => result.clone().unwrap_or(Ok(())),
            // The runtime of the start has been shut down, and all tasks with it.
            Err(_) => Ok(()),
        }
    }
}

/// A stop, as its task owns it. Dropping it marks the factory as stopped.
pub(super) struct Stop {
    factory: Arc<FactoryCore>,
    ended: watch::Sender<StopResult>,
}

impl Stop {
    pub(super) fn new(factory: &Arc<FactoryCore>) -> (Self, StopEnd) {
        let (ended, end) = watch::channel(None);
        let factory = Arc::clone(factory);
        (Self { factory, ended }, StopEnd(end))
    }

    /// Drains a run and joins its tasks, and stops the caches.
    pub(super) async fn run(self, run: Box<FactoryRun>) {
        let core = &self.factory;
        // Together: the caches may have to wait for a server that does not answer, and the lease must not be held for so
        // long. The first poll of the run's stop begins the drain.
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
