//! The objects that the current call of a handler has written, as far as refused writes are concerned.
//!
//! The response to a refused write may name no object, and never a namespace. So the call records which objects it
//! writes, and a refusal is attributed to the handler's own object only if it cannot be about another one.

use std::cell::Cell;
use std::future::Future;

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
    let seen = Cell::default();
    WRITTEN.scope(Written { gvk, key, seen }, call).await
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

impl Written {
    fn note(&self, gvk: Option<&Gvk>, key: Option<&ObjectKey>) {
        let mut seen = self.seen.get();
        if gvk == Some(&self.gvk) && key == Some(&self.key) {
            seen.own = true;
        } else {
            seen.other = true;
            // The kind is unknown if it is not cached, and the name of a created object is in the body.
            let is_alike = gvk.is_none_or(|gvk| gvk.kind() == self.gvk.kind());
            seen.namesake |= is_alike && key.is_none_or(|key| key.name() == self.key.name());
        }
        self.seen.set(seen);
    }

    fn is_own(&self, status: &Status) -> bool {
        let seen = self.seen.get();
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
