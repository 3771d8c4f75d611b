//! The formats that a CRD names and the server does not check.

use std::cell::RefCell;

use serde_json::Value;

use super::parts::{array, text};
use super::tolerated::any_schema;
use crate::object::Object;
use crate::structural::is_known_format;

/// Returns the formats that are not recognized, in all versions of a CRD.
// `getUnrecognizedFormatsInCRD`.
pub(crate) fn unrecognized_formats(object: &Object) -> Vec<String> {
    let found = RefCell::new(Vec::new());
    let collect = |schema: &Value| {
        let (kind, format) = (text(schema, "type"), text(schema, "format"));
        if !format.is_empty() && !is_known_format(&[kind.to_owned()], format) {
            found.borrow_mut().push(format.to_owned());
        }
        // The search goes on.
        false
    };
    let versions = object.get("spec").map(|spec| array(spec, "versions"));
    for version in versions.into_iter().flatten() {
        any_schema(&version["schema"]["openAPIV3Schema"], &collect);
    }
    found.into_inner()
}
