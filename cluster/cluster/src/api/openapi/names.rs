//! The names of kinds, schemas and operations.

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::schema::describe;
use serde_json::{Value, json};

/// Returns a kind as extensions of operations and schemas have it.
pub(super) fn kind_json(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

/// Returns the name of a kind's schema.
///
/// For a custom kind these are its group backwards, version and kind.
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

/// Returns the name of the schema of a type that all groups have.
pub(super) fn shared_name(kind: &str) -> String {
    format!("io.k8s.apimachinery.pkg.apis.meta.v1.{kind}")
}

/// Joins the words of a name as the ids of operations have them: `stable.example.com` is `StableExampleCom`.
pub(super) fn camel_case(name: &str, first: bool) -> String {
    let mut joined = String::with_capacity(name.len());
    let mut capital = first;
    for c in name.chars() {
        match c {
            _ if !c.is_ascii_alphanumeric() && c != '_' => capital = true,
            _ if capital => {
                joined.push(c.to_ascii_uppercase());
                capital = false;
            }
            _ => joined.push(c),
        }
    }
    joined
}
