//! What a reconciler is told.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use lariat_cache::{CachedObject, View};
use lariat_controller::Context;

use crate::operator::Shared;

/// One reconcile of one object: the object, why, and the ways to write.
///
/// It dereferences to the handler's [`Context`], for the key, causes, attempt, cache, client and requests to enqueue.
/// A clone is the same reconcile.
pub struct Reconcile<K> {
    cx: Arc<Context<K>>,
    object: Arc<K>,
    raw: Arc<CachedObject>,
    shared: Arc<Shared>,
}

impl<K: View> Reconcile<K> {
    pub(crate) fn new(
        cx: Arc<Context<K>>,
        (object, raw): (Arc<K>, Arc<CachedObject>),
        shared: Arc<Shared>,
    ) -> Self {
        Self {
            cx,
            object,
            raw,
            shared,
        }
    }

    /// Returns the object, in its newest state when the call began.
    #[must_use]
    pub fn object(&self) -> &Arc<K> {
        &self.object
    }

    /// Returns the object's metadata and JSON, without decoding.
    #[must_use]
    pub fn raw(&self) -> &Arc<CachedObject> {
        &self.raw
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
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
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K> fmt::Debug for Reconcile<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reconcile").field(&self.cx).finish()
    }
}
