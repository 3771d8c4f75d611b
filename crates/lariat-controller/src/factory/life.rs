//! Whether a factory runs, or is stopping.

use tokio::sync::watch;

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
pub(super) type StopResult = Option<Result<(), StopError>>;

/// The end of a stop, for those who wait for it.
#[derive(Clone)]
pub(super) struct StopEnd(watch::Receiver<StopResult>);

impl StopEnd {
    /// Returns the sender of the result as well.
    pub(super) fn new() -> (watch::Sender<StopResult>, Self) {
        let (ended, end) = watch::channel(None);
        (ended, Self(end))
    }

    /// Waits until the stop has ended, and returns its result.
    pub(super) async fn wait(mut self) -> Result<(), StopError> {
        match self.0.wait_for(Option::is_some).await {
            Ok(result) => result.clone().unwrap_or(Ok(())),
            // The runtime of the start has been shut down, and all tasks with it.
            Err(_) => Ok(()),
        }
    }
}
