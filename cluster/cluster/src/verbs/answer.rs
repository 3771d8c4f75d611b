//! The answers of verbs.

use std::sync::Arc;

use lariat_apimachinery::object::Object;

use super::list::ListPage;
use super::watch::Watcher;
use crate::store::{Draft, EventType, Stored};

/// The answer of a verb, whatever format a client wants it in.
#[derive(Debug)]
pub(crate) enum Answer {
    /// An object under its version, as it is stored or would be.
    Object {
        stored: Arc<Stored>,
        success: Success,
    },
    /// The object that a creation would have stored; it has no version.
    DryRunCreation(Object),
    /// An object of a type of its own: a review, which has no other shape, or a `Scale`.
    Document {
        document: Object,
        success: Success,
    },
    /// The last state of a deleted object, which the API of its kind does not return.
    Deleted(Arc<Stored>),
    /// An action, such as a binding, was carried out.
    ActionDone,
    List(ListPage),
    Watch(Box<Watcher>),
}

/// The effect of a verb that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Success {
    /// It read, changed or deleted something.
    Done,
    Created,
    /// The effect comes later.
    Accepted,
}

impl Answer {
    /// Answers the state of an object that was there before.
    pub(super) fn object(stored: Arc<Stored>) -> Self {
        Self::Object {
            stored,
            success: Success::Done,
        }
    }

    /// Answers an object that is not stored, under a given version.
    pub(super) fn unstored(object: &Object, revision: u64) -> Self {
        Self::object(stamped(object, revision))
    }
}

/// Encodes an object that is not stored, under a given version.
pub(super) fn stamped(object: &Object, revision: u64) -> Arc<Stored> {
    Arc::new(Draft::new(object).stamp(revision, EventType::Added))
}
