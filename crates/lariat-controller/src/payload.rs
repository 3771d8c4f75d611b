//! What travels with a key through the queue.

use std::sync::Arc;

use lariat_cache::{CachedObject, Change};
use lariat_core::{Cause, Causes};

/// Why a key is queued, and what is left of an object that was deleted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Payload {
    pub(crate) causes: Causes,
    /// The last state of the object that was deleted last. It is kept as long as a handler has not
    /// handled the deletion, and no longer.
    pub(crate) deleted: Option<Arc<CachedObject>>,
}

impl lariat_queue::Payload for Payload {
    fn merge(&mut self, later: Self) {
        self.causes.extend(later.causes);
        if later.deleted.is_some() {
            self.deleted = later.deleted;
        }
    }
}

impl From<Cause> for Payload {
    fn from(cause: Cause) -> Self {
        Self {
            causes: cause.into(),
            deleted: None,
        }
    }
}

impl From<&Change> for Payload {
    fn from(change: &Change) -> Self {
        let deleted = match change {
            Change::Deleted { last } => Some(Arc::clone(last)),
            _ => None,
        };
        Self {
            causes: change.cause().into(),
            deleted,
        }
    }
}
