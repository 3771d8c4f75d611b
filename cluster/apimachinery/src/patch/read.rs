//! Reading the operations of a JSON patch, as Go's decoder does.

use serde_json::Value;

use super::json::PatchOperation;
use crate::go_json::{type_error, type_name};
use crate::object::Object;

/// Reads operations, and the paths of members that none has.
///
/// # Errors
///
/// Go's sentence about the first value of a wrong type.
pub(super) fn operations(document: Value) -> Result<(Vec<PatchOperation>, Vec<String>), String> {
    let items = match document {
        Value::Null => Vec::new(),
        Value::Array(items) => items,
        other => return Err(type_error(&other, "[]handlers.jsonPatchOp")),
    };
    let mut unknown = Vec::new();
    let mut operations = Vec::with_capacity(items.len());
    for (at, item) in items.into_iter().enumerate() {
        operations.push(match item {
            // Go leaves a null element at its zero value, whose empty `op` fails when it is applied.
            Value::Null => PatchOperation::default(),
            Value::Object(members) => operation(members, at, &mut unknown)?,
            other => return Err(type_error(&other, "handlers.jsonPatchOp")),
        });
    }
    Ok((operations, unknown))
}

fn operation(
    members: Object,
    at: usize,
    unknown: &mut Vec<String>,
) -> Result<PatchOperation, String> {
    let mut read = PatchOperation::default();
    for (name, value) in members {
        match name.as_str() {
            "op" => read.op = text(&name, value)?.unwrap_or_default(),
            "path" => read.path = text(&name, value)?.unwrap_or_default(),
            // Absent and empty differ: an empty one is the whole document.
            "from" => read.from = text(&name, value)?,
            "value" => read.value = value,
            // Unknown members are no error here; how they are reported depends on the field validation of the request.
            _ => unknown.push(format!("[{at}].{name}")),
        }
    }
    Ok(read)
}

fn text(name: &str, value: Value) -> Result<Option<String>, String> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        other => {
            let found = type_name(&other);
            Err(format!(
                "json: cannot unmarshal {found} into Go struct field jsonPatchOp.{name} of type string"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_are_read_as_go_reads_them() {
        for (document, count, unknown) in [
            (json!(null), 0, vec![]),
            (json!([null, {"op": null}]), 2, vec![]),
            (
                json!([{"op": "add", "x": 1}, {"y": 2}]),
                2,
                vec!["[0].x", "[1].y"],
            ),
        ] {
            let (operations, paths) = operations(document).unwrap();
            assert_eq!(
                (operations.len(), paths),
                (count, unknown.iter().map(|p| (*p).to_owned()).collect())
            );
        }
        for (document, error) in [
            (
                json!({}),
                "object into Go value of type []handlers.jsonPatchOp",
            ),
            (
                json!([1]),
                "number into Go value of type handlers.jsonPatchOp",
            ),
            (
                json!([{"op": 1}]),
                "number into Go struct field jsonPatchOp.op of type string",
            ),
        ] {
            let found = operations(document).unwrap_err();
            assert_eq!(found, format!("json: cannot unmarshal {error}"));
        }
    }
}
