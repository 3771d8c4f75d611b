//! What the server checks in literals once their types are right.
//!
//! Source: `cel/validator.go`.

use std::cmp::Ordering;

use super::tree::{Call, Kind, Literal, Tree};
use super::types::Type;
use crate::{go_duration, go_regex, go_time};

/// The parts of a list or a map whose types must be the same ones.
#[derive(Debug)]
pub(super) struct Same {
    pub(super) parts: Vec<(usize, Type)>,
    /// Only the first part that differs is reported.
    pub(super) once: bool,
}

/// Returns where an argument of a call is that can have no meaning.
pub(super) fn wrong_argument(name: &str, arguments: &[Tree]) -> Option<usize> {
    let first = arguments.first()?;
    let is_wrong = match (name, &first.kind) {
        // A number has the right type, and cannot be evaluated.
        ("duration", Kind::Literal(Literal::Int)) => true,
        (_, Kind::Literal(Literal::Text(Some(text)))) => match name {
            "duration" => go_duration::check(text).is_err(),
            "timestamp" => go_time::rfc3339(text).is_err(),
            "matches" => go_regex::compile(text).is_err(),
            _ => false,
        },
        _ => false,
    };
    is_wrong.then_some(first.at)
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
