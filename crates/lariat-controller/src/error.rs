//! What registering, starting and stopping can fail with.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{IdentityError, SyncError};
use lariat_core::{Gvk, ObjectKey, debug_as_description};
use lariat_lease::LeaseError;

/// A handler that was not registered. Nothing else was touched.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// Another handler of the kind has the name.
    #[error(
        "{gvk} has a handler named {name:?} already; names distinguish handlers, choose another"
    )]
    NameTaken {
        /// The kind.
        gvk: Gvk,
        /// The name.
        name: String,
    },
    /// A handler that may not be called at all.
    #[error(
        "handler {name:?} of {gvk} has concurrency 0 and would never be called; give at least 1"
    )]
    NoConcurrency {
        /// The kind.
        gvk: Gvk,
        /// The name.
        name: String,
    },
    /// A handler whose identity cannot be sent.
    #[error("handler {name:?} of {gvk} cannot write as it should")]
    Identity {
        /// The kind.
        gvk: Gvk,
        /// The name.
        name: String,
        /// What is wrong with it.
        source: IdentityError,
    },
    /// A controller of another factory, in a transaction.
    #[error(
        "the controller of {gvk} is of another factory than the transaction; each factory has its own"
    )]
    ForeignController {
        /// The kind.
        gvk: Gvk,
    },
    /// A handler needs a name.
    #[error("a handler of {gvk} has an empty name; name it after what it does")]
    EmptyName {
        /// The kind.
        gvk: Gvk,
    },
}

/// A start that did not come about. Nothing runs.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Workers are needed to call handlers.
    #[error("{of} 0 workers and would never call a handler; give the number of keys it shall handle at a time",
        of = gvk.as_ref().map_or_else(|| "the factory has".to_owned(), |gvk| format!("{gvk} has")))]
    NoWorkers {
        /// The kind whose options say so; none if the default or the start itself does.
        gvk: Option<Gvk>,
    },
    /// The factory runs.
    #[error(
        "the factory is started already; kinds and handlers that come later start by themselves"
    )]
    AlreadyStarted,
    /// A stop came before the caches were filled.
    #[error("the factory was stopped before its caches were filled")]
    Stopped,
    /// Some caches were not filled.
    #[error(transparent)]
    NotSynced(#[from] SyncError),
    /// The lease of the leader election is configured so that it cannot be held.
    #[error(transparent)]
    Lease(#[from] LeaseError),
}

/// A stop that had to cut work short. Everything has stopped.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} not handled within the grace period of {grace:?}: {}",
    were(unfinished.len()),
    names(unfinished)
)]
#[non_exhaustive]
pub struct StopError {
    /// What was not finished; it is kept for the next start.
    pub unfinished: Vec<Unfinished>,
    /// How long was waited.
    pub grace: Duration,
}

/// A key that was not handled before a stop ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unfinished {
    /// The kind.
    pub gvk: Gvk,
    /// The key.
    pub key: ObjectKey,
    /// The handler whose call was dropped in the middle; none if none of them was called for the key.
    pub handler: Option<Arc<str>>,
}

/// What a run from start to stop can fail with.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The start did not come about.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The stop had to cut work short.
    #[error(transparent)]
    Stop(#[from] StopError),
    /// The lease of the leader election is lost.
    ///
    /// Calls of handlers were dropped, and the factory has stopped.
    ///
    /// A program that ends with it is started again by Kubernetes, and stands by. One that goes on can run the factory
    /// again.
    #[error(transparent)]
    Lost(LeaseError),
}

debug_as_description!(RegisterError, StartError, StopError, RunError);

/// How many keys, handlers and so on a text names.
pub(crate) const NAMED: usize = 5;

fn were(keys: usize) -> String {
    match keys {
        1 => "1 key was".to_owned(),
        keys => format!("{keys} keys were"),
    }
}

/// Writes a number of keys.
pub(crate) fn keys(count: usize) -> String {
    match count {
        1 => "1 key".to_owned(),
        count => format!("{count} keys"),
    }
}

fn names(unfinished: &[Unfinished]) -> String {
    // What was dropped in the middle says more than what waited behind it.
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
            Some(handler) => write!(f, "(handler {handler} did not end)"),
            None => f.write_str("(not begun)"),
        }
    }
}
