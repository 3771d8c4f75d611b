//! Taking inputs apart.

use serde_json::Value;

/// Splits an input at its first line feed; JSON on one line has none.
#[must_use]
pub fn split(data: &[u8]) -> (&[u8], &[u8]) {
    match data.iter().position(|byte| *byte == b'\n') {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[]),
    }
}

/// Reads two JSON values, one on the first line and one behind it.
pub(crate) fn two_values(data: &[u8]) -> Option<(Value, Value)> {
    let (first, second) = split(data);
    Some((
        serde_json::from_slice(first).ok()?,
        serde_json::from_slice(second).ok()?,
    ))
}

/// Returns how deep a value nests.
pub(crate) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
