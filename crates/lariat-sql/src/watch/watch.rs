//! Watches of what a query matches.

use std::sync::Arc;

use lariat_cache::CachedObject;
use lariat_core::Gvk;
use tokio::sync::watch;
use tokio::task;

use super::history::{Event, History, Newest, Next, Over, ObjectState};
use crate::query::{Others, Plan, QueryError};
use crate::revision::{Position, Revision};
use crate::schema::Schema;

/// What happened to an object that a query finds, or found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum WatchEvent {
    /// The object is created, or meets the conditions now.
    Added(Watched),
    /// The object has changed, and meets the conditions before and after.
    Modified(Watched),
    /// The object is deleted, or does not meet the conditions any more.
    ///
    /// It is in the state that met them.
    Deleted(Watched),
}

/// A state of an object that is watched.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Watched {
    /// The object.
    pub object: Arc<CachedObject>,
    /// From where a watch goes on behind this event.
    pub revision: Revision,
}

impl WatchEvent {
    /// Returns the state of the object.
    #[must_use]
    pub fn watched(&self) -> &Watched {
        match self {
            Self::Added(watched) | Self::Modified(watched) | Self::Deleted(watched) => watched,
        }
    }
}

/// A watch that cannot begin or go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// What happened since the revision is not known any more.
    #[error(
        "{kind} does not know what happened since {since}: it is too old, or of another cache; list again"
    )]
    TooOld {
        /// The kind.
        kind: Gvk,
        /// Where the watch should begin.
        since: Revision,
    },
    /// The reader was slower than the changes, and has missed some.
    #[error("the watch of {kind} is too slow: what follows {at} is not kept any more; list again")]
    TooSlow {
        /// The kind.
        kind: Gvk,
        /// What was read last.
        at: Revision,
    },
    /// The query makes no sense.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// Another process writes the cache, and this one only reads it.
    #[error(
        "{kind} cannot be watched here, for another replica writes the SQL cache: watch it there, or list again from time to time"
    )]
    Elsewhere {
        /// The kind.
        kind: Gvk,
    },
    /// The cache has stopped.
    #[error("the SQL cache of {kind} has stopped")]
    Stopped {
        /// The kind.
        kind: Gvk,
    },
}

/// The changes of what a query finds, in their order, from a revision on.
///
/// Each change comes once it is written, so a list after an event includes it. Nothing is left out: a reader
/// that is too slow for the history of the kind is cut off with [`WatchError::TooSlow`], and holds up neither the cache nor
/// others. It ends after an error.
#[derive(Debug)]
pub struct Watch {
    schema: Schema,
    plan: Plan,
    history: Arc<History>,
    newest: watch::Receiver<Newest>,
    at: Position,
    version: u64,
    is_over: bool,
}

impl Watch {
    /// Begins behind a revision of this history.
    ///
    /// # Errors
    ///
    /// The revision is of another process, or too old.
    pub(crate) fn new(
        schema: &Schema,
        plan: Plan,
        history: &Arc<History>,
        since: Revision,
    ) -> Result<Self, WatchError> {
        let too_old = || WatchError::TooOld {
            kind: schema.gvk().clone(),
            since,
        };
        let at = since
            .place()
            .filter(|place| place.history == history.number());
        let at = at.ok_or_else(too_old)?;
        if matches!(history.after(at.change), Next::Gone) {
            return Err(too_old());
        }
        Ok(Self {
            schema: schema.clone(),
            plan,
            newest: history.newest(),
            history: Arc::clone(history),
            at,
            version: since.version(),
            is_over: false,
        })
    }

    /// Waits for the next change; none after an error.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Result<WatchEvent, WatchError>> {
        while !self.is_over {
            match self.history.after(self.at.change) {
                Next::Event(event) => {
                    self.at.change = event.change;
                    self.version = event.version;
                    if let Some(event) = self.seen(&event) {
                        return Some(Ok(event));
                    }
                    // A thousand changes may be of others.
                    task::consume_budget().await;
                }
                // The history has the sender, so it does not fail.
                Next::NotYet => drop(self.newest.changed().await),
                Next::Over(over) => {
                    self.is_over = true;
                    let kind = self.schema.gvk().clone();
                    return Some(Err(match over {
                        Over::Stopped => WatchError::Stopped { kind },
                        Over::Elsewhere => WatchError::Elsewhere { kind },
                    }));
                }
                Next::Gone => {
                    self.is_over = true;
                    let (kind, at) = (self.schema.gvk().clone(), self.revision());
                    return Some(Err(WatchError::TooSlow { kind, at }));
                }
            }
        }
        None
    }

    /// Returns up to where it has read; another watch can go on from there.
    #[must_use]
    pub fn revision(&self) -> Revision {
        Revision::new(self.version, Some(self.at))
    }

    /// Returns what a change means for the query.
    fn seen(&self, event: &Event) -> Option<WatchEvent> {
        let meets = |state: &ObjectState| {
            let row = state.row(&self.schema);
            row.is_some_and(|row| self.plan.matches(&self.schema, row, Others::default()))
        };
        let old = event.old.as_ref().filter(|state| meets(state));
        let new = event.new.as_ref().filter(|state| meets(state));
        let watched = |state: &ObjectState| Watched {
            object: Arc::clone(&state.object),
            revision: self.revision(),
        };
        match (old, new) {
            (None, None) => None,
            (None, Some(new)) => Some(WatchEvent::Added(watched(new))),
            (Some(_), Some(new)) => Some(WatchEvent::Modified(watched(new))),
            (Some(old), None) => Some(WatchEvent::Deleted(watched(old))),
        }
    }
}
