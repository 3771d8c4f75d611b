//! The names of kinds and schemas.

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::schema::describe;
use serde_json::{Value, json};

/// Names a kind as extensions of operations and schemas do.
pub(super) fn kind_json(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

/// Returns the name of a kind's schema.
///
/// That of a custom kind is its group backwards, version and kind.
pub(super) fn schema_name(resource: &Resource, kind: &str) -> String {
    if !resource.rules.custom
        && let Some(name) = describe::name(&resource.api_version(), kind)
    {
        return name;
    }
    let mut parts: Vec<&str> = resource.group.split('.').rev().collect();
    parts.extend([resource.version.as_str(), kind]);
    parts.join(".")
}
