//! The limits of texts, numbers, lists and maps.
//!
//! Source: `k8s.io/kube-openapi/pkg/validation/validate/values.go`.

use std::collections::HashSet;

use serde_json::{Number, Value};

use super::fault::FaultKind;
use super::node::Bounds;
use super::outcome::Outcome;
use crate::go_text::float;

fn length(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Checks a text, up to the first rule that it breaks.
pub(super) fn check_text(bounds: &Bounds, text: &str, path: &str, outcome: &mut Outcome) {
    // Characters, not bytes, as `utf8.RuneCount`; the message of the cause says bytes all the same.
    let count = length(text.chars().count());
    if let Some(most) = bounds.max_length.filter(|most| count > *most) {
        let rest = format!("should be at most {most} chars long");
        return outcome.fail(path, FaultKind::TooLong(most), &rest);
    }
    if let Some(least) = bounds.min_length.filter(|least| count < *least) {
        let rest = format!("should be at least {least} chars long");
        return outcome.fail(path, FaultKind::Invalid(text.into()), &rest);
    }
    let Some(pattern) = &bounds.pattern else {
        return;
    };
    let rest = match &pattern.compiled {
        Ok(compiled) if compiled.is_match(text) => return,
        Ok(_) => format!("should match '{}'", pattern.text),
        Err(error) => format!(
            "should match '{}, but pattern is invalid: {error}'",
            pattern.text
        ),
    };
    outcome.fail(path, FaultKind::Invalid(text.into()), &rest);
}

pub(super) fn check_number(bounds: &Bounds, number: &Number, path: &str, outcome: &mut Outcome) {
    let Some(value) = number.as_f64() else {
        return;
    };
    // The server compares whole numbers with limits that are cut to whole ones.
    let limit = |limit: f64| {
        if number.is_f64() {
            limit
        } else {
            limit.trunc()
        }
    };
    let factor = bounds.multiple_of.map(limit);
    if let Some(factor) = factor.filter(|factor| *factor <= 0.0) {
        let shown = float(factor);
        let kind = FaultKind::Invalid(serde_json::from_str(&shown).unwrap_or_default());
        let text = format!("factor MultipleOf declared for {path} must be positive: {shown}");
        outcome.fail_with(path, kind, text);
    }
    let mut fail = |rest: String| {
        let kind = FaultKind::Invalid(Value::Number(number.clone()));
        outcome.fail(path, kind, &rest);
    };
    if let Some(factor) = factor.filter(|factor| *factor > 0.0 && !is_multiple(value, *factor)) {
        fail(format!("should be a multiple of {}", float(factor)));
    }
    if let Some(most) = bounds.maximum.map(limit) {
        match bounds.exclusive_maximum {
            true if value >= most => fail(format!("should be less than {}", float(most))),
            false if value > most => {
                fail(format!("should be less than or equal to {}", float(most)));
            }
            _ => {}
        }
    }
    if let Some(least) = bounds.minimum.map(limit) {
        match bounds.exclusive_minimum {
            true if value <= least => fail(format!("should be greater than {}", float(least))),
            false if value < least => {
                fail(format!(
                    "should be greater than or equal to {}",
                    float(least)
                ));
            }
            _ => {}
        }
    }
}

fn is_multiple(value: f64, factor: f64) -> bool {
    // `MultipleOf`, which multiplies by the inverse for small factors to lose less.
    let times = if factor < 1.0 {
        1.0 / factor * value
    } else {
        value / factor
    };
    // Go's helper allows for what floating-point division leaves over.
    (times - times.round()).abs() <= f64::EPSILON * times.abs().max(1.0)
}

pub(super) fn check_elements(
    bounds: &Bounds,
    elements: &[Value],
    path: &str,
    outcome: &mut Outcome,
) {
    let count = length(elements.len());
    if let Some(least) = bounds.min_items.filter(|least| count < *least) {
        let rest = format!("should have at least {least} items");
        // The value of this cause is the count, not the list.
        outcome.fail(path, FaultKind::Invalid(count.into()), &rest);
    }
    if let Some(most) = bounds.max_items.filter(|most| count > *most) {
        let rest = format!("should have at most {most} items");
        outcome.fail(path, FaultKind::TooMany(elements.len(), most), &rest);
    }
    let has_duplicates = || {
        let mut seen = HashSet::with_capacity(elements.len());
        !elements.iter().all(|element| seen.insert(element))
    };
    if bounds.unique_items && has_duplicates() {
        let kind = FaultKind::Invalid("".into());
        outcome.fail(path, kind, "shouldn't contain duplicates");
    }
}

/// Checks the number of members; returns whether the members can be checked.
pub(super) fn check_size(bounds: &Bounds, size: usize, path: &str, outcome: &mut Outcome) -> bool {
    let count = length(size);
    if let Some(least) = bounds.min_properties.filter(|least| count < *least) {
        let rest = format!("should have at least {least} properties");
        outcome.fail(path, FaultKind::Invalid(count.into()), &rest);
        return false;
    }
    if let Some(most) = bounds.max_properties.filter(|most| count > *most) {
        let rest = format!("should have at most {most} properties");
        outcome.fail(path, FaultKind::TooMany(size, most), &rest);
        return false;
    }
    true
}
