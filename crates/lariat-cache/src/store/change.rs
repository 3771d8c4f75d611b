//! What a store is given, and what it says happened.

use std::sync::Arc;

use lariat_core::{Cause, ObjectKey, RawObject};

use super::object::CachedObject;

/// What the reflector learned about one object from a watch.
#[derive(Debug)]
pub(crate) enum Delta {
    /// The object is there, in this state.
    Present(RawObject),
    /// The object is gone; this was its last state.
    Gone(RawObject),
}

impl Delta {
    pub(super) fn key(&self) -> &ObjectKey {
        match self {
            Self::Present(object) | Self::Gone(object) => object.key(),
        }
    }
}

/// How much of each object the reflector reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Content {
    /// The whole object.
    #[default]
    Whole,
    /// Its metadata.
    MetadataOnly,
}

/// One change of a store.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Change {
    /// The object came into sight.
    Added {
        /// The object.
        object: Arc<CachedObject>,
        /// Whether it was there when the cache was filled, rather than created since.
        initial: bool,
    },
    /// The object has another version.
    Updated {
        /// The state before.
        old: Arc<CachedObject>,
        /// The state now.
        new: Arc<CachedObject>,
    },
    /// The object is gone.
    Deleted {
        /// Its last known state.
        last: Arc<CachedObject>,
    },
    /// Nothing happened: the object is published again by schedule.
    Resynced {
        /// The object.
        object: Arc<CachedObject>,
    },
}

impl Change {
    /// Returns the key of the object.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        self.object().key()
    }

    /// Returns the object in its new state, or in its last one if it was deleted.
    #[must_use]
    pub fn object(&self) -> &Arc<CachedObject> {
        match self {
            Self::Added { object, .. } | Self::Resynced { object } => object,
            Self::Updated { new, .. } => new,
            Self::Deleted { last } => last,
        }
    }

    /// Returns the change as a cause of work.
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
