//! Whether a value has its type.

use std::collections::HashSet;

use serde_json::Value;

use super::items::element_of;
use crate::go_text;
use crate::schema::{List, ListKind, Resolved, Scalar, TypeRef};

/// Returns the schema errors of an applied object, each with its path.
///
/// The texts are those of the API server.
///
/// Source: `validatingObjectWalker` in `structured-merge-diff`.
pub(in crate::managed) fn validate(typed: TypeRef<'_>, value: &Value) -> Vec<String> {
    let mut errors = Errors::default();
    walk(typed, value, "", &mut errors);
    errors.texts
}

/// Returns the schema errors of a live object.
///
/// Its lists may have duplicate items.
pub(in crate::managed) fn validate_present(typed: TypeRef<'_>, value: &Value) -> Vec<String> {
    let mut errors = Errors {
        allows_duplicates: true,
        ..Errors::default()
    };
    walk(typed, value, "", &mut errors);
    errors.texts
}

#[derive(Debug, Default)]
struct Errors {
    texts: Vec<String>,
    allows_duplicates: bool,
}

/// Returns whether a value fits its type; lists may have duplicate items.
pub(in crate::managed) fn fits(typed: TypeRef<'_>, value: &Value) -> bool {
    match (typed.resolve(value), value) {
        // Null fits everywhere, as in `validateScalar`, `listValue` and `mapValue`.
        (_, Value::Null) | (Resolved::Scalar(None) | Resolved::AnyList, _) => true,
        (Resolved::Scalar(Some(scalar)), value) => type_mismatch(scalar, value).is_none(),
        (Resolved::List(list), Value::Array(values)) => values.iter().all(|value| {
            // `AllowDuplicates` forgives two items with one key, but not an item without a key.
            let has_place = list.kind == ListKind::Atomic
                || element_of(&list.kind, typed.item(), value).is_ok();
            has_place && fits(typed.item(), value)
        }),
        (Resolved::Map | Resolved::Struct | Resolved::AnyMap, Value::Object(members)) => {
            let fits = |(name, value): (&String, &Value)| {
                let below = typed.member(name);
                below.is_some_and(|below| fits(below, value))
            };
            members.iter().all(fits)
        }
        (Resolved::List(_) | Resolved::Map | Resolved::Struct | Resolved::AnyMap, _) => false,
    }
}

fn walk(typed: TypeRef<'_>, value: &Value, path: &str, errors: &mut Errors) {
    if value.is_null() {
        return;
    }
    let mut refuse = |what: String| match path {
        "" => errors.texts.push(what),
        path => errors.texts.push(format!("{path}: {what}")),
    };
    match typed.resolve(value) {
        Resolved::Scalar(None) | Resolved::AnyList => {}
        Resolved::Scalar(Some(scalar)) => {
            if let Some(wrong) = type_mismatch(scalar, value) {
                refuse(wrong);
            }
        }
        Resolved::List(list) => match value {
            Value::Array(values) => items(typed, list, values, path, errors),
            other => refuse(format!("expected list, got {}", shown(other))),
        },
        Resolved::Map | Resolved::Struct | Resolved::AnyMap => match value {
            Value::Object(_) => members(typed, value, path, errors),
            other => refuse(format!("expected map, got {}", shown(other))),
        },
    }
}

fn type_mismatch(scalar: Scalar, value: &Value) -> Option<String> {
    let (fits, wanted) = match scalar {
        Scalar::String | Scalar::Bytes => (value.is_string(), "string"),
        // The schema of apply has one numeric type, so a fraction in an integer is accepted here and refused when it
        // is decoded.
        Scalar::Int32 | Scalar::Int64 | Scalar::Number => {
            (value.is_number(), "numeric (int or float)")
        }
        Scalar::Bool => (value.is_boolean(), "boolean"),
        // Its schema has no type.
        Scalar::IntOrString => (true, ""),
        Scalar::Quantity | Scalar::Time | Scalar::MicroTime => {
            (!value.is_array() && !value.is_object(), "any scalar")
        }
    };
    if fits {
        return None;
    }
    // Go formats the value of a wrong number by `%T`, that of a wrong text by `%#v` and all others by `%v`, where the
    // value is wrapped.
    let got = match scalar {
        Scalar::Int32 | Scalar::Int64 | Scalar::Number => go_text::type_of(value).to_owned(),
        Scalar::String | Scalar::Bytes => {
            let value = go_text::syntax(value);
            format!("&value.valueUnstructured{{Value:{value}}}")
        }
        _ => shown(value),
    };
    Some(format!("expected {wanted}, got {got}"))
}

/// Shows a value as Go does where it is wrapped.
fn shown(value: &Value) -> String {
    format!("&{{{}}}", go_text::value(value))
}

fn items(typed: TypeRef<'_>, list: &List, values: &[Value], path: &str, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for (at, value) in values.iter().enumerate() {
        if list.kind == ListKind::Atomic {
            walk(typed.item(), value, &format!("{path}[{at}]"), errors);
            continue;
        }
        match element_of(&list.kind, typed.item(), value) {
            // One item without an identity ends the check of its list, as in `visitListItems`; items behind it are not
            // looked at.
            Err(error) => return errors.texts.push(format!("{path}: element {at}: {error}")),
            Ok(element) => {
                if seen.contains(&element) && !errors.allows_duplicates {
                    errors
                        .texts
                        .push(format!("{path}: duplicate entries for key {element}"));
                }
                walk(typed.item(), value, &format!("{path}{element}"), errors);
                seen.insert(element);
            }
        }
    }
}

fn members(typed: TypeRef<'_>, value: &Value, path: &str, errors: &mut Errors) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match typed.member(name) {
            Some(below) => walk(below, value, &path, errors),
            None => errors
                .texts
                .push(format!("{path}: field not declared in schema")),
        }
    }
}
