//! JSON merge patch as RFC 7386 words it.

use serde_json::{Map, Value};

/// Merges a patch into a value.
pub(crate) fn merge(target: Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else {
        return patch.clone();
    };
    let mut members = match target {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    for (name, value) in patch {
        if value.is_null() {
            members.remove(name);
        } else {
            let old = members.remove(name).unwrap_or(Value::Null);
            members.insert(name.clone(), merge(old, value));
        }
    }
    Value::Object(members)
}
