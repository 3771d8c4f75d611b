//! The nesting depth of documents.

use serde_json::Value;

/// The maximum nesting of a document; it bounds every recursion over one.
///
/// The JSON parser has the same limit.
pub const DEEPEST: usize = 110;

/// Returns whether a value nests deeper than some number of levels.
///
/// ```
/// use lariat_apimachinery::nesting::is_deeper;
/// use serde_json::json;
///
/// assert!(is_deeper(&json!([[1]]), 1));
/// assert!(!is_deeper(&json!([[1]]), 2));
/// ```
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
