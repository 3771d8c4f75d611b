//! Validation of `managedFields`.

use serde_json::Value;

use super::set::Set;

/// Checks the `managedFields` of an object; null counts as empty.
///
/// # Errors
///
/// An entry is invalid; the text is the API server's.
///
/// # Examples
///
/// ```
/// use lariat_apimachinery::managed::check_entries;
/// use serde_json::json;
///
/// let entry = json!({"operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}});
/// assert!(check_entries(&json!([entry])).is_ok());
/// assert!(check_entries(&json!([{"operation": "Patch"}])).is_err());
/// ```
pub fn check_entries(entries: &Value) -> Result<(), String> {
    for entry in entries.as_array().into_iter().flatten() {
        let text = |member: &str| entry[member].as_str().unwrap_or_default();
        // `DecodeManagedFields`: the first faulty entry decides the error, and its checks come in this order.
        if !matches!(text("operation"), "Apply" | "Update") {
            return Err("operation must be `Apply` or `Update`".to_owned());
        }
        if text("apiVersion").is_empty() {
            return Err("apiVersion must not be empty".to_owned());
        }
        match text("fieldsType") {
            "FieldsV1" => {}
            "" => return Err("missing fieldsType in managed fields entry".to_owned()),
            other => {
                return Err(format!(
                    "invalid fieldsType {other:?} in managed fields entry"
                ));
            }
        }
        let fields = &entry["fieldsV1"];
        // Absent fields are an empty set, as `decodeVersionedSet` has it.
        if !fields.is_null() && Set::from_json(fields).is_err() {
            return Err("error decoding manager from fieldsV1".to_owned());
        }
    }
    Ok(())
}
