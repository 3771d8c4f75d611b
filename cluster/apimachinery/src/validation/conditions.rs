//! Conditions of the form that all kinds may use.

use std::collections::HashSet;

use super::causes::Causes;
use super::field::Field;
use super::formats;

const MOST_REASON: usize = 1024;
const MOST_MESSAGE: usize = 32 * 1024;

/// Checks a list of conditions.
pub(crate) fn check_conditions(conditions: &Field<'_>, causes: &mut Causes) {
    let mut seen = HashSet::new();
    for condition in conditions.items() {
        let kind = condition.get("type");
        // `ValidateConditions`; the condition is checked all the same.
        causes.check_unique(&kind, &mut seen);
        check_condition(&condition, causes);
    }
}

fn check_condition(condition: &Field<'_>, causes: &mut Causes) {
    causes.check_format(&condition.get("type"), formats::qualified_name);
    causes.check_supported(&condition.get("status"), &["False", "True", "Unknown"]);
    let generation = condition.get("observedGeneration");
    if generation.int().is_some_and(|generation| generation < 0) {
        causes.invalid(&generation, "must be greater than or equal to zero");
    }
    // A zero time is written as null, which counts as absent.
    causes.check_given(&condition.get("lastTransitionTime"), "");
    let (reason, message) = (condition.get("reason"), condition.get("message"));
    causes.check_name(&reason, formats::condition_reason);
    // Beside the form, so a reason may have two causes.
    if reason.text().len() > MOST_REASON {
        causes.too_long(&reason, MOST_REASON);
    }
    if message.text().len() > MOST_MESSAGE {
        causes.too_long(&message, MOST_MESSAGE);
    }
}
