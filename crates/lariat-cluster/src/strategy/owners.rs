//! The rules of owner references.
//!
//! Source: `ValidateOwnerReferences` in `k8s.io/apimachinery/pkg/api/validation`.

use std::collections::HashSet;

use serde_json::Value;

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::object::Object;

const PATH: &str = "metadata.ownerReferences";

/// Finds what is wrong with the owner references of an object.
pub(crate) fn validate(object: &Object) -> Vec<StatusCause> {
    let references = object
        .get("metadata")
        .and_then(|metadata| metadata.get("ownerReferences"))
        .and_then(Value::as_array);
    let mut causes = Vec::new();
    let mut controller: Option<&Value> = None;
    for reference in references.into_iter().flatten() {
        causes.extend(validate_one(reference));
        if reference["controller"] != true {
            continue;
        }
        match controller {
            None => controller = Some(reference),
            Some(first) => causes.push(two_controllers(reference, first)),
        }
    }
    causes
}

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

fn two_controllers(second: &Value, first: &Value) -> StatusCause {
    let reason = format!(
        "Only one reference can have Controller set to true. Found \"true\" in references for \
         {}/{} and {}/{}",
        text(first, "kind"),
        text(first, "name"),
        text(second, "kind"),
        text(second, "name"),
    );
    StatusCause::invalid(PATH, second, &reason)
}

fn validate_one(reference: &Value) -> Vec<StatusCause> {
    let mut causes = Vec::new();
    let mut invalid = |field: &str, value: &str, reason: &str| {
        let path = format!("{PATH}.{field}");
        causes.push(StatusCause::invalid(&path, &value.into(), reason));
    };
    let api_version = text(reference, "apiVersion");
    let (group, version) = match api_version.split_once('/') {
        Some((group, version)) => (group, version),
        None => ("", api_version),
    };
    if version.is_empty() {
        invalid("apiVersion", api_version, "version must not be empty");
    }
    for (field, reason) in [
        ("kind", "must not be empty"),
        ("name", "must not be empty"),
        ("uid", "must not be empty"),
    ] {
        if text(reference, field).is_empty() {
            invalid(field, text(reference, field), reason);
        }
    }
    // An Event ends by time, so what it owned would end with it.
    if matches!(group, "" | "events.k8s.io") && text(reference, "kind") == "Event" {
        let reason = format!("{group}/{version}, Kind=Event is disallowed from being an owner");
        causes.push(StatusCause::invalid(PATH, reference, &reason));
    }
    causes
}

fn text<'a>(reference: &'a Value, field: &str) -> &'a str {
    reference
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(references: &Value, expected: &[&str]) {
        let object = json!({"metadata": {"ownerReferences": references}});
        let causes = validate(object.as_object().unwrap());
        let shown: Vec<String> = causes.iter().map(|cause| format!("{cause:?}")).collect();
        assert_eq!(causes.len(), expected.len(), "{shown:?}");
        for (text, expected) in shown.iter().zip(expected) {
            assert!(text.contains(expected), "{text}: {expected}");
        }
    }

    #[test]
    fn many_references_are_compared_in_one_pass() {
        let reference = |uid: usize| json!({"kind": "ConfigMap", "name": "a", "uid": uid.to_string()});
        let all: Vec<Value> = (0..100_000).chain(0..3).map(reference).collect();
        let mut object = json!({"metadata": {"ownerReferences": all}});
        let repeated = deduplicate(object.as_object_mut().unwrap());
        assert_eq!(repeated, ["0", "1", "2"]);
        let kept = object["metadata"]["ownerReferences"].as_array().unwrap();
        assert_eq!(kept.len(), 100_000);
    }

    #[test]
    fn references_are_complete_and_name_one_controller() {
        let one = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "1"});
        let with = |field: &str, value: Value| {
            let mut one = one.clone();
            one[field] = value;
            one
        };
        check(&json!([one]), &[]);
        check(&Value::Null, &[]);
        check(&json!([with("uid", json!(""))]), &["ownerReferences.uid"]);
        check(
            &json!([with("name", json!(null))]),
            &["ownerReferences.name"],
        );
        check(&json!([with("kind", json!(7))]), &["ownerReferences.kind"]);
        check(
            &json!([with("apiVersion", json!("apps/"))]),
            &["ownerReferences.apiVersion"],
        );
        check(
            &json!([with("kind", json!("Event"))]),
            &["disallowed from being an owner"],
        );
        let controller = with("controller", json!(true));
        check(&json!([controller]), &[]);
        check(
            &json!([controller, one, controller]),
            &["Only one reference"],
        );
    }
}
