//! Owner references that are there twice.

use std::collections::HashSet;

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
    let (mut seen, mut repeated) = (HashSet::with_capacity(references.len()), Vec::new());
    references.retain(|reference| {
        let is_new = seen.insert(reference.clone());
        if !is_new {
            repeated.push(text(reference, "uid").to_owned());
        }
        is_new
    });
    repeated
}

fn text<'a>(reference: &'a Value, field: &str) -> &'a str {
    let text = reference.get(field).and_then(Value::as_str);
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn many_references_are_compared_in_one_pass() {
        let reference =
            |uid: usize| json!({"kind": "ConfigMap", "name": "a", "uid": uid.to_string()});
        let all: Vec<Value> = (0..100_000).chain(0..3).map(reference).collect();
        let mut object = json!({"metadata": {"ownerReferences": all}});
        let repeated = deduplicate(object.as_object_mut().unwrap());
        assert_eq!(repeated, ["0", "1", "2"]);
        let kept = object["metadata"]["ownerReferences"].as_array().unwrap();
        assert_eq!(kept.len(), 100_000);
    }
}
