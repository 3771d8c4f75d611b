//! Validation of a value against a schema.
//!
//! Source: `k8s.io/kube-openapi/pkg/validation/validate`, whose order of checks this keeps, and
//! `apiserver/validation/ratcheting.go`: what was wrong before and did not change is tolerated.

use serde_json::{Map, Value};

use super::fault::{Fault, FaultKind};
use super::node::{Additional, Junctors, Node};
use super::outcome::Outcome;
use super::scalars::{Checked, Integer};
use super::{correlate, formats, scalars};

/// A value to check: its new and old state, and its path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) value: &'a Value,
    /// The value that it replaces, if that is known.
    pub(super) old: Option<&'a Value>,
    pub(super) path: &'a str,
}

impl Node {
    pub(super) fn check(&self, subject: Subject<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        self.check_type(subject, &mut outcome);
        // For null, `SchemaValidator.Validate` runs the checks of type and enum only.
        if subject.value.is_null() {
            self.check_choice(subject, &mut outcome);
        } else {
            self.check_content(subject, &mut outcome);
        }
        // `ratchetingValueValidator.Validate`: if the value as a whole did not change, nothing in it is wrong.
        let is_unchanged = |old| correlate::is_unchanged(self, subject.value, old);
        if !outcome.is_valid() && subject.old.is_some_and(is_unchanged) {
            outcome.forget_faults();
        }
        outcome
    }

    fn check_content(&self, subject: Subject<'_>, outcome: &mut Outcome) {
        // The order is that of the list of validators in `NewSchemaValidator`, since causes come in the order of
        // checks.
        outcome.merge(self.junctors.check(subject));
        match subject.value {
            Value::String(text) => {
                scalars::check_text(&self.bounds, text, subject.path, outcome);
                if let Some(format) = &self.format
                    && !formats::admits(format, text)
                {
                    let kind = FaultKind::Type(text.clone());
                    let rest = format!("must be of type {format}: {text:?}");
                    outcome.fail(subject.path, kind, &rest);
                }
            }
            Value::Number(number) => {
                let checked = Checked {
                    number,
                    path: subject.path,
                    integer: self.integer(),
                };
                let is_single = self.format.as_deref() == Some("float");
                checked.check_range(is_single, outcome);
                scalars::check_number(&self.bounds, &checked, outcome);
            }
            Value::Array(elements) => self.check_elements(elements, subject, outcome),
            _ => {}
        }
        self.check_choice(subject, outcome);
        if let Value::Object(members) = subject.value {
            self.check_members(members, subject, outcome);
        }
        // Counted as `Result.Inc` does, even where the number looks arbitrary: it decides which alternative's faults
        // are shown.
        outcome.checks += 1;
    }

    /// Returns the type of whole numbers, if values have no other.
    fn integer(&self) -> Option<Integer<'_>> {
        let format = self.format.as_deref();
        (self.types == ["integer"]).then(|| Integer {
            format: format.filter(|format| matches!(*format, "int32" | "int64")),
        })
    }

    fn check_type(&self, subject: Subject<'_>, outcome: &mut Outcome) {
        if self.types.is_empty() {
            return;
        }
        let (found, format) = type_of(subject.value);
        if let Some(wanted) = self.misfit(subject.value, found, format) {
            // If the format is what is wrong, Go names formats on both sides of the sentence.
            let found = wanted.as_ref().map_or(found, |_| format);
            let wanted = wanted.unwrap_or_else(|| self.types.join(","));
            let rest = format!("must be of type {wanted}: {found:?}");
            outcome.fail(subject.path, FaultKind::Type(found.to_owned()), &rest);
        } else {
            outcome.checks += 1;
        }
    }

    /// Returns the fault of a wrong type.
    ///
    /// It is `Some` with the expected format where the server reports the format instead.
    fn misfit(&self, value: &Value, found: &str, format: &str) -> Option<Option<String>> {
        // Null has no type to compare. It fits where it is allowed, and the wanted types are named where not.
        if value.is_null() {
            return (!self.nullable).then_some(None);
        }
        let numeric = self.is_type("number") || self.is_type("integer");
        let whole = value.as_f64().is_some_and(is_whole);
        let fits = self.is_type(found)
            || (found == "number" && whole && self.is_type("integer"))
            || (found == "integer" && self.is_type("number"));
        let measured = matches!(value, Value::String(_) | Value::Array(_));
        match &self.format {
            Some(wanted) if !measured => (!fits && wanted != format).then(|| Some(wanted.clone())),
            // A format of texts stands in for the type, as the server has it.
            Some(_) if !numeric => None,
            _ => (!fits).then_some(None),
        }
    }

    fn check_choice(&self, subject: Subject<'_>, outcome: &mut Outcome) {
        let choices = &self.bounds.choices;
        // `basicCommonValidator.Validate` never finds null, even if the enum has it.
        let is_choice = |choice: &Value| !choice.is_null() && same(choice, subject.value);
        // An empty enum is no restriction; a schema cannot say that nothing is allowed.
        if choices.is_empty() || choices.iter().any(is_choice) {
            return;
        }
        let text = |choice: &Value| match choice {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let texts: Vec<String> = choices.iter().map(text).collect();
        let rest = format!("should be one of [{}]", texts.join(" "));
        let kind = FaultKind::Unsupported(subject.value.clone(), texts);
        outcome.fail(subject.path, kind, &rest);
    }

    fn check_elements(&self, elements: &[Value], subject: Subject<'_>, outcome: &mut Outcome) {
        // Items are matched by their keys, not by their index, so that inserting one does not make all behind it new.
        let olds = correlate::Elements::of(self, subject.old);
        if let Some(items) = &self.shape.items {
            for (at, value) in elements.iter().enumerate() {
                let path = &*format!("{}[{at}]", subject.path);
                let old = olds.find(value);
                outcome.merge(items.check(Subject { value, old, path }));
            }
        }
        scalars::check_elements(&self.bounds, elements, subject.path, outcome);
        outcome.checks += 1;
    }

    fn check_members(
        &self,
        members: &Map<String, Value>,
        subject: Subject<'_>,
        outcome: &mut Outcome,
    ) {
        scalars::check_size(&self.bounds, members.len(), subject.path, outcome);
        let old = subject.old.and_then(Value::as_object);
        for (name, value) in members {
            // `SubPropertyValidator`: the type of an object is the same after every conversion, so it is always new.
            let is_type = subject.path.is_empty() && matches!(&**name, "kind" | "apiVersion");
            let old = old.filter(|_| !is_type).and_then(|old| old.get(name));
            let declared = self.shape.properties.get(name);
            match (declared, &self.shape.additional) {
                (Some(node), _) => {
                    let path = &*super::prune::child(subject.path, name);
                    outcome.merge(node.check(Subject { value, old, path }));
                }
                (None, Some(Additional::Schema(node))) => {
                    let path = &*format!("{}.{name}", subject.path);
                    // Go joins this path without looking whether it is the root's, so it begins with a dot there.
                    outcome.merge(node.check(Subject { value, old, path }));
                }
                (None, Some(Additional::Any(false))) => {
                    let text = format!("{}.{name} in body is a forbidden property", subject.path);
                    let (field, kind) = (subject.path.to_owned(), name.as_str().into());
                    let (field, kind) = (Some(field), FaultKind::Invalid(kind));
                    outcome.add(Fault { field, kind, text });
                }
                // Unknown members were pruned, so what is left here is preserved on purpose.
                (None, _) => {}
            }
        }
        let missing = self.bounds.required.iter();
        for name in missing.filter(|name| !members.contains_key(*name)) {
            let path = format!("{}.{name}", subject.path);
            outcome.fail(&path, FaultKind::Required, "is required");
        }
    }
}

impl Junctors {
    fn check(&self, subject: Subject<'_>) -> Outcome {
        // Alternatives are never compared with what was before; the value they belong to is.
        let old = None;
        let subject = Subject { old, ..subject };
        let mut outcome = Outcome::default();
        self.check_any(subject, &mut outcome);
        self.check_one(subject, &mut outcome);
        self.check_all(subject, &mut outcome);
        if self
            .not
            .as_ref()
            .is_some_and(|not| not.check(subject).is_valid())
        {
            let text = format!("{:?} must not validate the schema (not)", subject.path);
            outcome.fail_as_a_whole(text);
        }
        outcome.checks += 1;
        outcome
    }

    fn check_any(&self, subject: Subject<'_>, outcome: &mut Outcome) {
        if self.any_of.is_empty() {
            return;
        }
        let (valid, best) = alternatives(&self.any_of, subject);
        if valid == 0 {
            let text = format!(
                "{:?} must validate at least one schema (anyOf)",
                subject.path
            );
            outcome.fail_as_a_whole(text);
        }
        // Also of a valid alternative: its count of checks goes into the sum.
        outcome.merge(best);
    }

    fn check_one(&self, subject: Subject<'_>, outcome: &mut Outcome) {
        if self.one_of.is_empty() {
            return;
        }
        let (valid, best) = alternatives(&self.one_of, subject);
        if valid == 1 {
            outcome.merge(best);
            return;
        }
        let found = match valid {
            0 => "Found none valid".to_owned(),
            many => format!("Found {many} valid alternatives"),
        };
        let path = subject.path;
        let text = format!("{path:?} must validate one and only one schema (oneOf). {found}");
        outcome.fail_as_a_whole(text);
        // The faults of the best alternative give a hint; with several valid ones there are none to show.
        if valid == 0 {
            outcome.merge(best);
        }
    }

    fn check_all(&self, subject: Subject<'_>, outcome: &mut Outcome) {
        let mut valid = 0;
        for node in &self.all_of {
            let each = node.check(subject);
            valid += usize::from(each.is_valid());
            outcome.merge(each);
        }
        if valid != self.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            let path = subject.path;
            let text = format!("{path:?} must validate all the schemas (allOf){none}");
            outcome.fail_as_a_whole(text);
        }
    }
}

/// Checks alternatives.
///
/// Returns how many are valid, and the first valid one or the one with the most passed checks.
fn alternatives(nodes: &[Node], subject: Subject<'_>) -> (usize, Outcome) {
    let mut valid = 0;
    let mut best: Option<Outcome> = None;
    for node in nodes {
        let outcome = node.check(subject);
        // A valid one always wins, even over an invalid one with more passed checks.
        let is_first_valid = outcome.is_valid() && valid == 0;
        valid += usize::from(outcome.is_valid());
        let is_better = best
            .as_ref()
            .is_none_or(|best| outcome.checks > best.checks);
        if is_first_valid || (valid == 0 && is_better) {
            best = Some(outcome);
        }
    }
    (valid, best.unwrap_or_default())
}

/// Returns the type of a value, and the format numbers have by themselves.
fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        // What does not fit into 64 bits with a sign is a fraction to Go.
        Value::Number(number) if number.as_i64().is_none() => ("number", "float64"),
        Value::Number(_) => ("integer", "int64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

/// Returns whether a fraction counts as a whole number.
// `IsFloat64AJSONInteger`, which has only what JavaScript can represent exactly, and a tolerance.
fn is_whole(number: f64) -> bool {
    const MOST: f64 = ((1_u64 << 53) - 1) as f64;
    let (cut, size) = (number.trunc(), number.abs());
    size <= MOST && (cut == number || (number - cut).abs() / (size + cut.abs()) < 1e-9)
}

/// Compares as the server does, to which `1` and `1.0` are the same.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) if left.is_f64() != right.is_f64() => {
            left.as_f64() == right.as_f64()
        }
        _ => left == right,
    }
}
