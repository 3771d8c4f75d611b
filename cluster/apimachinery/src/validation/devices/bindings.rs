//! Conditions under which a device counts as bound.

use std::collections::HashSet;

use super::lists::check_list;
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;

const MOST: usize = 4;

/// Checks the conditions for success and failure of a device or an allocated one.
pub(super) fn check_bindings(within: &Field<'_>, causes: &mut Causes) {
    let [success, failure] =
        ["bindingConditions", "bindingFailureConditions"].map(|name| within.get(name));
    // `validateDeviceBindingParameters`.
    for list in [&success, &failure] {
        check_list(list, MOST, causes, |each, causes| {
            causes.check_format(each, formats::qualified_name);
        });
    }
    let mut seen = HashSet::new();
    for condition in success.items() {
        causes.check_unique(&condition, &mut seen);
    }
    let mut failures = HashSet::new();
    for condition in failure.items() {
        causes.check_unique(&condition, &mut failures);
        if seen.contains(condition.text()) {
            let detail = "bindingFailureConditions must not overlap with bindingConditions";
            causes.invalid(&condition, detail);
        }
    }
    match (success.is_void(), failure.is_void()) {
        (true, false) => {
            let detail = "bindingConditions are required to use bindingFailureConditions";
            // The cause is at the member that is missing, shown as null.
            causes.invalid_json(&success, detail);
        }
        (false, true) => {
            let detail = "bindingFailureConditions are required to use bindingConditions";
            causes.invalid_json(&failure, detail);
        }
        _ => {}
    }
}
