//! JSON merge patch (RFC 7386).

use serde_json::{Map, Value};

/// Merges a patch into a document.
///
/// Null removes, objects merge, everything else replaces.
pub(super) fn apply(document: &mut Value, patch: &Value) {
    let Value::Object(members) = patch else {
        // Where a list or scalar replaces an object, Go keeps the nulls inside of it.
        let is_new = !document.is_object();
        *document = patch.clone();
        if is_new {
            prune(document);
        }
        return;
    };
    // RFC 7386: an object in the patch replaces whatever is not one.
    if !document.is_object() {
        *document = Value::Object(Map::new());
    }
    if let Value::Object(object) = document {
        for (name, value) in members {
            match value {
                Value::Null => drop(object.remove(name)),
                // A new member starts as null, so that nulls inside of it are removed and not stored.
                value => apply(object.entry(name.clone()).or_insert(Value::Null), value),
            }
        }
    }
}

/// Removes the nulls of all objects in a value, those in lists too.
///
/// Source: `pruneNulls` of `gopkg.in/evanphx/json-patch.v4`.
fn prune(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(prune),
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(prune);
        }
        _ => {}
    }
}
