//! The set of fields a value has.

use serde_json::Value;

use super::items::Items;
use super::parts::{is_void, items_of};
use crate::managed::path::PathElement;
use crate::managed::set::Set;
use crate::schema::{List, ListKind, Resolved, TypeRef};

/// Returns the fields of a value: its leaves, and its list items and map entries.
pub(in crate::managed) fn fields(typed: TypeRef<'_>, value: &Value) -> Set {
    walk(typed, value).1
}

/// Returns whether the value itself is a leaf, and the fields below it.
fn walk(typed: TypeRef<'_>, value: &Value) -> (bool, Set) {
    match typed.resolve(value) {
        Resolved::Scalar(_) | Resolved::AnyList => (true, Set::default()),
        Resolved::List(List {
            kind: ListKind::Atomic,
            ..
        }) => (true, Set::default()),
        Resolved::List(list) => (false, items(typed, list, value)),
        Resolved::Map | Resolved::Struct if typed.is_atomic() => (true, Set::default()),
        Resolved::Map | Resolved::Struct | Resolved::AnyMap => (false, members(typed, value)),
    }
}

fn items(typed: TypeRef<'_>, list: &List, value: &Value) -> Set {
    let mut set = Set::default();
    let items = Items::of(&list.kind, typed.item(), items_of(Some(value)));
    for (element, values) in items.list() {
        let below = match values[..] {
            [one] => walk(typed.item(), one).1,
            // Items with the same key are owned together.
            _ => Set::default(),
        };
        // Items are members beside their fields, so that removing the last field does not give up the item.
        set.add(element.clone(), true, below);
    }
    set
}

fn members(typed: TypeRef<'_>, value: &Value) -> Set {
    let mut set = Set::default();
    for (name, value) in value.as_object().into_iter().flatten() {
        let below = typed.member(name).unwrap_or(typed.any());
        let (leaf, fields) = walk(below, value);
        // `toFieldSetWalker.visitMapItems`: nulls and empty maps are owned themselves, and so is every entry of a map.
        // An empty list is not: it has neither items nor an owner.
        let empty = value.is_null() || (value.is_object() && is_void(Some(value)));
        let is_field = typed.field(name).is_some();
        set.add(
            PathElement::member(name),
            leaf || empty || !is_field,
            fields,
        );
    }
    set
}
