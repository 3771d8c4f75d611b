//! Detection of writes that change nothing.

use serde_json::Value;

use crate::object::Object;

/// Returns whether two objects differ.
///
/// Resource versions and the times of entries in `managedFields` are ignored.
///
/// ```
/// use lariat_apimachinery::{managed::differ, object::Object};
/// use serde_json::json;
///
/// let at = |version: &str| Object::from_iter([("metadata".to_owned(), json!({"resourceVersion": version}))]);
/// assert!(!differ(&at("7"), &at("8")));
/// assert!(differ(&at("7"), &Object::from_iter([("data".to_owned(), json!({}))])));
/// ```
#[must_use]
pub fn differ(old: &Object, new: &Object) -> bool {
    let none = Object::new();
    let (old_metadata, new_metadata) = (metadata_of(old, &none), metadata_of(new, &none));
    // Cheapest first: most writes that change something change it outside of the metadata.
    differ_outside(old, new, &["metadata"])
        || differ_outside(
            old_metadata,
            new_metadata,
            &["managedFields", "resourceVersion"],
        )
        || entries_differ(
            old_metadata.get("managedFields"),
            new_metadata.get("managedFields"),
        )
}

fn metadata_of<'a>(object: &'a Object, none: &'a Object) -> &'a Object {
    let metadata = object.get("metadata").and_then(Value::as_object);
    metadata.unwrap_or(none)
}

/// Returns whether two objects differ in members other than `outside`.
#[must_use]
pub fn differ_outside(old: &Object, new: &Object, outside: &[&str]) -> bool {
    let counts = |member: &String| !outside.contains(&member.as_str());
    let count = |object: &Object| object.keys().filter(|member| counts(member)).count();
    let mut counted = old.iter().filter(|(member, _)| counts(member));
    count(old) != count(new) || counted.any(|(member, value)| new.get(member) != Some(value))
}

/// Returns whether entries differ in more than their times.
fn entries_differ(old: Option<&Value>, new: Option<&Value>) -> bool {
    if old == new {
        return false;
    }
    let (Some(Value::Array(old)), Some(Value::Array(new))) = (old, new) else {
        return true;
    };
    // The order of entries counts. It depends on their times, so a different order is a change of more than times.
    let differs = |(old, new): (&Value, &Value)| match (old, new) {
        (Value::Object(old), Value::Object(new)) => differ_outside(old, new, &["time"]),
        (old, new) => old != new,
    };
    old.len() != new.len() || old.iter().zip(new).any(differs)
}
