//! A reconciler's finalizer: added before the first reconcile, removed after the cleanup.

use std::sync::Arc;

use lariat_cache::{CachedObject, View};
use lariat_controller::{HandlerError, HandlerResult, Outcome, Predicate};
use lariat_core::{TableSize, Uid};
use parking_lot::Mutex;
use serde_json::json;

use super::cleaned::{Cleaned, Deletion};
use super::error::FinalizerNameError;
use super::finalizer::Finalizer;
use super::name;
use crate::reconcile::{Callback, Reconcile};
use crate::refusal::exempt;
use crate::wire::{ApiError, Attempt, Changed, Wire};

/// A finalizer with its cleanup function, and the deletions that it has cleaned up.
pub(crate) struct HeldFinalizer<K> {
    finalizer: Finalizer<K>,
    cleanup: Callback<K>,
    cleaned: Mutex<Cleaned>,
}

impl<K: View> HeldFinalizer<K> {
    pub(crate) fn new(finalizer: Finalizer<K>, cleanup: Callback<K>) -> Self {
        Self {
            finalizer,
            cleanup,
            cleaned: Mutex::default(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), FinalizerNameError> {
        name::check(&self.finalizer.name)
    }

    pub(crate) fn name(&self) -> Arc<str> {
        Arc::clone(&self.finalizer.name)
    }

    /// Returns whether an object has the finalizer.
    pub(crate) fn is_on(&self, object: &CachedObject) -> bool {
        self.finalizer.is_on(object)
    }

    /// Accepts the changes that the reconciler must not miss.
    pub(crate) fn needed(&self) -> Predicate {
        self.finalizer.needed()
    }

    /// Adds the finalizer to an object if needed, and returns the state to reconcile.
    ///
    /// Returns `None` if the object is being deleted by now: then another call cleans it up.
    pub(crate) async fn add_to(
        &self,
        cx: &Reconcile<K>,
    ) -> Result<Option<Reconcile<K>>, HandlerError> {
        let finalizer = &self.finalizer;
        if finalizer.is_on(cx.raw()) || !finalizer.wants(cx.object()) {
            return Ok(Some(cx.clone()));
        }
        let wire = cx.wire().await?;
        let manager = &cx.operator().name;
        // The list of finalizers is written as a whole, with the resource version of the state it was computed from.
        // After a conflict the closure is called again with the newer state.
        let changed = wire.change(None, Arc::clone(cx.raw()), |state| {
            let lacks = !state.is_deleting() && !finalizer.is_on(state);
            if !lacks || !finalizer.wants(&*K::view(state, cx.gvk())?) {
                return Ok::<_, HandlerError>(None);
            }
            let names: Vec<&str> = state.finalizers().chain([finalizer.name()]).collect();
            Ok(Some(set(manager, &names, state)))
        });
        // Guards must not refuse it: reconciling an object without its finalizer would leave resources that nothing
        // cleans up.
        match exempt(changed).await? {
            Changed::Made(state) | Changed::Unneeded(state) if !state.is_deleting() => {
                Ok(Some(cx.with_state(K::view(&state, cx.gvk())?, state)))
            }
            _ => Ok(None),
        }
    }

    /// Cleans up an object that is being deleted, then removes the finalizer.
    pub(crate) async fn clean_up(&self, cx: &Reconcile<K>) -> HandlerResult {
        let mut cx = cx.clone();
        let mut ended = Outcome::done();
        while self.finalizer.is_on(cx.raw())
            && let Some(deletion) = Deletion::of(cx.raw())
        {
            // A separate statement, so that the lock is not held across the await.
            let is_cleaned = self.cleaned.lock().contains(&deletion);
            if !is_cleaned {
                let outcome = self.cleanup.call(cx.clone()).await?;
                // A delay means that the cleanup has not finished. The finalizer stays, and the next call cleans up
                // again.
                if outcome.delay().is_some() {
                    return Ok(outcome);
                }
                // Nothing but the note: an object that it returned has the finalizer, which is about to be removed.
                ended = match outcome.note() {
                    Some(note) => Outcome::done().with_note(note),
                    None => Outcome::done(),
                };
                self.cleaned.lock().insert(deletion.clone());
            }
            match self.remove_after_cleanup(&cx, &deletion).await? {
                // The object was restored from a backup meanwhile, and perhaps deleted again: a new deletion with a new
                // cleanup.
                Changed::Unneeded(now) => cx = cx.with_state(K::view(&now, cx.gvk())?, now),
                _ => break,
            }
        }
        Ok(ended)
    }

    /// Removes the finalizer after the cleanup of a deletion.
    async fn remove_after_cleanup(
        &self,
        cx: &Reconcile<K>,
        deletion: &Deletion,
    ) -> Result<Changed, HandlerError> {
        let (wire, name) = (cx.wire().await?, self.finalizer.name());
        let removal = wire.change(None, cx.newest(), |state| {
            // On a restored API server the object may no longer be deleted. It is in use then, and keeps the finalizer.
            let is_same = Deletion::of(state).as_ref() == Some(deletion);
            let removal = is_same.then(|| without(name, &cx.operator().name, state));
            Ok::<_, ApiError>(removal.flatten())
        });
        Ok(exempt(removal).await?)
    }

    /// Returns the number of remembered deletions, and its bound.
    pub(crate) fn table_sizes(&self) -> TableSize {
        let (cleaned, most) = self.cleaned.lock().table_sizes();
        TableSize::new("cleaned objects", cleaned, most)
    }

    /// Forgets an object that does not exist any more.
    pub(crate) fn forget(&self, uid: &Uid) {
        self.cleaned.lock().forget(uid);
    }
}

/// Removes a finalizer from an object; returns whether the object had it.
pub(super) async fn remove(
    wire: &Wire,
    name: &str,
    manager: &str,
    state: Arc<CachedObject>,
) -> Result<bool, ApiError> {
    let changed = wire.change(None, state, |state| {
        Ok::<_, ApiError>(without(name, manager, state))
    });
    // An object that does not exist any more has no finalizer.
    Ok(matches!(changed.await?, Changed::Made(_)))
}

/// Returns the write that removes a finalizer from a state, if the state has it.
fn without(name: &str, manager: &str, state: &CachedObject) -> Option<Attempt> {
    let others: Vec<&str> = state.finalizers().filter(|each| *each != name).collect();
    let is_on = others.len() < state.finalizers().count();
    is_on.then(|| set(manager, &others, state))
}

/// Returns the write that replaces the finalizers of a state.
fn set(manager: &str, names: &[&str], state: &CachedObject) -> Attempt {
    let patch = json!({"metadata": {"finalizers": names}});
    Attempt::merge(manager, patch, state)
}
