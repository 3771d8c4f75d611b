//! Objects as JSON.

use lariat_cache::{CachedObject, SharedCacheFactory};
use lariat_core::{Gvk, ObjectKey};
use serde_json::{Map, Value, json};

/// Returns the fields that every apply of an object has.
pub(crate) fn identity_of(gvk: &Gvk, key: &ObjectKey) -> Value {
    let mut fields = json!({
        "apiVersion": gvk.api_version(),
        "kind": gvk.kind(),
        "metadata": {"name": key.name()},
    });
    if let Some(namespace) = key.namespace() {
        fields["metadata"]["namespace"] = namespace.into();
    }
    fields
}

/// Returns whether the cache of a kind keeps the value at a JSON pointer.
///
/// A value that a transform has removed must not be taken for missing: a change that is computed from such a state
/// would carry the present resource version, and succeed.
pub(crate) fn is_shown(caches: &SharedCacheFactory, gvk: &Gvk, pointer: &str) -> bool {
    let informer = caches.existing(gvk);
    informer.is_some_and(|informer| informer.caches_unchanged(pointer))
}

/// Returns an object as JSON, or an empty object if it cannot be parsed.
pub(crate) fn json_of(object: &CachedObject) -> Value {
    let json = object.json().unwrap_or_default();
    serde_json::from_slice(&json).unwrap_or_else(|_| Value::Object(Map::new()))
}
