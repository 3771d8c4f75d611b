//! Owner references that are there twice.

use lariat_apimachinery::object::Object;
use serde_json::Value;

/// Drops owner references that are there already, and returns their uids.
///
/// Source: `dedupOwnerReferences` in `k8s.io/apiserver/pkg/endpoints/handlers`.
pub(crate) fn deduplicate(object: &mut Object) -> Vec<String> {
    let metadata = object.get_mut("metadata");
    let references = metadata.and_then(|metadata| metadata.get_mut("ownerReferences"));
    let Some(Value::Array(references)) = references else {
        return Vec::new();
    };
    let (mut kept, mut repeated) = (Vec::new(), Vec::new());
    for reference in std::mem::take(references) {
        if kept.contains(&reference) {
            repeated.push(text(&reference, "uid").to_owned())
        } else {
            kept.push(reference)
        }
    }
    *references = kept;
    repeated
}

fn text<'a>(reference: &'a Value, field: &str) -> &'a str {
    let text = reference.get(field).and_then(Value::as_str);
    text.unwrap_or_default()
}
