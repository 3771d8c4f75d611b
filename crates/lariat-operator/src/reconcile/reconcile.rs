//! What a reconciler is called with.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use lariat_cache::{CachedObject, View};
use lariat_controller::Context;

use super::call::CallState;
use super::operator::OperatorState;
use crate::wire::{ApiError, Wire};

/// One reconcile of one object: the object, why, and the ways to write.
///
/// It dereferences to the handler's [`Context`], for the key, causes, attempt, cache, client and requests to enqueue.
/// A clone is the same reconcile.
pub struct Reconcile<K> {
    cx: Arc<Context<K>>,
    object: Arc<K>,
    raw: Arc<CachedObject>,
    operator: Arc<OperatorState>,
    call: Arc<CallState>,
}

impl<K: View> Reconcile<K> {
    /// Begins with a state of the object; `reported` is the type of the condition in which errors are reported.
    pub(crate) fn new(
        cx: Arc<Context<K>>,
        object: Arc<K>,
        raw: Arc<CachedObject>,
        operator: Arc<OperatorState>,
        reported: Option<Arc<str>>,
    ) -> Self {
        Self {
            call: Arc::new(CallState::new(&raw, reported)),
            cx,
            object,
            raw,
            operator,
        }
    }

    /// Goes on with another state of the object.
    pub(crate) fn with_state(&self, object: Arc<K>, raw: Arc<CachedObject>) -> Self {
        let (cx, operator) = (Arc::clone(&self.cx), Arc::clone(&self.operator));
        Self::new(cx, object, raw, operator, self.call.reported().cloned())
    }

    /// Returns the object, in its newest state when the call began; if a finalizer was added first, with that.
    #[must_use]
    pub fn object(&self) -> &Arc<K> {
        &self.object
    }

    /// Returns the object's metadata and JSON, without decoding.
    #[must_use]
    pub fn raw(&self) -> &Arc<CachedObject> {
        &self.raw
    }

    /// Returns the newest state that is known of this object: the cache's, or the answer to the last write of its
    /// status.
    ///
    /// What [`raw`](Self::raw) returns stays as it is. Once the object is gone, this is its last known state.
    #[must_use]
    pub fn newest(&self) -> Arc<CachedObject> {
        let own = self.call.newest();
        let cached = self.cx.cache().store().get(self.cx.key());
        let is_newer = |cached: &Arc<CachedObject>| {
            cached.uid() == own.uid()
                && cached.has_content()
                && cached.version().compare(own.version()) == Some(Ordering::Greater)
        };
        cached.filter(is_newer).unwrap_or(own)
    }

    /// Returns what this call did to its object so far.
    pub(crate) fn call(&self) -> &Arc<CallState> {
        &self.call
    }

    pub(crate) fn operator(&self) -> &Arc<OperatorState> {
        &self.operator
    }

    /// Makes requests about objects of this kind, under the identity of the reconciler.
    pub(crate) async fn wire(&self) -> Result<Wire, ApiError> {
        let kind = self.operator.caches.clients().for_kind(self.gvk());
        Ok(Wire::new(self.client(), kind.resource().await?))
    }
}

impl<K> Deref for Reconcile<K> {
    type Target = Context<K>;

    fn deref(&self) -> &Context<K> {
        &self.cx
    }
}

impl<K> Clone for Reconcile<K> {
    fn clone(&self) -> Self {
        Self {
            cx: Arc::clone(&self.cx),
            object: Arc::clone(&self.object),
            raw: Arc::clone(&self.raw),
            operator: Arc::clone(&self.operator),
            call: Arc::clone(&self.call),
        }
    }
}

impl<K> fmt::Debug for Reconcile<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reconcile").field(&self.cx).finish()
    }
}
