//! How deep documents nest.

use serde_json::Value;

/// The deepest nesting of a document, which bounds every walk through it.
///
/// The JSON parser has the same limit.
pub const DEEPEST: usize = 110;

/// Returns whether a value nests deeper than some number of levels.
#[must_use]
pub fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(rest) = levels.checked_sub(1) else {
        return value.is_array() || value.is_object();
    };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper(item, rest)),
        Value::Object(members) => members.values().any(|member| is_deeper(member, rest)),
        _ => false,
    }
}
