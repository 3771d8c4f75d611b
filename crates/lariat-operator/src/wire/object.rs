//! Objects as JSON, and what a cache shows of them.

use lariat_cache::{CachedObject, SharedCacheFactory};
use lariat_core::{Gvk, ObjectKey};
use serde_json::{Map, Value, json};

/// Returns what every apply of an object says.
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

/// Returns whether what the cache of a kind shows at a JSON pointer is what the API server has. What a transform left
/// out must not be taken for missing: a change that is worked out so names the true version, and is made.
pub(crate) fn is_shown(caches: &SharedCacheFactory, gvk: &Gvk, pointer: &str) -> bool {
    let informer = caches.existing(gvk);
    informer.is_some_and(|informer| informer.keeps(pointer))
}

/// Reads the JSON of an object; an empty object if it cannot be read.
pub(crate) fn json_of(object: &CachedObject) -> Value {
    let json = object.json().unwrap_or_default();
    serde_json::from_slice(&json).unwrap_or_else(|_| Value::Object(Map::new()))
}
