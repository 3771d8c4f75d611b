//! Taking fields out of a value.

use serde_json::Value;

use super::items::element_of;
use super::parts::{is_void, items_of};
use crate::managed::path::PathElement;
use crate::managed::set::Set;
use crate::schema::{List, ListKind, Resolved, TypeRef};

/// Returns the value without the fields of a set.
///
/// Maps and lists that become empty stay, unless they are in the set themselves.
pub(in crate::managed) fn remove(typed: TypeRef<'_>, value: &Value, fields: &Set) -> Value {
    // Nothing inside of an atomic value is removed, even if an older schema let an owner have a part of it.
    if is_void(Some(value)) || typed.is_atomic() {
        return value.clone();
    }
    match typed.resolve(value) {
        Resolved::Scalar(_) | Resolved::AnyList => value.clone(),
        Resolved::List(List {
            kind: ListKind::Atomic,
            ..
        }) => value.clone(),
        Resolved::List(list) => items(typed, list, value, fields),
        Resolved::Map | Resolved::Struct | Resolved::AnyMap => members(typed, value, fields),
    }
}

fn items(typed: TypeRef<'_>, list: &List, value: &Value, fields: &Set) -> Value {
    let kept = items_of(Some(value)).iter().filter_map(|item| {
        match element_of(&list.kind, typed.item(), item) {
            Ok(element) => keep(typed.item(), &element, item, fields),
            // An item without an identity is in no set.
            Err(_) => Some(item.clone()),
        }
    });
    Value::Array(kept.collect())
}

fn members(typed: TypeRef<'_>, value: &Value, fields: &Set) -> Value {
    let members = value.as_object().into_iter().flatten();
    let kept = members.filter_map(|(name, value)| {
        let below = typed.member(name).unwrap_or(typed.any());
        let kept = keep(below, &PathElement::member(name), value, fields)?;
        Some((name.clone(), kept))
    });
    Value::Object(kept.collect())
}

fn keep(typed: TypeRef<'_>, element: &PathElement, value: &Value, fields: &Set) -> Option<Value> {
    if fields.has(element) {
        return None;
    }
    match fields.below(element) {
        Some(below) => Some(remove(typed, value, below)),
        None => Some(value.clone()),
    }
}
