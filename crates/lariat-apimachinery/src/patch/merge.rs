//! JSON merge patch (RFC 7386).

use serde_json::{Map, Value};

/// Merges a patch into a document.
///
/// Null removes, objects merge, everything else replaces.
pub(super) fn apply(document: &mut Value, patch: &Value) {
    let Value::Object(members) = patch else {
        *document = patch.clone();
        return;
    };
    if !document.is_object() {
        *document = Value::Object(Map::new());
    }
    if let Value::Object(object) = document {
        for (name, value) in members {
            match value {
                Value::Null => drop(object.remove(name)),
                value => apply(object.entry(name.clone()).or_insert(Value::Null), value),
            }
        }
    }
}
