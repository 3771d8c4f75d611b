//! Numbers of Pods, and shares of all Pods.

use serde_json::Value;

use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;
use crate::validation::structs::{Members, Shape};

/// Checks a number that is not below zero, or a share that is at most 100 %.
pub(in crate::validation) fn check_share(at: &Field<'_>, causes: &mut Causes) {
    check_number(at, causes);
    check_at_most_all(at, causes);
}

/// Checks a number that is not below zero, or a share of any size.
pub(super) fn check_number(at: &Field<'_>, causes: &mut Causes) {
    match at.value() {
        // `ValidatePositiveIntOrPercent`.
        Value::String(_) => causes.check_format(at, formats::percent),
        _ => causes.check_not_negative(at),
    }
}

/// Checks that a share is at most 100 %.
pub(super) fn check_at_most_all(at: &Field<'_>, causes: &mut Causes) {
    if percent(at).is_some_and(|percent| percent > 100) {
        causes.invalid(at, "must not be greater than 100%");
    }
}

fn percent(at: &Field<'_>) -> Option<i64> {
    let digits = at.value().as_str()?.strip_suffix('%')?;
    // A text of another form was reported by `check_number`, and has no value to compare.
    let is_number = formats::percent(at.text()).is_empty();
    is_number.then(|| digits.parse().unwrap_or(i64::MAX))
}

/// Returns whether a number or percentage is zero; invalid text counts as zero.
pub(super) fn is_zero(at: &Field<'_>) -> bool {
    let number = match at.value() {
        Value::String(text) => percent(at).or_else(|| text.parse().ok()),
        value => value.as_i64(),
    };
    number.unwrap_or(0) == 0
}

/// The form of the update strategy of Deployments and DaemonSets in messages.
// The two kinds have Go types of the same members, so one table serves both.
pub(super) const STRATEGY: Members = &[
    ("type", "Type", Shape::Text),
    (
        "rollingUpdate",
        "RollingUpdate",
        Shape::Struct(&[
            ("maxUnavailable", "MaxUnavailable", Shape::Number),
            ("maxSurge", "MaxSurge", Shape::Number),
        ]),
    ),
];
