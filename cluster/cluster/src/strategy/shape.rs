//! Whether what a client sent has the shape every object has.
//!
//! A real server decodes built-in kinds into Go structs, and the metadata of every kind; this checks
//! what the rest of the server relies on.

use lariat_apimachinery::go_json::type_name;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;
use serde_json::{Map, Value};

use crate::status::ApiError;

/// Refuses an object with a member of a type that no client could read.
pub(crate) fn check(resource: &Resource, object: &Object) -> Result<(), ApiError> {
    let Some(reason) = shape_error(resource, object) else {
        return Ok(());
    };
    let (kind, version) = (&resource.kind, &resource.version);
    Err(ApiError::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {kind}: {reason}"
    )))
}

/// Returns Go's error for the shape of an object, if it is wrong.
pub(crate) fn shape_error(resource: &Resource, object: &Object) -> Option<String> {
    let wrong = |what: String| Some(format!("json: cannot unmarshal {what}"));
    let parts: &[&str] = if resource.rules.custom {
        &["metadata"]
    } else {
        &["metadata", "spec", "status"]
    };
    for part in parts {
        match object.get(*part) {
            None | Some(Value::Null | Value::Object(_)) => {}
            Some(other) => {
                return wrong(format!(
                    "{} into Go struct field {kind}.{part}",
                    type_name(other),
                    kind = resource.kind
                ));
            }
        }
    }
    let metadata = object.get("metadata").and_then(Value::as_object)?;
    let (member, found, wanted) = type_mismatch(metadata)?;
    wrong(format!(
        "{found} into Go struct field ObjectMeta.metadata.{member} of type {wanted}"
    ))
}

/// Finds metadata of a wrong type: the member, its type, and the wanted type.
fn type_mismatch(metadata: &Map<String, Value>) -> Option<(&str, &'static str, &'static str)> {
    metadata.iter().find_map(|(member, value)| {
        let (wanted, found) = match member.as_str() {
            "labels" | "annotations" => ("map[string]string", in_map(value, Value::is_string)),
            "finalizers" => ("[]string", in_array(value, Value::is_string)),
            "ownerReferences" => ("[]v1.OwnerReference", in_array(value, is_owner)),
            "name" | "namespace" | "generateName" | "uid" | "resourceVersion"
            | "creationTimestamp" | "deletionTimestamp" => {
                ("string", (!value.is_string()).then_some(value))
            }
            _ => return None,
        };
        // A member that is null as a whole is as good as absent.
        let found = found.filter(|_| !value.is_null())?;
        Some((&**member, type_name(found), wanted))
    })
}

fn is_owner(value: &Value) -> bool {
    let Some(owner) = value.as_object() else {
        return false;
    };
    owner.iter().all(|(member, value)| match member.as_str() {
        "apiVersion" | "kind" | "name" | "uid" => value.is_string(),
        "controller" | "blockOwnerDeletion" => value.is_boolean() || value.is_null(),
        _ => true,
    })
}

/// Returns the value that does not fit: the value itself, or one of its members.
fn in_map(value: &Value, fits: fn(&Value) -> bool) -> Option<&Value> {
    match value.as_object() {
        Some(map) => map.values().find(|each| !each.is_null() && !fits(each)),
        None => Some(value),
    }
}

fn in_array(value: &Value, fits: fn(&Value) -> bool) -> Option<&Value> {
    match value.as_array() {
        Some(array) => array.iter().find(|each| !each.is_null() && !fits(each)),
        None => Some(value),
    }
}
