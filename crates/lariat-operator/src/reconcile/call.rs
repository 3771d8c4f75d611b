//! The state of one reconcile call.

use std::any::Any;
use std::sync::Arc;

use lariat_cache::CachedObject;
use parking_lot::Mutex;

use super::extensions::Extensions;

/// The state of one reconcile call.
pub(crate) struct CallState {
    /// The newest state of the object that the call has seen.
    newest: Mutex<Arc<CachedObject>>,
    /// The type of the condition that reports the reconciler's errors.
    reported: Option<Arc<str>>,
    /// The state that features keep for this call.
    features: Extensions,
}

impl CallState {
    pub(super) fn new(state: &Arc<CachedObject>, reported: Option<Arc<str>>) -> Self {
        Self {
            newest: Mutex::new(Arc::clone(state)),
            reported,
            features: Extensions::default(),
        }
    }

    /// Returns the newest state of the object that the call has seen.
    pub(crate) fn newest(&self) -> Arc<CachedObject> {
        Arc::clone(&self.newest.lock())
    }

    /// Sets the newest state of the object.
    pub(crate) fn saw(&self, state: Arc<CachedObject>) {
        *self.newest.lock() = state;
    }

    /// Sets the newest state to the answer to a write, if the written version was the newest.
    pub(crate) fn saw_next(&self, version: &str, state: CachedObject) {
        let mut newest = self.newest.lock();
        if state.uid() == newest.uid() && newest.version().to_string() == version {
            *newest = Arc::new(state);
        }
    }

    /// Returns the type of the condition that reports the reconciler's errors.
    pub(crate) fn reported(&self) -> Option<&Arc<str>> {
        self.reported.as_ref()
    }

    /// Returns a feature's state of this call, at first its default.
    pub(crate) fn feature<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        self.features.get()
    }
}
