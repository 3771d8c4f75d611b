//! Finalizers that the server itself knows.

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;
use serde_json::Value;

/// The finalizer under which an owner waits for its dependents to be deleted.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// The finalizer under which an owner waits for its dependents to be released.
pub(crate) const ORPHAN: &str = "orphan";

/// Returns the finalizers in the spec, which namespaces have.
pub(crate) fn finalizers_in_spec<'a>(resource: &Resource, object: &'a Object) -> &'a [Value] {
    if !resource.group.is_empty() || resource.plural != "namespaces" {
        return &[];
    }
    let spec = object.get("spec").and_then(|spec| spec.get("finalizers"));
    spec.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
