//! What a reconciler is told.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use lariat_cache::{CachedObject, View};
use lariat_controller::Context;
use lariat_core::{Gvk, ObjectKey};
use parking_lot::Mutex;
use serde_json::Value;

use crate::operator::Shared;
use crate::status::ConditionUpdate;

/// One reconcile of one object: the object, why, and the ways to write.
///
/// It dereferences to the handler's [`Context`], for the key, causes, attempt, cache, client and requests to enqueue.
/// A clone is the same reconcile.
pub struct Reconcile<K> {
    cx: Arc<Context<K>>,
    object: Arc<K>,
    raw: Arc<CachedObject>,
    shared: Arc<Shared>,
    own: Arc<Mutex<Own>>,
}

/// What one reconcile did to its own object.
pub(crate) struct Own {
    /// The newest state it has seen.
    pub(crate) newest: Arc<CachedObject>,
    /// The types of conditions it decided on.
    pub(crate) conditions: BTreeSet<String>,
    /// The type of the condition in which its errors are told.
    pub(crate) reported: Option<Arc<str>>,
    /// What it says in that condition itself, until it is known how the call ends.
    pub(crate) held: Option<Held>,
    /// The sets it applied, by name, and which objects they had.
    pub(crate) sets: BTreeMap<String, BTreeSet<(Gvk, ObjectKey)>>,
}

/// A condition that is written when the call has ended well.
pub(crate) enum Held {
    Update(ConditionUpdate),
    /// As it stood in a status that was written.
    Whole(Value),
}

impl<K: View> Reconcile<K> {
    pub(crate) fn new(
        cx: Arc<Context<K>>,
        (object, raw): (Arc<K>, Arc<CachedObject>),
        shared: Arc<Shared>,
    ) -> Self {
        let own = Own {
            newest: Arc::clone(&raw),
            conditions: BTreeSet::new(),
            reported: None,
            held: None,
            sets: BTreeMap::new(),
        };
        Self {
            cx,
            object,
            raw,
            shared,
            own: Arc::new(Mutex::new(own)),
        }
    }

    /// Goes on with another state of the object.
    pub(crate) fn with_state(&self, object: Arc<K>, raw: Arc<CachedObject>) -> Self {
        let shared = Arc::clone(&self.shared);
        let next = Self::new(Arc::clone(&self.cx), (object, raw), shared);
        next.own.lock().reported = self.own.lock().reported.clone();
        next
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
        let own = Arc::clone(&self.own.lock().newest);
        let cached = self.cx.cache().store().get(self.cx.key());
        let is_newer = |cached: &Arc<CachedObject>| {
            cached.uid() == own.uid()
                && cached.has_content()
                && cached.version().compare(own.version()) == Some(Ordering::Greater)
        };
        cached.filter(is_newer).unwrap_or(own)
    }

    pub(crate) fn own(&self) -> &Arc<Mutex<Own>> {
        &self.own
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
            own: Arc::clone(&self.own),
        }
    }
}

impl<K> fmt::Debug for Reconcile<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reconcile").field(&self.cx).finish()
    }
}
