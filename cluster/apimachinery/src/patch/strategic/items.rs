//! The items of lists: what they are, and where they are found.

use std::collections::HashMap;

use serde_json::Value;

use super::lookup::unmergeable;
use super::maps::{DIRECTIVE, Outcome, malformed};
use crate::go_text::{self, value as go};
use crate::object::Object;
use crate::patch::PatchError;

/// Whether the items of two lists are maps.
///
/// Lists whose items are of several types cannot be merged.
pub(super) fn are_maps(old: &[Value], new: &[Value]) -> Outcome<bool> {
    // `sliceElementType`: the type of the first item decides, and every other must have it.
    let mut items = old.iter().chain(new);
    let Some(first) = items.next() else {
        return unmergeable("no elements in any of the given slices");
    };
    match first {
        // The type of null is nil, on which the Go code calls a method.
        Value::Null => return crash(),
        Value::Array(_) => return Err(PatchError::ListOfLists),
        _ => {}
    }
    // Integers and floats are different types here, so a list of both cannot be merged.
    if items.any(|item| type_of(item) != type_of(first)) {
        let lists = Value::from(vec![old.to_vec(), new.to_vec()]);
        return unmergeable(format!(
            "list element types are not identical: {}",
            go(&lists)
        ));
    }
    Ok(first.is_object())
}

/// Returns the Go type of a value of a patch.
pub(super) fn type_of(value: &Value) -> &'static str {
    if value.is_null() {
        // Of a nil type, which Go formats by `%s`.
        return "%!s(<nil>)";
    }
    go_text::type_of(value)
}

/// Refuses a value of another type.
pub(super) fn wrong_type<T>(expected: &str, actual: &Value) -> Outcome<T> {
    let actual = type_of(actual);
    unmergeable(format!("expected a {expected}, but received a {actual}"))
}

/// Refuses values that crash a genuine server, which compares what Go cannot compare.
pub(super) fn crash<T>() -> Outcome<T> {
    malformed("the patch compares values that cannot be compared, such as two maps")
}

/// Returns the members of an item.
pub(super) fn members(item: &Value) -> Outcome<&Object> {
    match item {
        Value::Object(members) => Ok(members),
        other => wrong_type("map[string]interface {}", other),
    }
}

/// Returns the identity of an item: its key, or itself.
pub(super) fn id<'a>(item: &'a Value, key: Option<&str>) -> Outcome<&'a Value> {
    // Lists of scalars have no key: each item is its own identity.
    let Some(key) = key else {
        return Ok(item);
    };
    match members(item)?.get(key) {
        Some(id) => Ok(id),
        None => unmergeable(format!(
            "map: {} does not contain declared merge key: {key}",
            go(item)
        )),
    }
}

/// Returns whether two values are one, as Go compares them.
pub(super) fn same(left: &Value, right: &Value) -> Outcome<bool> {
    match (left, right) {
        // Comparing interfaces that hold maps or slices panics in Go; values of two types are just unequal.
        (Value::Object(_), Value::Object(_)) | (Value::Array(_), Value::Array(_)) => crash(),
        _ => Ok(left == right),
    }
}

/// Returns whether a list item is to be deleted.
pub(super) fn is_deletion(item: &Value) -> bool {
    item.get(DIRECTIVE)
        .is_some_and(|directive| directive == "delete")
}

/// The first index of each item, by the identity of the item.
#[derive(Debug)]
pub(super) struct Places {
    places: HashMap<String, usize>,
    /// Whether a map or list is a merge key, on which Go's comparison panics.
    has: (bool, bool),
    /// The first item that is no map, behind which nothing is found.
    odd: Option<usize>,
}

impl Places {
    /// Finds the places of the items of a list, by their key if there is one.
    pub(super) fn of(list: &[Value], key: Option<&str>) -> Self {
        let mut found = Self {
            places: HashMap::with_capacity(list.len()),
            has: (false, false),
            // `findMapInSliceBasedOnKeyValue` walks the list and stops with an error here, unless it has found the
            // item before.
            odd: key.and_then(|_| list.iter().position(|item| !item.is_object())),
        };
        for (at, item) in list.iter().enumerate() {
            let id = match key {
                Some(key) => item.get(key),
                None => Some(item),
            };
            let Some(id) = id else { continue };
            found.has.0 |= id.is_object();
            found.has.1 |= id.is_array();
            // JSON text as the key keeps the string "1" apart from the number 1; the first of equal items wins.
            found.places.entry(id.to_string()).or_insert(at);
        }
        found
    }

    /// Returns the place of the item with an id.
    pub(super) fn find(&self, id: &Value) -> Outcome<Option<usize>> {
        if id.is_object() && self.has.0 || id.is_array() && self.has.1 {
            return crash();
        }
        let place = self.places.get(&id.to_string()).copied();
        match self.odd {
            Some(odd) if place.is_none_or(|place| place > odd) => {
                unmergeable(format!("value for key {odd} is not a map"))
            }
            _ => Ok(place),
        }
    }

    /// Notes an item that was added.
    pub(super) fn add(&mut self, id: &Value, place: usize) {
        self.places.entry(id.to_string()).or_insert(place);
    }
}
