//! The configuration of devices for drivers.

use serde_json::Value;

use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::volumes;

/// The largest configuration for a driver, in bytes.
const MOST_BYTES: usize = 10 << 10;

/// Checks one configuration; a stored one may be of any length.
pub(super) fn check_config(config: &Field<'_>, stored: bool, causes: &mut Causes) {
    let opaque = config.get("opaque");
    if !opaque.is_set() {
        causes.required(&opaque, "");
        return;
    }
    volumes::check_driver(&opaque.get("driver"), causes);
    check_raw(&opaque.get("parameters"), stored, causes);
}

/// Checks data that is an object for someone else to read.
pub(super) fn check_raw(at: &Field<'_>, stored: bool, causes: &mut Causes) {
    match at.value() {
        Value::Null => causes.required(at, ""),
        // Go measures what the client has sent; here it is JSON without blanks.
        value if !stored && value.to_string().len() > MOST_BYTES => {
            causes.too_long(at, MOST_BYTES);
        }
        Value::Object(_) => {}
        // Parameters may be secret.
        _ => causes.invalid_as(at, "<value omitted>", "must be a valid JSON object"),
    }
}
