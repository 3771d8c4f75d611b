//! The members and items of values, which may be absent.

use serde_json::Value;

use crate::schema::{Resolved, TypeRef};

/// Returns the form of a value; an untyped null counts as an empty map.
pub(super) fn form<'a>(typed: TypeRef<'a>, value: &Value) -> Resolved<'a> {
    match typed.resolve(value) {
        Resolved::Scalar(None) if value.is_null() && !typed.is_atomic() => Resolved::AnyMap,
        form => form,
    }
}

/// Returns whether a value is absent, null, or an empty map or list.
pub(super) fn is_void(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(members)) => members.is_empty(),
        Some(_) => false,
    }
}

/// Returns whether a value is an empty list or map, or not of the form at all.
pub(super) fn is_empty_as(form: &Resolved<'_>, value: Option<&Value>) -> bool {
    let is_list = matches!(form, Resolved::List(_) | Resolved::AnyList);
    match value {
        Some(Value::Array(items)) if is_list => items.is_empty(),
        Some(Value::Object(members)) if !is_list => members.is_empty(),
        _ => true,
    }
}

/// Returns the items of a list, none for another value.
pub(super) fn items_of(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the names of the members of two maps, each once.
pub(super) fn names<'a>(
    a: Option<&'a Value>,
    b: Option<&'a Value>,
) -> impl Iterator<Item = &'a str> {
    let first = a.and_then(Value::as_object);
    let second = b.and_then(Value::as_object);
    let more = second
        .into_iter()
        .flat_map(|map| map.keys())
        .filter(move |name| first.is_none_or(|map| !map.contains_key(*name)));
    let names = first.into_iter().flat_map(|map| map.keys()).chain(more);
    names.map(String::as_str)
}
