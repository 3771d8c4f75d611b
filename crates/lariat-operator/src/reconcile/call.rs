//! What one call of a reconciler did to its own object.

use std::any::Any;
use std::sync::Arc;

use lariat_cache::CachedObject;
use parking_lot::Mutex;

use super::extensions::Extensions;

/// What one reconcile did to its own object.
pub(crate) struct CallState {
    /// The newest state it has seen.
    newest: Mutex<Arc<CachedObject>>,
    /// The type of the condition in which its errors are reported.
    reported: Option<Arc<str>>,
    /// What features keep for this call.
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

    /// Returns the newest state of the object it has seen.
    pub(crate) fn newest(&self) -> Arc<CachedObject> {
        Arc::clone(&self.newest.lock())
    }

    /// Goes on with a state of the object.
    pub(crate) fn saw(&self, state: Arc<CachedObject>) {
        *self.newest.lock() = state;
    }

    /// Goes on with what a write made of the state of a version, if that state was the newest.
    pub(crate) fn saw_next(&self, version: &str, state: CachedObject) {
        let mut newest = self.newest.lock();
        if state.uid() == newest.uid() && newest.version().to_string() == version {
            *newest = Arc::new(state);
        }
    }

    /// Returns the type of the condition in which its errors are reported.
    pub(crate) fn reported(&self) -> Option<&Arc<str>> {
        self.reported.as_ref()
    }

    /// Returns what a feature keeps for this call: a default value at first.
    pub(crate) fn feature<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        self.features.get()
    }
}
