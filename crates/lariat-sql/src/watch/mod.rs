//! Watches of queries.

mod history;
mod watch;

pub(crate) use history::{ObjectState, Event, History};
pub use watch::{Watch, WatchError, WatchEvent, Watched {
        match self {
            Self::Added(watched) | Self::Modified(watched) | Self::Deleted(watched) => watched,
        }
    }
}

/// The error of a watch that cannot start or continue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The changes since the revision are not kept any more.
    #[error(
        "the changes of {kind} since {since} are not kept: it is too old, or of another cache;
