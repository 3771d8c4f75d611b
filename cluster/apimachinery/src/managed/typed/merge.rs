//! Merging of an applied object into the live one.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::items::Items;
use super::parts::{form, is_empty_as, is_void, items_of, names};
use crate::managed::path::PathElement;
use crate::schema::{List, ListKind, Resolved, TypeRef};

/// Merges `applied` over `live`.
pub(in crate::managed) fn merge(typed: TypeRef<'_>, live: &Value, applied: &Value) -> Value {
    walk(typed, Some(live), Some(applied)).unwrap_or(Value::Null)
}

fn walk(typed: TypeRef<'_>, live: Option<&Value>, applied: Option<&Value>) -> Option<Value> {
    let (Some(_), Some(value)) = (live, applied) else {
        // What only one side has is taken as it is, unknown parts and duplicates included.
        return applied.or(live).cloned();
    };
    // The form is that of the applied value: when the two differ in form, the applied one wins.
    let form = form(typed, value);
    // `emptyPromoteToLeaf`: where neither side has anything in this form, the applied value replaces the live one. So a
    // null takes the place of a list whose type is not known.
    let are_empty = is_empty_as(&form, live) && is_empty_as(&form, applied);
    let merged = match form {
        Resolved::Scalar(_) | Resolved::AnyList => return applied.cloned(),
        _ if typed.is_atomic() || are_empty => return applied.cloned(),
        Resolved::List(List {
            kind: ListKind::Atomic,
            ..
        }) => return applied.cloned(),
        Resolved::List(list) => Value::Array(items(typed, list, live, applied)),
        Resolved::Map | Resolved::Struct | Resolved::AnyMap => {
            Value::Object(members(typed, live, applied))
        }
    };
    // A merged map or list that is empty is left out, as the Go walker leaves `out` nil for it.
    (!is_void(Some(&merged))).then_some(merged)
}

fn members(
    typed: TypeRef<'_>,
    live: Option<&Value>,
    applied: Option<&Value>,
) -> Map<String, Value> {
    let member = |name: &str| {
        let below = typed.member(name).unwrap_or(typed.any());
        let of = |value: Option<&'_ Value>| value.and_then(|value| value.get(name)).cloned();
        let (live, applied) = (of(live), of(applied));
        Some((
            name.to_owned(),
            walk(below, live.as_ref(), applied.as_ref())?,
        ))
    };
    names(live, applied).filter_map(member).collect()
}

/// Merges lists.
///
/// Items of both follow the applied order; other items keep their neighbours.
///
/// Source: `mergingWalker.visitListItems`.
fn items(
    typed: TypeRef<'_>,
    list: &List,
    live: Option<&Value>,
    applied: Option<&Value>,
) -> Vec<Value> {
    let item = typed.item();
    let (before, wanted) = (
        Items::of(&list.kind, item, items_of(live)),
        Items::of(&list.kind, item, items_of(applied)),
    );
    // Duplicates of the live list stay where they are, unless the applied one has an item with their key.
    let (left, right) = (before.each().collect::<Vec<_>>(), wanted.list());
    let in_right = |element: &PathElement| wanted.has(element);
    let both = |element: &PathElement, value: &Value| {
        // Items with the same key are replaced instead of merged.
        let live = match before.get(element) {
            [one] => Some(*one),
            _ => None,
        };
        walk(item, live, Some(value))
    };
    // Shared items in the applied order. `next_shared` is the one that the live side waits for: shared live items
    // before it are skipped, and come when the applied side reaches them.
    let mut shared = right
        .iter()
        .map(|(element, _)| element)
        .filter(|element| before.has(element));
    let mut next_shared = shared.next();
    let mut merged = HashSet::new();
    let mut out = Vec::with_capacity(left.len().max(right.len()));
    let (mut l, mut r) = (0, 0);
    while l < left.len() || r < right.len() {
        if let (Some((element, _)), Some((other, values))) = (left.get(l), right.get(r)) {
            if *element == other {
                merged.insert(*element);
                out.extend(both(element, values[0]));
                (l, r) = (l + 1, r + 1);
                next_shared = shared.next();
                continue;
            }
            // It is in both lists, but its turn in the applied order has not come.
            if in_right(element) && next_shared.is_some_and(|next| next != *element) {
                l += 1;
                continue;
            }
        }
        if let Some((element, value)) = left.get(l) {
            // Only the live list has it, so it stays next to its live neighbours.
            if !in_right(element) {
                out.push((*value).clone());
                l += 1;
                continue;
            }
            // It is there already; the next applied item takes its turn.
            if merged.contains(element) {
                l += 1;
            }
        }
        if let Some((element, values)) = right.get(r) {
            merged.insert(element);
            out.extend(both(element, values[0]));
            r += 1;
            // It was taken from the applied side before the live side reached it, so the live side waits for the next
            // one.
            if next_shared == Some(element) {
                next_shared = shared.next();
            }
        }
    }
    out
}
