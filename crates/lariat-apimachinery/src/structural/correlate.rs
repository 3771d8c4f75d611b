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

fn identity<'a>(keys: &[String], element: &'a Value) -> Identity<'a> {
    keys.iter().map(|key| element.get(key)).collect()
}
