//! The parts of a CRD, any of which may be absent.

use serde_json::Value;

/// Returns a text in a part of a CRD, empty if there is none.
pub(super) fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value
        .get(member)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

pub(super) fn flag(value: &Value, member: &str) -> bool {
    value.get(member) == Some(&Value::Bool(true))
}

pub(super) fn array<'a>(value: &'a Value, member: &str) -> &'a [Value] {
    let array = value.get(member).and_then(Value::as_array);
    array.map_or(&[], Vec::as_slice)
}

/// Returns whether Go would keep a value when it omits empty ones.
pub(super) fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        // Numbers of a schema are pointers in Go, so zero is a value, and so is an empty object.
        Value::Bool(true) | Value::Number(_) => true,
        Value::String(text) => !text.is_empty(),
        Value::Array(elements) => !elements.is_empty(),
        Value::Object(_) => true,
    }
}
