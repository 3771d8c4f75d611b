//! Warnings about CustomResourceDefinitions.

use std::cell::RefCell;

use serde_json::Value;

use super::collected::Warnings;
use crate::object::Object;
use crate::structural::{any_schema, is_known_format};

/// Warns of formats that the server does not check, unless the old definition names them as well.
pub(super) fn definition(object: &Object, old: Option<&Object>, warnings: &mut Warnings) {
    let known = old.map(unrecognized_formats).unwrap_or_default();
    let found = unrecognized_formats(object).into_iter();
    for format in found.filter(|format| !known.contains(format)) {
        warnings.add(format!("unrecognized format {format:?}"));
    }
}

/// Returns the formats that are not recognized, in all versions of a CRD.
// `getUnrecognizedFormatsInCRD`.
fn unrecognized_formats(object: &Object) -> Vec<String> {
    let found = RefCell::new(Vec::new());
    let collect = |schema: &Value| {
        let text = |member: &str| schema[member].as_str().unwrap_or_default();
        let (kind, format) = (text("type"), text("format"));
        if !format.is_empty() && !is_known_format(&[kind.to_owned()], format) {
            found.borrow_mut().push(format.to_owned());
        }
        // The search goes on.
        false
    };
    let versions = object
        .get("spec")
        .and_then(|spec| spec["versions"].as_array());
    for version in versions.into_iter().flatten() {
        any_schema(&version["schema"]["openAPIV3Schema"], &collect);
    }
    found.into_inner()
}
