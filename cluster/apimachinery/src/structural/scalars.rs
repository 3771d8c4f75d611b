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

/// The type of whole numbers, with the format that a schema asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Integer<'a> {
    pub(super) format: Option<&'a str>,
}

impl Integer<'_> {
    /// Returns whether a limit is of the type.
    fn has(self, limit: f64) -> bool {
        let most = if self.format == Some("int32") {
            2f64.powi(31)
        } else {
            2f64.powi(63)
        };
        limit.fract() == 0.0 && (-most..most).contains(&limit)
    }

    fn shown(self) -> String {
        match self.format {
            Some(format) => format!("of type integer with format {format}"),
            None => "of type integer (default format)".to_owned(),
        }
    }
}

/// A number that is compared with limits.
#[derive(Debug)]
pub(super) struct Checked<'a> {
    pub(super) number: &'a Number,
    pub(super) path: &'a str,
    /// The type that the limits must have too.
    pub(super) integer: Option<Integer<'a>>,
}

impl Checked<'_> {
    /// Returns a limit as the number is compared with it, and as it is shown.
    ///
    /// A limit outside the integer type is reported, and is applied nevertheless.
    fn limit(&self, name: &str, limit: f64, outcome: &mut Outcome) -> (f64, String) {
        if let Some(integer) = self.integer.filter(|integer| !integer.has(limit)) {
            let (shown, path) = (integer.shown(), self.path);
            outcome.fail_as_a_whole(format!("{name} value must be {shown} in {path}"));
            return (limit, float(limit));
        }
        // The server compares whole numbers with limits that are cut to whole ones.
        if !self.is_integer() {
            (limit, float(limit))
        } else {
            (limit.trunc(), limit.trunc().to_string())
        }
    }

    /// Checks that the number itself is of the type; a single one is of 32 bits.
    // `IsValueValidAgainstRange`.
    pub(super) fn check_range(&self, single: bool, outcome: &mut Outcome) {
        let value = self.number.as_f64().unwrap_or_default();
        let shown = match self.integer {
            // Every number that Go decodes as an integer fits into 64 bits.
            Some(integer) if self.is_integer() && integer.format != Some("int32") => return,
            Some(integer) if !integer.has(value) => integer.shown(),
            None if single && value.abs() > f64::from(f32::MAX) => {
                "of type number with format float".to_owned()
            }
            _ => return,
        };
        let path = self.path;
        outcome.fail_as_a_whole(format!("Checked value must be {shown} in {path}"));
    }

    fn is_integer(&self) -> bool {
        self.number.as_i64().is_some()
    }

    fn fail(&self, rest: &str, outcome: &mut Outcome) {
        let kind = FaultKind::Invalid(Value::Number(self.number.clone()));
        outcome.fail(self.path, kind, rest);
    }

    fn check_multiple(&self, value: f64, factor: f64, outcome: &mut Outcome) {
        let (factor, shown) = self.limit("MultipleOf", factor, outcome);
        if factor <= 0.0 {
            let path = self.path;
            let kind = FaultKind::Invalid(serde_json::from_str(&shown).unwrap_or_default());
            let text = format!("factor MultipleOf declared for {path} must be positive: {shown}");
            outcome.fail_with(path, kind, text);
        } else if !is_multiple(value, factor) {
            self.fail(&format!("should be a multiple of {shown}"), outcome);
        }
    }
}

pub(super) fn check_number(bounds: &Bounds, checked: &Checked<'_>, outcome: &mut Outcome) {
    let Some(value) = checked.number.as_f64() else {
        return;
    };
    if let Some(factor) = bounds.multiple_of {
        checked.check_multiple(value, factor, outcome);
    }
    if let Some(most) = bounds.maximum {
        let (most, shown) = checked.limit("Maximum boundary", most, outcome);
        match bounds.exclusive_maximum {
            true if value >= most => checked.fail(&format!("should be less than {shown}"), outcome),
            false if value > most => {
                checked.fail(&format!("should be less than or equal to {shown}"), outcome);
            }
            _ => {}
        }
    }
    if let Some(least) = bounds.minimum {
        let (least, shown) = checked.limit("Minimum boundary", least, outcome);
        match bounds.exclusive_minimum {
            true if value <= least => {
                checked.fail(&format!("should be greater than {shown}"), outcome);
            }
            false if value < least => {
                let rest = format!("should be greater than or equal to {shown}");
                checked.fail(&rest, outcome);
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

/// Checks the number of members.
pub(super) fn check_size(bounds: &Bounds, size: usize, path: &str, outcome: &mut Outcome) {
    let count = length(size);
    if let Some(least) = bounds.min_properties.filter(|least| count < *least) {
        let rest = format!("should have at least {least} properties");
        outcome.fail(path, FaultKind::Invalid(count.into()), &rest);
    }
    if let Some(most) = bounds.max_properties.filter(|most| count > *most) {
        let rest = format!("should have at most {most} properties");
        outcome.fail(path, FaultKind::TooMany(size, most), &rest);
    }
}
