//! The difference between two values.

use std::mem::discriminant;

use serde_json::Value;

use super::items::Items;
use super::parts::{form, is_empty_as, items_of, names};
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

/// The change of a value itself, apart from its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueChange {
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
    pub(in crate::managed) fn without(self, ignored: &Set) -> Self {
        if ignored.is_empty() {
            return self;
        }
        Self {
            added: self.added.recursive_difference(ignored),
            modified: self.modified.recursive_difference(ignored),
            removed: self.removed.recursive_difference(ignored),
        }
    }

    fn put(&mut self, element: &PathElement, own: ValueChange, below: Self) {
        // A path is a member in the set of its own change only, but an element on the way to changes in all three.
        let put = |set: &mut Set, is: ValueChange, below: Set| {
            if own == is || !below.is_empty() {
                set.add(element.clone(), own == is, below);
            }
        };
        put(&mut self.added, ValueChange::Added, below.added);
        put(&mut self.modified, ValueChange::Modified, below.modified);
        put(&mut self.removed, ValueChange::Removed, below.removed);
    }

    fn add(&mut self, more: &Self) {
        let Self {
            added,
            modified,
            removed,
        } = std::mem::take(self);
        self.added = added.union(&more.added);
        self.modified = modified.union(&more.modified);
        self.removed = removed.union(&more.removed);
    }

    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }
}

fn walk(typed: TypeRef<'_>, old: Option<&Value>, new: Option<&Value>) -> (ValueChange, Difference) {
    // What was there and still is, unchanged, is most of every object.
    if old == new {
        return (ValueChange::Same, Difference::default());
    }
    let [before, after] = [old, new].map(|value| value.map(|value| form(typed, value)));
    let (is_leaf, below) = match (before, after) {
        // An untyped value changed its form: one form is removed, the other added.
        (Some(before), Some(after)) if discriminant(&before) != discriminant(&after) => {
            let (was_leaf, mut below) = walk_as(before, typed, old, new);
            let (is_leaf, more) = walk_as(after, typed, old, new);
            below.add(&more);
            (was_leaf || is_leaf, below)
        }
        (_, Some(form)) | (Some(form), None) => walk_as(form, typed, old, new),
        (None, None) => return (ValueChange::Same, Difference::default()),
    };
    let own = match (old, new) {
        (None, _) => ValueChange::Added,
        (_, None) => ValueChange::Removed,
        _ if is_leaf => leaf(old, new),
        _ => ValueChange::Same,
    };
    (own, below)
}

/// Compares two values as lists, maps or scalars; returns whether as a whole.
fn walk_as(
    form: Resolved<'_>,
    typed: TypeRef<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
) -> (bool, Difference) {
    // With nothing to walk into, null against an empty map is compared as a leaf, which makes it a modification.
    let are_empty = is_empty_as(&form, old) && is_empty_as(&form, new);
    match form {
        // A list without a schema is atomic, a map without one is not, as in the type `__untyped_deduced_` of
        // structured-merge-diff.
        Resolved::Scalar(_) | Resolved::AnyList => (true, Difference::default()),
        _ if typed.is_atomic() || are_empty => (true, Difference::default()),
        Resolved::List(list) if list.kind == ListKind::Atomic => (true, Difference::default()),
        Resolved::List(list) => (false, items(typed, list, old, new)),
        Resolved::Map | Resolved::Struct | Resolved::AnyMap => (false, members(typed, old, new)),
    }
}

fn leaf(old: Option<&Value>, new: Option<&Value>) -> ValueChange {
    match (old, new) {
        (None, _) => ValueChange::Added,
        (_, None) => ValueChange::Removed,
        (Some(old), Some(new)) if is_same(old, new) => ValueChange::Same,
        _ => ValueChange::Modified,
    }
}

/// Returns whether two values are equal.
///
/// A whole number is equal to the same number with a fraction of zero.
fn is_same(old: &Value, new: &Value) -> bool {
    match (old, new) {
        // Go's `value.Equals` compares an int with a float as floats, while `serde_json` never calls them equal.
        (Value::Number(old), Value::Number(new)) if old.is_f64() != new.is_f64() => {
            old.as_f64() == new.as_f64()
        }
        (Value::Array(old), Value::Array(new)) => {
            old.len() == new.len() && old.iter().zip(new).all(|(old, new)| is_same(old, new))
        }
        // Compared by name, since members may come in another order.
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
        if own != ValueChange::Same || !inner.is_empty() {
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
    // Items of the new list come first, and those only the old one has after them; the sets do not depend on the
    // order.
    let gone = before
        .list()
        .iter()
        .filter(|(element, _)| !after.has(element));
    for (element, _) in after.list().iter().chain(gone) {
        let (old, new) = (before.get(element), after.get(element));
        let mut put = |(own, inner)| difference.put(element, own, inner);
        match (old, new) {
            ([] | [_], [] | [_]) => put(walk(item, old.first().copied(), new.first().copied())),
            // Items with the same key are compared together, as a whole.
            ([_, _, ..], [_, _, ..]) if are_same(old, new) => {}
            ([_, _, ..], [_, _, ..]) => put((ValueChange::Modified, Difference::default())),
            (_, []) => put((ValueChange::Removed, Difference::default())),
            // From several items to one: they are removed as a whole, and the fields of the one are added.
            (_, [new]) => {
                put(walk(item, None, Some(*new)));
                put((ValueChange::Removed, Difference::default()));
            }
            ([], _) => put((ValueChange::Added, Difference::default())),
            // From one item to several: its fields are removed, and they are added as a whole.
            ([old, ..], _) => {
                put(walk(item, Some(*old), None));
                put((ValueChange::Added, Difference::default()));
            }
        }
    }
    difference
}
