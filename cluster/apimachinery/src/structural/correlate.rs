//! Which old element an element of a list replaces.
//!
//! Source: `k8s.io/apiserver/pkg/cel/common`.

use std::collections::HashMap;

use serde_json::Value;

use super::node::Node;

/// The old elements of a list of type `map`, by their keys.
#[derive(Debug)]
pub(super) struct Elements<'a> {
    keys: &'a [String],
    /// The first of each identity.
    old: HashMap<Identity<'a>, &'a Value>,
}

/// The values of the map keys, in their order; keys may be missing.
type Identity<'a> = Vec<Option<&'a Value>>;

impl<'a> Elements<'a> {
    pub(super) fn of(node: &'a Node, old: Option<&'a Value>) -> Self {
        let keys = &*node.extensions.list_map_keys;
        // `CorrelatedObject` matches items of lists of type `map` only. Items of other lists have no old value, so
        // they are not ratcheted.
        let is_map = node.extensions.list_type.as_deref() == Some("map") && !keys.is_empty();
        let elements = old.and_then(Value::as_array).filter(|_| is_map);
        let mut old = HashMap::new();
        for element in elements.into_iter().flatten() {
            // Lists of a time before the schema had keys may have duplicates; `MapList.Get` finds the first.
            old.entry(identity(keys, element)).or_insert(element);
        }
        Self { keys, old }
    }

    /// Finds the element with the same keys.
    pub(super) fn find(&self, element: &Value) -> Option<&'a Value> {
        if self.old.is_empty() {
            return None;
        }
        self.old.get(&identity(self.keys, element)).copied()
    }
}

/// Returns whether a value is the same as before, as far as its schema tells what belongs together.
///
/// Elements of lists of type `map` are matched by their keys, so their order does not count. An object with a member of
/// which the schema says nothing never counts as unchanged.
// `CachedDeepEqual`.
pub(super) fn is_unchanged(node: &Node, value: &Value, old: &Value) -> bool {
    match (value, old) {
        (Value::Array(elements), Value::Array(before)) => {
            if elements.len() != before.len() {
                return false;
            }
            if node.extensions.list_type.as_deref() != Some("map") || elements.is_empty() {
                return elements == before;
            }
            let Some(items) = &node.shape.items else {
                return false;
            };
            let olds = Elements::of(node, Some(old));
            let mut elements = elements.iter();
            elements.all(|each| {
                let found = olds.find(each);
                found.is_some_and(|old| is_unchanged(items, each, old))
            })
        }
        (Value::Object(members), Value::Object(before)) => {
            let is_same = |(name, value): (&String, &Value)| {
                let pair = node.member(name).zip(before.get(name));
                pair.is_some_and(|(node, old)| is_unchanged(node, value, old))
            };
            members.len() == before.len() && members.iter().all(is_same)
        }
        _ => value == old,
    }
}

fn identity<'a>(keys: &[String], element: &'a Value) -> Identity<'a> {
    keys.iter().map(|key| element.get(key)).collect()
}
