//! An API object as JSON, and its metadata.

use serde_json::{Map, Value, json};

/// An API object: the members of its JSON.
pub type Object = Map<String, Value>;

/// Returns the metadata of an object, and creates them if missing.
///
/// # Panics
///
/// Never: metadata of another JSON type are replaced by an empty object.
///
/// # Examples
///
/// ```
/// use lariat_apimachinery::object::{Object, metadata_mut};
///
/// let mut object = Object::new();
/// metadata_mut(&mut object).insert("name".to_owned(), "web".into());
/// assert_eq!(object["metadata"]["name"], "web");
/// ```
pub fn metadata_mut(object: &mut Object) -> &mut Object {
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    // Objects of clients are refused with such metadata, so this is for objects made by programs.
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata
        .as_object_mut()
        .expect("it was just made an object")
}

/// Returns a text in an object's metadata, empty if there is none.
///
/// ```
/// use lariat_apimachinery::object::{Object, metadata_text};
/// use serde_json::json;
///
/// let object = json!({"metadata": {"name": "web", "finalizers": ["example.com/hold"]}});
/// let object: Object = object.as_object().cloned().unwrap_or_default();
/// assert_eq!(metadata_text(&object, "name"), "web");
/// assert_eq!(metadata_text(&object, "namespace"), "");
/// ```
#[must_use]
pub fn metadata_text<'a>(object: &'a Object, member: &str) -> &'a str {
    let text = object
        .get("metadata")
        .and_then(|metadata| metadata.get(member)?.as_str());
    text.unwrap_or_default()
}

/// Returns the finalizers of an object.
///
/// ```
/// use lariat_apimachinery::object::{Object, finalizers};
/// use serde_json::json;
///
/// let object = json!({"metadata": {"name": "web", "finalizers": ["example.com/hold"]}});
/// let object: Object = object.as_object().cloned().unwrap_or_default();
/// assert_eq!(finalizers(&object), ["example.com/hold"]);
/// ```
pub fn finalizers(object: &Object) -> Vec<&str> {
    let finalizers = object
        .get("metadata")
        .and_then(|metadata| metadata.get("finalizers"));
    finalizers
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}
