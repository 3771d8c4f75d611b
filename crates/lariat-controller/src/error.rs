//! What registering, starting and stopping can fail with.

use std::time::Duration;

use lariat_cache::{IdentityError, SyncError};
use lariat_core::{Gvk, ObjectKey, debug_as_description};

/// A handler that was not registered. Nothing else was touched.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// Another handler of the kind has the name.
    #[error(
        "{gvk} has a handler named {name:?} already; names tell handlers apart, choose another"
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
}

/// A stop that had to cut work short. Everything has stopped.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} keys were not handled within the grace period of {grace:?}: {}",
    unfinished.len(),
    names(unfinished)
)]
#[non_exhaustive]
pub struct StopError {
    /// The kinds and keys whose handlers were dropped in the middle, or not called any more.
    pub unfinished: Vec<(Gvk, ObjectKey)>,
    /// How long was waited.
    pub grace: Duration,
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
}

debug_as_description!(RegisterError, StartError, StopError, RunError);

fn names(unfinished: &[(Gvk, ObjectKey)]) -> String {
    const SHOWN: usize = 5;
    let mut names: Vec<String> = unfinished
        .iter()
        .take(SHOWN)
        .map(|(gvk, key)| format!("{gvk} {key}"))
        .collect();
    if unfinished.len() > SHOWN {
        names.push("…".to_owned());
    }
    names.join(", ")
}
