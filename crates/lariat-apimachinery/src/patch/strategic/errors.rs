//! What is wrong with a patch, in the words of the API server.
//!
//! Source: `k8s.io/apimachinery/pkg/util/mergepatch/errors.go`.

use serde_json::Value;

use super::maps::Outcome;
use crate::go_text;
use crate::patch::PatchError;
use crate::schema::{Resolved, Scalar, TypeRef};

/// What a value is in Go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Bool,
    Whole,
    Float,
    Text,
    List,
    Map,
}

impl Kind {
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Bool,
            Value::Number(number) if number.is_f64() => Self::Float,
            Value::Number(_) => Self::Whole,
            Value::String(_) => Self::Text,
            Value::Array(_) => Self::List,
            Value::Object(_) => Self::Map,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Null => "%!s(<nil>)",
            Self::Bool => "bool",
            Self::Whole => "int64",
            Self::Float => "float64",
            Self::Text => "string",
            Self::List => "[]interface {}",
            Self::Map => "map[string]interface {}",
        }
    }
}

/// Refuses a patch with an error of the server itself.
pub(super) fn unmergeable<T>(reason: impl Into<String>) -> Outcome<T> {
    Err(PatchError::Unmergeable(reason.into()))
}

pub(super) fn wrong_type<T>(wanted: Kind, value: &Value) -> Outcome<T> {
    let (wanted, is) = (wanted.name(), Kind::of(value).name());
    unmergeable(format!("expected a {wanted}, but received a {is}"))
}

/// Refuses an item of which it cannot be said which one it is.
pub(super) fn no_key<T>(item: &Value, key: &str) -> Outcome<T> {
    let item = go_text::value(item);
    unmergeable(format!(
        "map: {item} does not contain declared merge key: {key}"
    ))
}

pub(super) fn unknown_directive<T>(directive: &Value, map: &Value) -> Outcome<T> {
    let shown = match directive {
        Value::String(text) => text.clone(),
        Value::Null => "%!s(<nil>)".to_owned(),
        other => format!("%!s({}={})", Kind::of(other).name(), go_text::value(other)),
    };
    let map = go_text::value(map);
    unmergeable(format!("unknown patch type: {shown} in map: {map}"))
}

pub(super) fn wrong_order<T>(patch: &[Value], order: &[Value]) -> Outcome<T> {
    let [patch, order] = [patch, order].map(shown);
    unmergeable(format!(
        "The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n"
    ))
}

fn shown(list: &[Value]) -> String {
    let items: Vec<String> = list.iter().map(go_text::value).collect();
    format!("[{}]", items.join(" "))
}

/// Returns a value that is a list, if there is one.
pub(super) fn list(value: Option<Value>) -> Outcome<Option<Vec<Value>>> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => wrong_type(Kind::List, &other),
    }
}

/// Returns what all items of two lists are; `None` if there are none.
pub(super) fn kind_of(original: &[Value], patch: &[Value]) -> Outcome<Option<Kind>> {
    let mut kinds = original.iter().chain(patch).map(Kind::of);
    let Some(first) = kinds.next() else {
        return Ok(None);
    };
    if first == Kind::List {
        return Err(PatchError::Inapplicable(
            "lists of lists are not supported".to_owned(),
        ));
    }
    if kinds.all(|kind| kind == first) {
        return Ok(Some(first));
    }
    let lists = [original, patch].map(shown).join(" ");
    unmergeable(format!("list element types are not identical: [{lists}]"))
}

/// Returns what Go calls the kind of a type.
pub(super) fn type_kind(typed: TypeRef<'_>) -> &'static str {
    match typed.resolve(&Value::Null) {
        Resolved::Scalar(Some(scalar)) => match scalar {
            Scalar::Bool => "bool",
            Scalar::Int32 => "int32",
            Scalar::Int64 => "int64",
            Scalar::Number => "float64",
            Scalar::String => "string",
            Scalar::Bytes => "slice",
            _ => "struct",
        },
        Resolved::Scalar(None) => "interface",
        Resolved::List(_) | Resolved::AnyList => "slice",
        Resolved::Map | Resolved::AnyMap => "map",
        Resolved::Struct => "struct",
    }
}
