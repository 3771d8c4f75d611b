//! Metadata, as far as it is the server's.

use lariat_apimachinery::object::{Object, metadata_mut};
use serde_json::{Map, Value, json};

/// Metadata only the server writes.
const SERVER_METADATA: [&str; 5] = [
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// Collections that are dropped when empty.
pub(super) const COLLECTIONS: [&str; 4] =
    ["labels", "annotations", "ownerReferences", "finalizers"];

/// Drops the metadata that the server does not keep.
pub(crate) fn normalize_metadata(metadata: &mut Object) {
    for member in ["resourceVersion", "selfLink"] {
        metadata.remove(member);
    }
    for member in COLLECTIONS {
        if metadata.get(member).is_some_and(is_empty) {
            metadata.remove(member);
        }
    }
    // In Go null is the same as absent.
    metadata.retain(|_, value| !value.is_null());
}

/// Converts metadata to the form in which Go writes them: nothing that is empty, and no nulls.
///
/// The schemas of custom resources leave metadata alone.
pub(crate) fn as_go_writes(object: &mut Object) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    // Go reads null as the zero value of its type: an empty text here, an empty reference below.
    for member in ["labels", "annotations"] {
        let map = metadata.get_mut(member).and_then(Value::as_object_mut);
        let values = map.into_iter().flat_map(Map::values_mut);
        values
            .filter(|value| value.is_null())
            .for_each(|value| *value = "".into());
    }
    for (member, empty) in [("finalizers", json!("")), ("ownerReferences", json!({}))] {
        let list = metadata.get_mut(member).and_then(Value::as_array_mut);
        for value in list.into_iter().flatten() {
            match value {
                Value::Null => *value = empty.clone(),
                Value::Object(owner) => owner.retain(|_, value| !value.is_null()),
                _ => {}
            }
        }
    }
    metadata.retain(|name, value| !OMITTED.contains(&name.as_str()) || !is_empty(value));
}

/// Members of metadata that Go does not write if they are empty.
const OMITTED: [&str; 10] = [
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

pub(super) fn copy_metadata(from: &Object, to: &mut Object, member: &str) {
    let value = from
        .get("metadata")
        .and_then(|metadata| metadata.get(member));
    let metadata = metadata_mut(to);
    match value {
        Some(value) => metadata.insert(member.to_owned(), value.clone()),
        None => metadata.remove(member),
    };
}

pub(super) fn copy_member(from: &Object, to: &mut Object, member: &str) {
    match from.get(member) {
        Some(value) => to.insert(member.to_owned(), value.clone()),
        None => to.remove(member),
    };
}

/// Restores the metadata a client cannot change.
pub(super) fn keep_metadata(old: &Object, metadata: &mut Object) {
    let empty = Map::new();
    let kept = old
        .get("metadata")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    for member in SERVER_METADATA.iter().chain(&["name", "namespace"]) {
        copy_member(kept, metadata, member);
    }
    normalize_metadata(metadata);
}

/// Counts one more change.
pub(crate) fn raise_generation(object: &mut Object) {
    let metadata = metadata_mut(object);
    let generation = metadata
        .get("generation")
        .and_then(Value::as_i64)
        .unwrap_or(0);
    // A client may have sent the largest one, which wraps in Go.
    metadata.insert("generation".into(), json!(generation.wrapping_add(1)));
}
