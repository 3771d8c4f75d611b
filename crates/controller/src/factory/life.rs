//! Whether a factory runs, or is stopping.

use futures::future::{BoxFuture, Shared};

use super::run::FactoryRun;
use crate::error::StopError;

/// The end of a stop, for all who wait for it.
pub(super) type StopEnd = Shared<BoxFuture<'static, Result<(), StopError>>>;

/// The life of a factory. A run cannot begin before the tasks of the run before have ended.
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
