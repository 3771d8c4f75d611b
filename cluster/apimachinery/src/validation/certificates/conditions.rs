//! The conditions of a certificate signing request.

use crate::validation::causes::Causes;
use crate::validation::context::{Context, Part};
use crate::validation::dump;
use crate::validation::field::Field;

const DECISIONS: [&str; 2] = ["Approved", "Denied"];

pub(super) fn check(context: &Context<'_>, causes: &mut Causes) {
    let conditions = context.get("status").get("conditions");
    let old = context.old("status").map(|old| old.get("conditions"));
    // `getValidationOptions`: what the old object had may stay.
    let tolerates = |test: fn(&Field<'_>) -> bool| old.as_ref().is_some_and(test);
    let (any_empty, any_double) = (tolerates(has_empty), tolerates(has_double));
    let both_before = tolerates(has_both);
    let mut seen: Vec<&str> = Vec::new();
    for condition in conditions.items() {
        let kind = condition.get("type");
        if kind.is_void() && !any_empty {
            causes.required(&kind, "");
        }
        check_status(&condition, causes);
        let other = DECISIONS.iter().find(|each| **each != kind.text());
        let is_decision = DECISIONS.contains(&kind.text());
        // Reported at the second of the two, whichever it is.
        if is_decision && !both_before && other.is_some_and(|other| seen.contains(other)) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            causes.invalid_as(&conditions, kind.text(), detail);
        }
        if seen.contains(&kind.text()) && !any_double {
            causes.duplicate_as(&kind, kind.text());
        }
        seen.push(kind.text());
    }
    if let Some(old) = old {
        check_changes(&conditions, &old, context.part == Part::Approval, causes);
    }
}

fn check_status(condition: &Field<'_>, causes: &mut Causes) {
    // A decision is there or not; it cannot be unknown.
    let is_final = matches!(condition.text_of("type"), "Approved" | "Denied" | "Failed");
    let supported: &[&str] = if is_final {
        &["True"]
    } else {
        &["False", "True", "Unknown"]
    };
    causes.check_one_of(&condition.get("status"), supported);
}

fn has_empty(conditions: &Field<'_>) -> bool {
    conditions
        .items()
        .any(|each| each.text_of("type").is_empty())
}

fn has_double(conditions: &Field<'_>) -> bool {
    let mut kinds: Vec<String> = conditions
        .items()
        .map(|each| each.text_of("type").to_owned())
        .collect();
    let count = kinds.len();
    kinds.sort();
    kinds.dedup();
    kinds.len() < count
}

fn has_both(conditions: &Field<'_>) -> bool {
    DECISIONS.iter().all(|kind| count(conditions, kind) > 0)
}

fn count(conditions: &Field<'_>, kind: &str) -> usize {
    conditions
        .items()
        .filter(|each| each.text_of("type") == kind)
        .count()
}

/// Checks that decisions stay, and are taken where they may be.
fn check_changes(new: &Field<'_>, old: &Field<'_>, decides: bool, causes: &mut Causes) {
    for kind in ["Approved", "Denied", "Failed"] {
        // `validateCertificateSigningRequestUpdate`: decisions are final, also for who may approve.
        if count(new, kind) < count(old, kind) {
            let detail = format!("updates may not remove a condition of type {kind:?}");
            causes.forbidden(new, &detail);
        }
    }
    // Only the subresource `approval` may decide, because its permission is given apart.
    for kind in DECISIONS.iter().filter(|_| !decides) {
        let of = |list: &Field<'_>| -> Vec<serde_json::Value> {
            let items = list.items().filter(|each| each.text_of("type") == *kind);
            items.map(|each| each.value().clone()).collect()
        };
        let (now, was) = (of(new), of(old));
        let detail = match now.len().cmp(&was.len()) {
            std::cmp::Ordering::Greater => {
                format!("updates may not add a condition of type {kind:?}")
            }
            std::cmp::Ordering::Equal if now != was => {
                let difference = dump::diff_lists("CertificateSigningRequestCondition", &was, &now);
                format!("updates may not modify a condition of type {kind:?}\n{difference}")
            }
            _ => continue,
        };
        causes.forbidden(new, &detail);
    }
}
