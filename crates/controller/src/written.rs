//! The objects that the current call of a handler has written, as far as refused writes are concerned.
//!
//! The response to a refused write may name no object, and never a namespace. So the call records which objects it
//! writes, and a refusal is attributed to the handler's own object only if it cannot be about another one.

use std::cell::{Cell, OnceCell};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kube::core::Status;
use lariat_cache::PendingWrite;
use lariat_core::{Gvk, ObjectKey};

tokio::task_local! {
    static WRITTEN: Written;
}

/// The writes of a call.
struct Written {
    gvk: Gvk,
    key: ObjectKey,
    seen: Cell<Seen>,
    /// Shared with the client of the call, once there is one.
    elsewhere: OnceCell<Arc<Elsewhere>>,
}

/// The objects that a call has written through its client on other tasks.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere {
    other: AtomicBool,
    namesake: AtomicBool,
}

/// The objects that a call has written so far.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    own: bool,
    other: bool,
    /// Whether another object may have the name and the kind of the own one, in another namespace.
    namesake: bool,
}

/// Runs a call, and records the writes of its task.
pub(crate) async fn within<T>(gvk: Gvk, key: ObjectKey, call: impl Future<Output = T>) -> T {
    let written = Written {
        gvk,
        key,
        seen: Cell::default(),
        elsewhere: OnceCell::new(),
    };
    WRITTEN.scope(written, call).await
}

/// Records a write that is about to be sent, if the task runs a call.
pub(crate) fn note(write: &PendingWrite<'_>) {
    let _ = WRITTEN.try_with(|call| call.note(write.gvk(), write.key().as_ref()));
}

/// Returns whether a refused write of the current call was one of the handler's own object.
pub(crate) fn is_own(status: &Status) -> bool {
    WRITTEN
        .try_with(|call| call.is_own(status))
        .unwrap_or(false)
}

impl Elsewhere {
    /// Returns the record of the task's call; `None` outside of calls.
    pub(crate) fn of_call() -> Option<Arc<Self>> {
        let shared = |call: &Written| Arc::clone(call.elsewhere.get_or_init(Arc::default));
        WRITTEN.try_with(shared).ok()
    }

    /// Records a write for an object of this call, unless the task runs the call and has recorded it.
    ///
    /// Whichever object it is, a refusal that names none may be about it.
    pub(crate) fn note(self: &Arc<Self>, write: &PendingWrite<'_>, gvk: &Gvk, key: &ObjectKey) {
        let is_own = |own: &Arc<Self>| Arc::ptr_eq(own, self);
        let is_here = |call: &Written| call.elsewhere.get().is_some_and(is_own);
        if WRITTEN.try_with(is_here).unwrap_or(false) {
            return;
        }
        self.other.store(true, Ordering::Relaxed);
        let (of, written) = (write.gvk(), write.key());
        let is_same = of == Some(gvk) && written.as_ref() == Some(key);
        if !is_same && may_be_alike((of, written.as_ref()), (gvk, key)) {
            self.namesake.store(true, Ordering::Relaxed);
        }
    }
}

/// Returns whether a written object may have the name and the kind of another one.
fn may_be_alike(
    (of, written): (Option<&Gvk>, Option<&ObjectKey>),
    (gvk, key): (&Gvk, &ObjectKey),
) -> bool {
    // The kind is unknown if it is not cached, and the name of a created object is in the body.
    of.is_none_or(|of| of.kind() == gvk.kind()) && written.is_none_or(|of| of.name() == key.name())
}

impl Written {
    fn note(&self, gvk: Option<&Gvk>, key: Option<&ObjectKey>) {
        let mut seen = self.seen.get();
        if gvk == Some(&self.gvk) && key == Some(&self.key) {
            seen.own = true;
        } else {
            seen.other = true;
            seen.namesake |= may_be_alike((gvk, key), (&self.gvk, &self.key));
        }
        self.seen.set(seen);
    }

    /// Returns the objects that the call has written on any task; `own` is about its own task.
    fn seen(&self) -> Seen {
        let mut seen = self.seen.get();
        if let Some(elsewhere) = self.elsewhere.get() {
            seen.other |= elsewhere.other.load(Ordering::Relaxed);
            seen.namesake |= elsewhere.namesake.load(Ordering::Relaxed);
        }
        seen
    }

    fn is_own(&self, status: &Status) -> bool {
        let seen = self.seen();
        let named = status
            .details
            .as_ref()
            .filter(|details| !details.name.is_empty());
        seen.own
            && match named {
                Some(details) => {
                    details.name == self.key.name()
                        && details.group == self.gvk.group()
                        && details.kind == self.gvk.kind()
                        && !seen.namesake
                }
                None => !seen.other,
            }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call() -> Written {
        Written {
            gvk: Gvk::new("demo.dev", "v1", "Shop"),
            key: ObjectKey::namespaced("default", "mine"),
            seen: Cell::default(),
            elsewhere: OnceCell::new(),
        }
    }

    fn status(details: &serde_json::Value) -> Status {
        let json = json!({"status": "Failure", "code": 422, "details": details});
        serde_json::from_value(json).expect("it is a Status")
    }

    #[test]
    fn refused_write_is_own_only_if_known() {
        let own = status(&json!({"name": "mine", "group": "demo.dev", "kind": "Shop"}));
        let child = status(&json!({"name": "mine", "group": "batch", "kind": "Job"}));
        let unnamed = status(&json!({}));
        let (shop, job) = (
            Gvk::new("demo.dev", "v1", "Shop"),
            Gvk::new("batch", "v1", "Job"),
        );
        let written = call();
        assert!(!written.is_own(&own), "nothing was sent on this task");
        written.note(Some(&shop), Some(&written.key));
        assert!(written.is_own(&own) && written.is_own(&unnamed) && !written.is_own(&child));
        written.note(Some(&job), Some(&written.key));
        assert!(written.is_own(&own) && !written.is_own(&child));
        assert!(!written.is_own(&unnamed), "it may be that of the Job");
        let namesake = ObjectKey::namespaced("other", "mine");
        written.note(Some(&shop), Some(&namesake));
        assert!(
            !written.is_own(&own),
            "the Status does not name the namespace"
        );
    }

    #[test]
    fn created_object_of_unknown_kind_may_be_a_namesake() {
        let own = status(&json!({"name": "mine", "group": "demo.dev", "kind": "Shop"}));
        let written = call();
        written.note(Some(&written.gvk), Some(&written.key));
        written.note(None, Some(&ObjectKey::cluster("else")));
        assert!(written.is_own(&own), "it has another name");
        written.note(None, None);
        assert!(!written.is_own(&own));
    }
}
