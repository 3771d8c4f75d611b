//! What the server checks in literals once their types are right.
//!
//! Source: `cel/validator.go`.

use std::cmp::Ordering;
use std::sync::Arc;

use super::tree::{Call, Kind, Literal, Tree};
use super::types::Type;
use crate::{go_duration, go_regex, go_time};

/// The parts of a list or a map whose types must be the same ones.
#[derive(Debug)]
pub(super) struct Homogeneous {
    pub(super) parts: Vec<(usize, Type)>,
    /// Only the first part that differs is reported.
    pub(super) once: bool,
}

/// A text that a function reads once the types are right.
#[derive(Debug)]
pub(super) struct Argument {
    function: &'static str,
    text: Arc<str>,
}

impl Argument {
    /// Returns the first argument of a call, if it is such a text.
    pub(super) fn of(name: &str, arguments: &[Tree]) -> Option<Self> {
        let function = ["duration", "timestamp", "matches"];
        let function = function.into_iter().find(|each| *each == name)?;
        match &arguments.first()?.kind {
            Kind::Literal(Literal::Text(Some(text))) => Some(Self {
                function,
                text: Arc::clone(text),
            }),
            _ => None,
        }
    }

    /// Returns what is wrong with it.
    pub(super) fn fault(&self) -> Option<String> {
        let is_wrong = match self.function {
            "duration" => go_duration::check(&self.text).is_err(),
            "timestamp" => go_time::rfc3339(&self.text).is_err(),
            _ => go_regex::check(&self.text).is_err(),
        };
        is_wrong.then(|| invalid_argument(self.function))
    }
}

/// Returns the sentence about an argument that can have no meaning.
pub(super) fn invalid_argument(function: &str) -> String {
    format!("invalid {function} argument")
}

/// Returns whether a call is `duration` of an integer.
///
/// It has the right type, but cannot be evaluated.
pub(super) fn is_number_as_duration(name: &str, arguments: &[Tree]) -> bool {
    let first = arguments.first();
    name == "duration"
        && first.is_some_and(|first| matches!(first.kind, Kind::Literal(Literal::Int(_))))
}

/// Returns what is wrong with the number of values that a text is formatted with.
// `stringFormatValidator`, which checks their types too.
pub(super) fn wrong_count(call: &Call) -> Option<String> {
    let target = call.target.as_deref().filter(|_| call.name == "format")?;
    let (Kind::Literal(Literal::Text(Some(text))), [argument]) =
        (&target.kind, call.arguments.as_slice())
    else {
        return None;
    };
    let Kind::List(items) = &argument.kind else {
        return None;
    };
    let (wanted, found) = (text.replace("%%", "").matches('%').count(), items.len());
    match wanted.cmp(&found) {
        Ordering::Less => Some(format!(
            "too many arguments supplied to string.format (expected {wanted}, got {found})"
        )),
        Ordering::Greater => Some(format!("index {found} out of range")),
        Ordering::Equal => None,
    }
}
