//! Errors of registering handlers, and of starting, running and stopping a factory.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{IdentityError, SyncError};
use lariat_core::{Gvk, ObjectKey, debug_as_description};
use lariat_lease::LeaseError;

/// The error of a registration. Nothing was registered.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// Another handler of the kind has this name.
    #[error("{gvk} already has a handler named {name:?}; choose another name")]
    NameTaken {
        /// The kind.
        gvk: Gvk,
        /// The name.
        name: String,
    },
    /// The concurrency limit is zero.
    #[error(
        "handler {name:?} of {gvk} has concurrency 0 and would never be called; set at least 1"
    )]
    NoConcurrency {
        /// The kind.
        gvk: Gvk,
        /// The name.
        name: String,
    },
    /// The handler's identity cannot be sent in HTTP headers.
    #[error("the identity of handler {name:?} of {gvk} is invalid")]
    Identity {
        /// The kind.
        gvk: Gvk,
        /// The name.
        name: String,
        /// Why the identity is invalid.
        source: IdentityError,
    },
    /// A transaction names a controller of another factory.
    #[error(
        "the controller of {gvk} belongs to another factory than the transaction; use one factory for both"
    )]
    ForeignController {
        /// The kind.
        gvk: Gvk,
    },
    /// The name is empty.
    #[error("a handler of {gvk} has an empty name; name it after what it does")]
    EmptyName {
        /// The kind.
        gvk: Gvk,
    },
}

/// The error of pausing or resuming a handler that the kind does not have.
///
/// Nothing has changed.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{gvk} has no handler named {name:?}; its handlers: {handlers}")]
#[non_exhaustive]
pub struct UnknownHandler {
    /// The kind.
    pub gvk: Gvk,
    /// The name.
    pub name: String,
    /// The names of the kind's handlers.
    pub handlers: String,
}

/// The error of a start. Nothing is running.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The number of workers is zero.
    #[error("{of} 0 workers and would never call a handler; set at least 1",
        of = gvk.as_ref().map_or_else(|| "the factory has".to_owned(), |gvk| format!("{gvk} has")))]
    NoWorkers {
        /// The kind whose options set zero.
        ///
        /// None for the default or the argument of the start.
        gvk: Option<Gvk>,
    },
    /// The factory is running already.
    #[error(
        "the factory is already running; kinds and handlers that are added later start by themselves"
    )]
    AlreadyStarted,
    /// The factory was stopped before its caches were synced.
    #[error("the factory was stopped before its caches were synced")]
    Stopped,
    /// Some caches did not sync.
    #[error(transparent)]
    NotSynced(#[from] SyncError),
    /// The lease of the leader election or of the ring is misconfigured, or was lost before the caches were synced.
    #[error(transparent)]
    Lease(#[from] LeaseError),
}

/// The error of a stop that did not process all keys that were due.
///
/// Everything has stopped nevertheless.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} not processed within the grace period of {grace:?}: {}",
    were(unfinished.len()),
    names(unfinished)
)]
#[non_exhaustive]
pub struct StopError {
    /// The keys that were not processed; they are kept for the next start, unless no handler of their kind is left.
    pub unfinished: Vec<Unfinished>,
    /// The grace period.
    pub grace: Duration,
}

/// A key that was not processed before the grace period ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unfinished {
    /// The kind.
    pub gvk: Gvk,
    /// The key.
    pub key: ObjectKey,
    /// The handler whose call was dropped; none if no call for the key had begun.
    pub handler: Option<Arc<str>>,
}

/// The error of a run, from start to stop.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The start failed.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The stop did not process all keys that were due.
    #[error(transparent)]
    Stop(#[from] StopError),
    /// The lease was lost.
    ///
    /// Running calls were dropped, and the factory has stopped. A program that exits with this error is restarted by
    /// Kubernetes, and stands by. A program can also run the factory again.
    #[error(transparent)]
    Lost(LeaseError),
}

debug_as_description!(
    RegisterError,
    StartError,
    StopError,
    RunError,
    UnknownHandler
);

/// The text in place of the names of a kind that has no handlers.
pub(crate) const NO_HANDLERS: &str = "(none)";

/// The maximum number of keys or handlers that a text names.
pub(crate) const NAMED: usize = 5;

fn were(keys: usize) -> String {
    match keys {
        1 => "1 key was".to_owned(),
        keys => format!("{keys} keys were"),
    }
}

/// Formats a number of keys.
pub(crate) fn keys(count: usize) -> String {
    match count {
        1 => "1 key".to_owned(),
        count => format!("{count} keys"),
    }
}

fn names(unfinished: &[Unfinished]) -> String {
    // Dropped calls first: they explain why the keys behind them were not processed.
    let (dropped, waiting): (Vec<_>, Vec<_>) =
        unfinished.iter().partition(|each| each.handler.is_some());
    let all = dropped.into_iter().chain(waiting);
    let mut names: Vec<String> = all.take(NAMED).map(Unfinished::to_string).collect();
    if unfinished.len() > NAMED {
        names.push("…".to_owned());
    }
    names.join(", ")
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.gvk, self.key)?;
        match &self.handler {
            Some(handler) => write!(f, "(dropped in handler {handler})"),
            None => f.write_str("(not started)"),
        }
    }
}
