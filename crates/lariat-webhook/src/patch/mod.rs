//! The JSON patch that makes of an object what a handler made of its typed value.

mod carry;
mod operations;

use serde::Serialize;
use serde_json::Value;

/// Returns the JSON patch of a raw object, from a typed value before and after; none if nothing changed.
///
/// Fields that the type does not have are not among those compared, so they stay.
///
/// # Errors
///
/// A value cannot be serialized.
pub(crate) fn patch(
    raw: &Value,
    before: &impl Serialize,
    after: &impl Serialize,
) -> Result<Option<Vec<u8>>, serde_json::Error> {
    let (before, after) = (serde_json::to_value(before)?, serde_json::to_value(after)?);
    let wanted = carry::over(raw, &before, &after);
    let operations = operations::between(raw, &wanted);
    if operations.is_empty() {
        return Ok(None);
    }
    serde_json::to_vec(&operations).map(Some)
}

#[cfg(test)]
mod tests;
