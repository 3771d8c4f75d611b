//! Selectors of devices.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::lists::check_list;
use crate::structural::check_expression_about;
use crate::validation::causes::Causes;
use crate::validation::field::Field;

/// What expressions know of a device.
static DEVICE: LazyLock<Value> = LazyLock::new(|| {
    let by_domain = json!({"type": "object", "additionalProperties":
        {"type": "object", "additionalProperties": {}}});
    json!({"type": "object", "properties": {
        "driver": {"type": "string"}, "allowMultipleAllocations": {"type": "boolean"},
        // Of attributes only the nesting is known, since drivers choose names and types.
        "attributes": by_domain, "capacity": by_domain,
    }})
});

const MOST: usize = 32;
const MOST_BYTES: usize = 10 << 10;

/// Checks a list of selectors.
pub(super) fn check_selectors(selectors: &Field<'_>, causes: &mut Causes) {
    check_list(selectors, MOST, causes, |selector, causes| {
        let cel = selector.get("cel");
        if cel.is_set() {
            check_cel(&cel.get("expression"), causes);
        } else {
            causes.required(&cel, "");
        }
    });
}

fn check_cel(at: &Field<'_>, causes: &mut Causes) {
    if at.text().len() > MOST_BYTES {
        causes.too_long(at, MOST_BYTES);
        return;
    }
    match check_expression_about(at.text(), "device", &DEVICE) {
        Err(wrong) => causes.invalid_as(at, at.text(), &format!("compilation failed: {wrong}")),
        // An expression of an unknown type may be a bool at run time, so the server accepts it too.
        Ok("" | "bool") => {}
        Ok(found) => {
            let detail = format!("must evaluate to bool or the unknown type, not {found}");
            causes.invalid_as(at, at.text(), &detail);
        }
    }
}
