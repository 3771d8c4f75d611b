//! The state of one reconcile call.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lariat_cache::CachedObject;
use lariat_controller::Outcome;
use lariat_core::Gvk;
use parking_lot::Mutex;

use super::extensions::Extensions;

/// The state of one reconcile call.
pub(crate) struct CallState {
    /// The newest state of the object that the call has seen.
    ///
    /// Writes use it, so that the second write of a call does not conflict with the first.
    newest: Mutex<Arc<CachedObject>>,
    /// The reconciler that is called.
    reconciler: OfReconciler,
    /// The delay of the next call and what the call waits for, if the call succeeds.
    next: Arc<Mutex<Next>>,
    /// Set once the call has succeeded.
    succeeded: Arc<AtomicBool>,
    /// The state that features keep for this call.
    features: Extensions,
}

/// The part of the outcome that features add.
#[derive(Default)]
struct Next {
    again: Option<Duration>,
    waits: Option<String>,
}

/// The facts about the reconciler that its calls need.
#[derive(Clone, Default)]
pub(crate) struct OfReconciler {
    /// The type of the condition that reports its errors.
    pub(crate) reported: Option<Arc<str>>,
    /// The kinds whose changes call the reconciler for the owners of the objects.
    pub(crate) owned: Arc<[Gvk]>,
    /// The names that the reconciler had before.
    pub(crate) former: Arc<[String]>,
    /// Set once the reconciler has ended.
    pub(crate) ended: Arc<AtomicBool>,
}

impl CallState {
    pub(super) fn new(state: &Arc<CachedObject>, reconciler: OfReconciler) -> Self {
        Self {
            newest: Mutex::new(Arc::clone(state)),
            reconciler,
            next: Arc::default(),
            succeeded: Arc::default(),
            features: Extensions::default(),
        }
    }

    /// Returns the state of the same call, with a newer state of the object.
    pub(super) fn with_state(&self, state: &Arc<CachedObject>) -> Self {
        Self {
            // Requests for another call are those of the whole call, whatever state it continues with.
            next: Arc::clone(&self.next),
            succeeded: Arc::clone(&self.succeeded),
            ..Self::new(state, self.reconciler.clone())
        }
    }

    /// Returns whether changes of a kind, in any version, call the reconciler.
    pub(crate) fn owns(&self, gvk: &Gvk) -> bool {
        let mut owned = self.reconciler.owned.iter();
        owned.any(|each| each.group() == gvk.group() && each.kind() == gvk.kind())
    }

    /// Returns the names that the reconciler had before.
    pub(crate) fn former(&self) -> &[String] {
        &self.reconciler.former
    }

    /// Returns the flag that is set once the reconciler has ended.
    pub(crate) fn ended(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.reconciler.ended)
    }

    /// Requests another call after a delay at the latest; the shortest delay wins.
    pub(crate) fn call_again_within(&self, delay: Duration) {
        let again = &mut self.next.lock().again;
        *again = Some(again.map_or(delay, |known| known.min(delay)));
    }

    /// Records what the call waits for, for the run history.
    pub(crate) fn waits_for(&self, what: String) {
        self.next.lock().waits = Some(what);
    }

    /// Returns whether the call has succeeded, as a value that outlives the call.
    pub(crate) fn succeeded(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.succeeded)
    }

    /// Adds the delay of the next call, and what is waited for, to an outcome of a call that has succeeded.
    pub(crate) fn complete(&self, mut outcome: Outcome) -> Outcome {
        self.succeeded.store(true, Ordering::Relaxed);
        let next = self.next.lock();
        if let Some(delay) = next.again {
            outcome = outcome.requeue_within(delay);
        }
        match &next.waits {
            Some(what) => outcome.or_note(what.as_str()),
            None => outcome,
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

    /// Sets the newest state to the answer to a write.
    ///
    /// It does nothing if the written version was not the newest: the answer may then contain changes that the call has
    /// not seen.
    pub(crate) fn saw_next(&self, version: &str, state: CachedObject) {
        let mut newest = self.newest.lock();
        if state.uid() == newest.uid() && newest.version().to_string() == version {
            *newest = Arc::new(state);
        }
    }

    /// Returns the type of the condition that reports the reconciler's errors.
    pub(crate) fn reported(&self) -> Option<&Arc<str>> {
        self.reconciler.reported.as_ref()
    }

    /// Returns a feature's state of this call, which is its default at first.
    pub(crate) fn feature<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        self.features.get()
    }
}
