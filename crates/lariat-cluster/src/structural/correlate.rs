//! Which old element an element of a list replaces.
//!
//! Source: `k8s.io/apiserver/pkg/cel/common`.

use serde_json::Value;

use super::node::Node;

/// The old elements of a list, which can be told apart only by map keys.
#[derive(Debug)]
pub(super) struct Elements<'a> {
    keys: &'a [String],
    old: &'a [Value],
}

impl<'a> Elements<'a> {
    pub(super) fn of(node: &'a Node, old: Option<&'a Value>) -> Self {
        let is_map = node.extensions.list_type.as_deref() == Some("map");
        let old = old.and_then(Value::as_array).filter(|_| is_map);
        Self {
            keys: &node.extensions.list_map_keys,
            old: old.map_or(&[], Vec::as_slice),
        }
    }

    /// Finds the element with the same keys.
    pub(super) fn find(&self, element: &Value) -> Option<&'a Value> {
        let same = |old: &&Value| self.keys.iter().all(|key| old.get(key) == element.get(key));
        self.old.iter().find(same).filter(|_| !self.keys.is_empty())
    }
}
