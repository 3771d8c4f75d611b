//! The metadata of a converted object.

use serde_json::{Map, Value};

/// The metadata that a conversion may change.
const FREE: [&str; 2] = ["labels", "annotations"];

/// Returns the raw object's metadata, with the converted labels and annotations.
///
/// # Errors
///
/// The path of another field that the conversion has changed. The comparison is with the metadata as the object's type
/// writes it.
pub(super) fn merged(raw: &Value, typed: &Value, converted: &Value) -> Result<Value, String> {
    let empty = Map::new();
    let members = |object: &Value| match &object["metadata"] {
        Value::Object(members) => members.clone(),
        _ => empty.clone(),
    };
    let (before, after) = (members(typed), members(converted));
    let names = before.keys().chain(after.keys());
    let fixed = names.filter(|name| !FREE.contains(&name.as_str()));
    for name in fixed {
        if before.get(name) != after.get(name) {
            return Err(format!("metadata.{name}"));
        }
    }
    // From the raw object: managed fields and others that the type may not know are kept.
    let mut metadata = members(raw);
    for name in FREE {
        match after.get(name) {
            Some(value) => metadata.insert(name.to_owned(), value.clone()),
            None => metadata.remove(name),
        };
    }
    Ok(Value::Object(metadata))
}

/// Returns namespace and name as text, for messages.
pub(super) fn key(object: &Value) -> String {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    joined(text("namespace"), text("name"))
}

/// Joins a namespace, which may be empty, and a name.
pub(super) fn joined(namespace: &str, name: &str) -> String {
    match (namespace, name) {
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}
