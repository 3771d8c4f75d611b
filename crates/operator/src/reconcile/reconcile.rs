//! The argument of a reconciler.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use lariat_cache::{CachedObject, View};
use lariat_controller::Context;

use super::call::{CallState, OfReconciler};
use super::operator::OperatorState;
use crate::wire::{ApiError, Wire};

/// One call of a reconciler: the object, the causes, and methods that write.
///
/// It dereferences to the handler's [`Context`], which has the key, causes, attempt, cache, client and methods to
/// enqueue. Clones are the same call.
///
/// | method | writes |
/// |---|---|
/// | [`apply`](Self::apply) | a set of objects that the object owns |
/// | [`set_status`](Self::set_status), [`set_condition`](Self::set_condition) | the status of the object |
/// | [`event`](Self::event) | an Event about the object |
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use lariat::{HandlerResult, Outcome, Reconcile};
///
/// async fn reconcile(cx: Reconcile<ConfigMap>) -> HandlerResult {
///     let entries = cx.object().data.as_ref().map_or(0, |data| data.len());
///     println!("{} has {entries} entries; attempt {}", cx.key(), cx.attempt());
///     Ok(Outcome::done())
/// }
/// ```
pub struct Reconcile<K> {
    cx: Arc<Context<K>>,
    object: Arc<K>,
    raw: Arc<CachedObject>,
    operator: Arc<OperatorState>,
    call: Arc<CallState>,
}

impl<K: View> Reconcile<K> {
    /// Creates a call of a reconciler.
    pub(crate) fn new(
        cx: Arc<Context<K>>,
        object: Arc<K>,
        raw: Arc<CachedObject>,
        operator: Arc<OperatorState>,
        reconciler: OfReconciler,
    ) -> Self {
        Self {
            call: Arc::new(CallState::new(&raw, reconciler)),
            cx,
            object,
            raw,
            operator,
        }
    }

    /// Returns the same call with a newer state of the object.
    pub(crate) fn with_state(&self, object: Arc<K>, raw: Arc<CachedObject>) -> Self {
        Self {
            call: Arc::new(self.call.with_state(&raw)),
            cx: Arc::clone(&self.cx),
            operator: Arc::clone(&self.operator),
            object,
            raw,
        }
    }

    /// Returns the object, in its newest state at the beginning of the call.
    ///
    /// If the call has added a finalizer, the state includes it.
    #[must_use]
    pub fn object(&self) -> &Arc<K> {
        &self.object
    }

    /// Returns the object's metadata and JSON, without decoding them.
    #[must_use]
    pub fn raw(&self) -> &Arc<CachedObject> {
        &self.raw
    }

    /// Returns the newest known state of the object.
    ///
    /// This is the cached state or the answer to the call's last write of the status, whichever is newer, while the
    /// result of [`raw`](Self::raw) does not change during a call. Once the object is deleted, it is the last known
    /// state.
    #[must_use]
    pub fn newest(&self) -> Arc<CachedObject> {
        let own = self.call.newest();
        let cached = self.cx.cache().store().get(self.cx.key());
        let is_newer = |cached: &Arc<CachedObject>| {
            // Versions of another uid cannot be compared, and a state without content cannot replace one with content.
            cached.uid() == own.uid()
                && cached.has_content()
                && cached.version().compare(own.version()) == Some(Ordering::Greater)
        };
        cached.filter(is_newer).unwrap_or(own)
    }

    /// Returns the state of this call.
    pub(crate) fn call(&self) -> &Arc<CallState> {
        &self.call
    }

    pub(crate) fn operator(&self) -> &Arc<OperatorState> {
        &self.operator
    }

    /// Returns a client for this kind, with the identity of the reconciler.
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
