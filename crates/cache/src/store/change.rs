//! The input of a store (deltas), and its output (changes).

use std::cmp::Ordering;
use std::sync::Arc;

use lariat_core::{Cause, ObjectKey, RawObject};

use super::object::CachedObject;

/// A change of one object, as a watch reported it.
#[derive(Debug)]
pub(crate) enum Delta {
    /// The object exists, in this state.
    Present(RawObject),
    /// The object was deleted; this was its last state.
    Deleted(RawObject),
}

/// How much of each object a reflector reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Content {
    /// The whole object.
    #[default]
    Whole,
    /// Its metadata only.
    MetadataOnly,
}

/// A change in a store, as subscribers receive it.
///
/// Changes of an object are published in the order in which the store applied them. [`Changes`](crate::Changes) merges
/// the unread changes of an object into one.
///
/// ```
/// use lariat::cache::Change;
///
/// fn log(change: &Change) {
///     match change {
///         Change::Added { object, initial: false } => println!("{} created", object.key()),
///         Change::Deleted { last } => println!("{} deleted", last.key()),
///         other => println!("{}: {}", other.key(), other.cause()),
///     }
/// }
/// # let _ = log;
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Change {
    /// The object was added to the cache.
    Added {
        /// The object.
        object: Arc<CachedObject>,
        /// Whether it existed when the cache synced, rather than being created afterwards.
        initial: bool,
    },
    /// The object has another version.
    Updated {
        /// The state before.
        old: Arc<CachedObject>,
        /// The state now.
        new: Arc<CachedObject>,
    },
    /// The object was deleted.
    Deleted {
        /// Its last known state.
        last: Arc<CachedObject>,
    },
    /// A scheduled resync published the object again; nothing has changed.
    Resynced {
        /// The object.
        object: Arc<CachedObject>,
    },
}

impl Change {
    /// Returns whether the new state is not later than the old one.
    ///
    /// That is so after a restore of the API server from a backup, unless the object has got a later version since.
    /// Generations, labels and annotations say nothing then: another history may have given them to other states.
    #[must_use]
    pub fn is_rewound(&self) -> bool {
        let Self::Updated { old, new } = self else {
            return false;
        };
        let order = new.version().compare(old.version());
        let has_version = !new.version().is_empty();
        has_version
            && old.uid() == new.uid()
            && matches!(order, Some(Ordering::Less | Ordering::Equal))
    }

    /// Returns the key of the object.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        self.object().key()
    }

    /// Returns the new state of the object, or its last one if it was deleted.
    #[must_use]
    pub fn object(&self) -> &Arc<CachedObject> {
        match self {
            Self::Added { object, .. } | Self::Resynced { object } => object,
            Self::Updated { new, .. } => new,
            Self::Deleted { last } => last,
        }
    }

    /// Returns the change as a cause, for the work queue.
    #[must_use]
    pub fn cause(&self) -> Cause {
        match self {
            Self::Added { object, .. } => Cause::Added {
                version: object.version().clone(),
            },
            Self::Updated { old, new } => Cause::Updated {
                from: old.version().clone(),
                to: new.version().clone(),
            },
            Self::Deleted { last } => Cause::Deleted {
                uid: last.uid().clone(),
                version: last.version().clone(),
            },
            Self::Resynced { .. } => Cause::Resync,
        }
    }
}
