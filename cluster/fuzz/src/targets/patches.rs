//! The three types of patches, against naive references and what holds for all of them.

use lariat_cluster::fuzzing::patch;
use serde_json::{Map, Value};

use crate::input::{depth, two_values};
use crate::reference;

const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// How deep a document of the cluster nests; patches beyond it are refused.
const DEEPEST: usize = 100;

/// The kind by whose types strategic patches merge.
const POD: (&str, &str) = ("v1", "Pod");

/// The first line is an object, the second one a patch.
pub(crate) fn merge(data: &[u8]) {
    let Some((Value::Object(object), wanted)) = two_values(data) else {
        return;
    };
    let body = wanted.to_string();
    let outcome = patch(MERGE, body.as_bytes(), POD.0, POD.1, object.clone());
    let Ok(patched) = outcome else {
        let is_deep = depth(&wanted) > DEEPEST;
        assert!(!wanted.is_object() || is_deep, "refused: {outcome:?}");
        return;
    };
    let expected = reference::merge_patch::merge(object.into(), &wanted);
    assert_eq!(Value::Object(patched.clone()), expected);
    let twice = patch(MERGE, body.as_bytes(), POD.0, POD.1, patched.clone());
    assert_eq!(twice.ok(), Some(patched), "twice is once");
}

/// The first line is an object, the second one a list of operations.
pub(crate) fn json(data: &[u8]) {
    let Some((Value::Object(object), operations)) = two_values(data) else {
        return;
    };
    let body = operations.to_string();
    let patched = patch(JSON, body.as_bytes(), POD.0, POD.1, object.clone());
    if depth(&operations) > DEEPEST || depth(&object.clone().into()) > DEEPEST {
        return;
    }
    let operations = operations
        .as_array()
        .filter(|all| all.iter().all(is_operation));
    let Some(operations) = operations else {
        return;
    };
    let expected = reference::json_patch::apply(object.into(), operations);
    let expected = expected.filter(Value::is_object);
    match (patched, expected) {
        (Ok(patched), expected) => assert_eq!(Some(patched.into()), expected),
        (Err(_), None) => {}
        // Copies into themselves nest and grow, and are stopped at some point.
        (Err(refused), Some(expected)) => {
            let is_large = depth(&expected) > DEEPEST || body.len() > 1 << 16;
            assert!(is_large, "refused: {refused:?}, expected {expected}");
        }
    }
}

/// Returns whether the members of an operation are of their types.
fn is_operation(operation: &Value) -> bool {
    let is_text = |name: &str| operation.get(name).is_none_or(Value::is_string);
    operation.is_object()
        && is_text("op")
        && is_text("path")
        && operation
            .get("from")
            .is_none_or(|from| from.is_string() || from.is_null())
}

/// The first line is a Pod, the second one a patch.
pub(crate) fn strategic(data: &[u8]) {
    let Some((Value::Object(object), wanted)) = two_values(data) else {
        return;
    };
    let body = wanted.to_string();
    let unchanged = patch(STRATEGIC, b"{}", POD.0, POD.1, object.clone());
    assert_eq!(
        unchanged.ok().as_ref(),
        Some(&object),
        "nothing changes nothing"
    );
    let Ok(patched) = patch(STRATEGIC, body.as_bytes(), POD.0, POD.1, object.clone()) else {
        return;
    };
    let wanted = wanted.as_object().expect("a patch is an object");
    if has_directive(wanted) {
        return;
    }
    if is_flat(wanted) {
        // Without objects and lists it is a merge patch.
        let expected = reference::merge_patch::merge(object.into(), &wanted.clone().into());
        assert_eq!(Value::Object(patched.clone()), expected);
    }
    // A list whose items lack their key is taken where there is none, and refused where there is one.
    if let Ok(twice) = patch(STRATEGIC, body.as_bytes(), POD.0, POD.1, patched.clone()) {
        assert_eq!(twice, patched, "twice is once");
    }
}

/// Returns whether a patch has a directive anywhere.
fn has_directive(members: &Map<String, Value>) -> bool {
    members
        .iter()
        .any(|(name, value)| name.starts_with('$') || value_has_directive(value))
}

fn value_has_directive(value: &Value) -> bool {
    match value {
        Value::Object(members) => has_directive(members),
        Value::Array(items) => items.iter().any(value_has_directive),
        _ => false,
    }
}

fn is_flat(members: &Map<String, Value>) -> bool {
    members
        .values()
        .all(|value| !value.is_object() && !value.is_array())
}
