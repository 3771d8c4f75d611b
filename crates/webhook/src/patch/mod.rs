//! The JSON patch that turns an object into what a handler made of its typed value.
//!
//! A handler works on a typed value, which may lack fields of the object and add defaults. So its changes are carried
//! over to the raw object first (`carry`), and the patch is the difference of the raw states (`operations`).

mod carry;
mod operations;

use serde::Serialize;
use serde_json::Value;

/// Returns the JSON patch of a raw object, or `None` if nothing has changed.
///
/// The patch has the changes between the two typed values. Fields that the type does not know stay as they are.
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
