//! Success policies of Jobs with indexes.

use super::indexes;
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::structs::{self, Members, Shape};

const MOST_BYTES: usize = 64 * 1024;

/// The form of a policy in messages.
pub(super) const POLICY: Members = &[(
    "rules",
    "Rules",
    Shape::List(&[
        ("succeededIndexes", "SucceededIndexes", Shape::Value),
        ("succeededCount", "SucceededCount", Shape::Value),
    ]),
)];

pub(super) fn check(spec: &Field<'_>, causes: &mut Causes) {
    let policy = spec.get("successPolicy");
    if !policy.is_set() {
        return;
    }
    if spec.text_of("completionMode") != "Indexed" {
        let shown = structs::shown(policy.value(), POLICY);
        causes.invalid_struct(&policy, &shown, "requires indexed completion mode");
        // `validateSuccessPolicy` looks at nothing else of a policy that cannot apply.
        return;
    }
    let rules = policy.get("rules");
    let detail = "at least one rules must be specified when the successPolicy is specified";
    causes.check_given(&rules, detail);
    causes.check_count(&rules, 20);
    let completions = spec.int_of("completions").unwrap_or(0);
    for rule in rules.items() {
        check_rule(&rule, completions, causes);
    }
}

fn check_rule(rule: &Field<'_>, completions: i64, causes: &mut Causes) {
    let (count, listed) = (rule.get("succeededCount"), rule.get("succeededIndexes"));
    if !count.is_set() && !listed.is_set() {
        let detail = "at least one of succeededCount or succeededIndexes must be specified";
        causes.required(rule, detail);
    }
    // Stays zero if the list cannot be read; the count then is reported as too large as well.
    let mut total = 0;
    if listed.is_set() {
        if listed.text().len() > MOST_BYTES {
            causes.too_long(&listed, MOST_BYTES);
        }
        match indexes::count(listed.text(), completions) {
            Ok(count) => total = count,
            Err(error) => {
                causes.invalid(&listed, &format!("error parsing succeededIndexes: {error}"));
            }
        }
    }
    causes.check_not_negative(&count);
    let mut below = |is_limit: bool, most: i64, what: &str| {
        if is_limit && count.int().is_some_and(|count| count > most) {
            causes.invalid(
                &count,
                &format!("must be less than or equal to {most} ({what})"),
            );
        }
    };
    below(true, completions, "the number of specified completions");
    let what = "the number of indexes in the specified succeededIndexes field";
    below(listed.is_set(), total, what);
}
