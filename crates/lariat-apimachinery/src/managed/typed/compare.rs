//! What differs between two values.

use serde_json::Value;

use super::items::Items;
use super::parts::{is_void, items_of, names};
use crate::managed::path::PathElement;
use crate::managed::set::Set;
use crate::schema::{List, ListKind, Resolved, TypeRef};

/// The fields that differ between an old and a new value.
#[derive(Debug, Clone, Default)]
pub(in crate::managed) struct Difference {
    pub(in crate::managed) added: Set,
    pub(in crate::managed) modified: Set,
    pub(in crate::managed) removed: Set,
}

/// What became of a value itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Own {
    Same,
    Added,
    Modified,
    Removed,
}

/// Compares two objects.
pub(in crate::managed) fn compare(typed: TypeRef<'_>, old: &Value, new: &Value) -> Difference {
    walk(typed, Some(old), Some(new)).1
}

impl Difference {
    /// Leaves fields out, with everything below them.
    pub(in crate::managed) fn without(&self, ignored: &Set) -> Self {
        Self {
            added: self.added.recursive_difference(ignored),
            modified: self.modified.recursive_difference(ignored),
            removed: self.removed.recursive_difference(ignored),
        }
    }

    fn put(&mut self, element: &PathElement, own: Own, below: Self) {
        let put = |set: &mut Set, is: Own, below: Set| {
            if own == is || !below.is_empty() {
                set.add(element.clone(), own == is, below);
            }
        };
        put(&mut self.added, Own::Added, below.added);
        put(&mut self.modified, Own::Modified, below.modified);
        put(&mut self.removed, Own::Removed, below.removed);
    }

    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }
}

fn walk(typed: TypeRef<'_>, old: Option<&Value>, new: Option<&Value>) -> (Own, Difference) {
    // What was there and still is, unchanged, is most of every object.
    if old == new {
        return (Own::Same, Difference::default());
    }
    let Some(value) = new.or(old) else {
        return (Own::Same, Difference::default());
    };
    let resolved = typed.resolve(value);
    let below = match resolved {
        Resolved::Scalar(_) | Resolved::AnyList => return (leaf(old, new), Difference::default()),
        _ if typed.is_atomic() || (is_void(old) && is_void(new)) => {
            return (leaf(old, new), Difference::default());
        }
        Resolved::List(List {
            kind: ListKind::Atomic,
            ..
        }) => return (leaf(old, new), Difference::default()),
        Resolved::List(list) => items(typed, list, old, new),
        Resolved::Map | Resolved::Struct | Resolved::AnyMap => members(typed, old, new),
    };
    let own = match (old, new) {
        (None, _) => Own::Added,
        (_, None) => Own::Removed,
        // Of what may be anything, one side may be a map and the other not.
        (Some(old), Some(new)) if old.is_object() != new.is_object() && !old.is_array() => {
            if is_void(Some(old)) || is_void(Some(new)) {
                Own::Same
            } else {
                Own::Modified
            }
        }
        _ => Own::Same,
    };
    (own, below)
}

fn leaf(old: Option<&Value>, new: Option<&Value>) -> Own {
    match (old, new) {
        (None, _) => Own::Added,
        (_, None) => Own::Removed,
        (Some(old), Some(new)) if is_same(old, new) => Own::Same,
        _ => Own::Modified,
    }
}

/// Returns whether two values are equal.
///
/// A whole number is equal to the same number with a fraction of zero.
fn is_same(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Number(old), Value::Number(new)) if old.is_f64() != new.is_f64() => {
            old.as_f64() == new.as_f64()
        }
        (Value::Array(old), Value::Array(new)) => {
            old.len() == new.len() && old.iter().zip(new).all(|(old, new)| is_same(old, new))
        }
        (Value::Object(old), Value::Object(new)) => {
            let mut members = old.iter();
            let is_same = |(name, old)| new.get(name).is_some_and(|new| is_same(old, new));
            old.len() == new.len() && members.all(is_same)
        }
        (old, new) => old == new,
    }
}

fn are_same(old: &[&Value], new: &[&Value]) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| is_same(old, new))
}

fn members(typed: TypeRef<'_>, old: Option<&Value>, new: Option<&Value>) -> Difference {
    let mut difference = Difference::default();
    for name in names(old, new) {
        let below = typed.member(name).unwrap_or(typed.any());
        let (before, after) = (
            old.and_then(|old| old.get(name)),
            new.and_then(|new| new.get(name)),
        );
        let (own, inner) = walk(below, before, after);
        if own != Own::Same || !inner.is_empty() {
            difference.put(&PathElement::member(name), own, inner);
        }
    }
    difference
}

fn items(typed: TypeRef<'_>, list: &List, old: Option<&Value>, new: Option<&Value>) -> Difference {
    let item = typed.item();
    let before = Items::of(&list.kind, item, items_of(old));
    let after = Items::of(&list.kind, item, items_of(new));
    let mut difference = Difference::default();
    let gone = before
        .list()
        .iter()
        .filter(|(element, _)| !after.has(element));
    for (element, _) in after.list().iter().chain(gone) {
        let (old, new) = (before.get(element), after.get(element));
        let (own, inner) = match (old, new) {
            (old @ ([] | [_]), new @ ([] | [_])) => {
                walk(item, old.first().copied(), new.first().copied())
            }
            // Items with the same key change together.
            (old, new) if are_same(old, new) => (Own::Same, Difference::default()),
            ([], _) => (Own::Added, Difference::default()),
            (_, []) => (Own::Removed, Difference::default()),
            _ => (Own::Modified, Difference::default()),
        };
        difference.put(element, own, inner);
    }
    difference
}
