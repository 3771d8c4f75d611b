//! Watches of the objects that a query selects.

use std::sync::Arc;

use lariat_cache::CachedObject;
use lariat_core::Gvk;
use tokio::sync::watch;
use tokio::task;

use super::history::{Event, History, Newest, Next, ObjectState, Over};
use crate::query::{Others, Plan, QueryError};
use crate::revision::{Position, Revision};
use crate::schema::Schema;

/// A change of an object that a query selects, or has selected.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum WatchEvent {
    /// The object was created, or meets the conditions now.
    Added(WatchedObject),
    /// The object changed, and meets the conditions before and after.
    Modified(WatchedObject),
    /// The object was deleted, or no longer meets the conditions.
    ///
    /// This is its last state that met them.
    Deleted(WatchedObject),
}

/// The state of an object in a watch event.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WatchedObject {
    /// The object.
    pub object: Arc<CachedObject>,
    /// The revision from which a watch resumes after this event.
    pub revision: Revision,
}

impl WatchEvent {
    /// Returns the state of the object.
    #[must_use]
    pub fn watched(&self) -> &WatchedObject {
        match self {
            Self::Added(watched) | Self::Modified(watched) | Self::Deleted(watched) => watched,
        }
    }
}

/// The error of a watch that cannot start or continue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// The changes after the revision are no longer kept.
    #[error(
        "the changes of {kind} after revision {since} are not available: the revision is too old, or from another cache; list again"
    )]
    TooOld {
        /// The kind.
        kind: Gvk,
        /// The requested revision.
        since: Revision,
    },
    /// Changes that the reader has not read are no longer available.
    ///
    /// It was too slow, or a forbidden namespace has become readable.
    #[error(
        "the changes of {kind} after revision {at} are no longer available: the watch is too slow, or a namespace that was forbidden has become readable; list again"
    )]
    TooSlow {
        /// The kind.
        kind: Gvk,
        /// The last revision that was read.
        at: Revision,
    },
    /// The query is invalid.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// Another process writes the cache, and this one only reads it.
    #[error(
        "{kind} cannot be watched on this replica, because another one writes the SQL cache: watch it there, or list periodically"
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

/// The changes of the objects that a query selects, in order, from a revision on.
///
/// A change is returned once it is written, so a query after an event includes it. No change is skipped: a reader that
/// is too slow for the history of the kind gets [`WatchError::TooSlow`], and delays neither the cache nor other
/// watches. The watch ends after an error.
///
/// ```no_run
/// use lariat::sql::{Query, SqlKind};
///
/// # async fn example(pods: &SqlKind) -> Result<(), lariat::sql::WatchError> {
/// let mut watch = pods.watch(&Query::new(), None)?;
/// while let Some(event) = watch.next().await {
///     let event = event?;
///     println!("{} at {}", event.watched().object.key(), event.watched().revision);
/// }
/// # Ok(()) }
/// ```
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
    /// Starts after a revision of this history.
    ///
    /// # Errors
    ///
    /// Fails if the revision is of another process, or too old.
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
            .filter(|place| place.history == history.number())
            .ok_or_else(too_old)?;
        // Checked now, so that the caller lists at once rather than after the first event.
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

    /// Waits for the next change; `None` after an error.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses no change.
    pub async fn next(&mut self) -> Option<Result<WatchEvent, WatchError>> {
        while !self.is_over {
            match self.history.after(self.at.change) {
                Next::Event(event) => {
                    // Also for changes that the query does not select, so that the revision moves on.
                    self.at.change = event.change;
                    self.version = event.version;
                    if let Some(event) = self.seen(&event) {
                        return Some(Ok(event));
                    }
                    // A thousand changes in a row may be of other objects.
                    task::consume_budget().await;
                }
                // Cannot fail: the history has the sender.
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

    /// Returns the revision that was read; another watch can resume there.
    #[must_use]
    pub fn revision(&self) -> Revision {
        Revision::new(self.version, Some(self.at))
    }

    /// Returns the event of a change, if the query selects the object.
    fn seen(&self, event: &Event) -> Option<WatchEvent> {
        // Both states are evaluated: an object that leaves the conditions is a deletion for this watch.
        let meets = |state: &ObjectState| {
            let row = state.row(&self.schema);
            row.is_some_and(|row| self.plan.matches(&self.schema, row, Others::default()))
        };
        let old = event.old.as_ref().filter(|state| meets(state));
        let new = event.new.as_ref().filter(|state| meets(state));
        let watched = |state: &ObjectState| WatchedObject {
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
