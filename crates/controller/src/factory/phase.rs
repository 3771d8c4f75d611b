//! Where a factory is between its start and its stop.

use std::fmt;

/// Where a factory is between its start and its stop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FactoryPhase {
    /// The factory has not been started.
    #[default]
    Idle,
    /// The factory was started; its caches may not be synced yet.
    Running,
    /// The factory is stopping: keys that were due are being processed.
    Stopping,
    /// The factory has stopped, and can be started again.
    Stopped,
}

impl fmt::Display for FactoryPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "not started",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        })
    }
}
