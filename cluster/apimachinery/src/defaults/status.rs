//! The status new objects begin with.

use serde_json::{Value, json};

use crate::kinds::Resource;

/// Returns the initial status of a built-in kind; `None` if it is empty.
pub fn initial(resource: &Resource, now: &str) -> Option<Value> {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "PersistentVolumeClaim") => Some(json!({"phase": "Pending"})),
        // The time is set by the strategy and not by a default, so an update of an old volume does not get it.
        ("", "PersistentVolume") => {
            Some(json!({"phase": "Pending", "lastPhaseTransitionTime": now}))
        }
        _ => None,
    }
}
