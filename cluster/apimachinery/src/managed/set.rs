//! Sets of fields.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::path::PathElement;
use crate::schema::TypeRef;

/// A set of paths, as a tree.
///
/// A path is in the set if its node is a member, regardless of what is below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Set {
    nodes: BTreeMap<PathElement, Node>,
}

/// Invariant: it is a member, or there is something below.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Node {
    member: bool,
    below: Set,
}

impl Node {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl Set {
    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Makes a set of paths of members, each given as `a.b.c`.
    ///
    /// ```
    /// use lariat_apimachinery::managed::{Set, Write};
    /// use lariat_apimachinery::schema;
    ///
    /// // A write of the status changes nothing else.
    /// let ignored = Set::of(&["spec", "metadata.labels"]);
    /// let schema = schema::builtin("v1", "Pod").expect("it is built in");
    /// let write = Write::new(&schema, "v1", "kubelet", "2026-01-01T00:00:00Z");
    /// let write = Write { subresource: "status", ignored: &ignored, ..write };
    /// # drop(write);
    /// ```
    #[must_use]
    pub fn of(paths: &[&str]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let elements = path.split('.').map(PathElement::member);
            set.insert_path(&elements.collect::<Vec<_>>());
        }
        set
    }

    pub(crate) fn insert_path(&mut self, path: &[PathElement]) {
        match path {
            [] => {}
            [last] => self.add(last.clone(), true, Self::default()),
            [first, rest @ ..] => {
                // The node is not a member itself: only the last element of a path is.
                let node = self.nodes.entry(first.clone()).or_default();
                node.below.insert_path(rest);
            }
        }
    }

    /// Adds an element and the set below it.
    pub(crate) fn add(&mut self, element: PathElement, member: bool, below: Self) {
        // Otherwise the node would break the invariant, and empty sets would not be equal.
        if !member && below.is_empty() {
            return;
        }
        let node = self.nodes.entry(element).or_default();
        node.member |= member;
        node.below.merge(below);
    }

    pub(crate) fn has(&self, element: &PathElement) -> bool {
        self.nodes.get(element).is_some_and(|node| node.member)
    }

    /// Returns the set below an element, if there is one.
    pub(crate) fn below(&self, element: &PathElement) -> Option<&Self> {
        let node = self.nodes.get(element)?;
        (!node.below.is_empty()).then_some(&node.below)
    }

    pub(crate) fn merge(&mut self, other: Self) {
        // The usual case of a creation, whose set is built from the leaves up: nothing is copied or searched.
        if self.nodes.is_empty() {
            *self = other;
            return;
        }
        for (element, node) in other.nodes {
            self.add(element, node.member, node.below);
        }
    }

    pub(crate) fn union(mut self, other: &Self) -> Self {
        self.merge(other.clone());
        self
    }

    /// Returns the paths that are in both sets.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let common = self.nodes.iter().filter_map(|(element, node)| {
            let theirs = other.nodes.get(element)?;
            let both = Node {
                member: node.member && theirs.member,
                below: node.below.intersection(&theirs.below),
            };
            // Nodes that became empty are dropped, so that `is_empty` only has to look at the first level.
            (!both.is_empty()).then(|| (element.clone(), both))
        });
        Self {
            nodes: common.collect(),
        }
    }

    /// Returns the paths that are not in the other set; those below the other's paths stay.
    pub(crate) fn difference(mut self, other: &Self) -> Self {
        self.subtract(other, false);
        self
    }

    /// Returns the paths that are neither in the other set nor below any of its paths.
    pub(crate) fn recursive_difference(mut self, other: &Self) -> Self {
        self.subtract(other, true);
        self
    }

    fn subtract(&mut self, other: &Self, recursively: bool) {
        // Walks the other set, which is most often the smaller one; elements that only this set has are not visited.
        for (element, theirs) in &other.nodes {
            let Some(node) = self.nodes.get_mut(element) else {
                continue;
            };
            node.member &= !theirs.member;
            // The one place where the two differences differ: `Set.Difference` compares path by path,
            // `Set.RecursiveDifference` removes whole subtrees.
            if recursively && theirs.member {
                node.below = Self::default();
            } else {
                node.below.subtract(&theirs.below, recursively);
            }
            if node.is_empty() {
                self.nodes.remove(element);
            }
        }
    }

    /// Adds all fields on the path to each member; entries of maps are not fields.
    pub(crate) fn with_named_fields(&self, typed: TypeRef<'_>) -> Self {
        let nodes = self.nodes.iter().map(|(element, node)| {
            // `EnsureNamedFieldsAreMembers`: only fields that a schema names become members, or removing one entry of
            // a map would remove the map.
            let name = element.member_name();
            let below = match name {
                Some(name) => typed.member(name).unwrap_or(typed.any()),
                // Keys, values and indexes all lead to an item of a list.
                None => typed.item(),
            };
            let is_field = name.is_some_and(|name| typed.field(name).is_some());
            let node = Node {
                member: node.member || is_field,
                below: node.below.with_named_fields(below),
            };
            (element.clone(), node)
        });
        Self {
            nodes: nodes.collect(),
        }
    }

    /// Calls a function with the text of each path, in the order of Go's `Set.Iterate`.
    pub(crate) fn each(&self, visit: &mut impl FnMut(&str)) {
        self.each_below("", visit);
    }

    fn each_below(&self, prefix: &str, visit: &mut impl FnMut(&str)) {
        let mut nodes: Vec<_> = self.nodes.iter().collect();
        nodes.sort_by(|(one, _), (other, _)| one.compare(other));
        // All members of a level come before what lies below any of them.
        for (element, _) in nodes.iter().filter(|(_, node)| node.member) {
            visit(&format!("{prefix}{element}"));
        }
        for (element, node) in nodes {
            if !node.below.is_empty() {
                node.below.each_below(&format!("{prefix}{element}"), visit);
            }
        }
    }

    /// Writes the set as `fieldsV1`.
    pub(crate) fn to_json(&self) -> Value {
        let nodes = self.nodes.iter().map(|(element, node)| {
            let mut json = node.below.to_json();
            // A leaf is written `{}` and needs no dot; the dot tells a member with fields below from a mere path to
            // them.
            if node.member && !node.below.is_empty() {
                json["."] = Value::Object(Map::new());
            }
            (element.as_str().to_owned(), json)
        });
        Value::Object(nodes.collect())
    }

    /// Reads `fieldsV1`.
    pub(crate) fn from_json(json: &Value) -> Result<Self, String> {
        let members = match json {
            Value::Object(members) => members,
            Value::Null => return Ok(Self::default()),
            _ => return Err("fields must be an object".to_owned()),
        };
        let mut set = Self::default();
        // A dot is about the level above, which reads it below.
        for (name, value) in members.iter().filter(|(name, _)| *name != ".") {
            // As `readIterV1`: what a later version may know is dropped.
            let Some(element) = PathElement::parse(name)? else {
                continue;
            };
            let below = Self::from_json(value)?;
            // Anything without fields below is a member; otherwise there would be no reason to write it.
            let member = below.is_empty() || value.get(".").is_some();
            set.add(element, member, below);
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn set(json: &Value) -> Set {
        Set::from_json(json).unwrap()
    }

    #[test]
    fn sets_read_what_they_write() {
        let json = json!({"f:data": {".": {}, "f:x": {}}, "f:spec": {"k:{\"name\":\"c\"}": {"f:image": {}}}});
        assert_eq!(set(&json).to_json(), json);
    }

    #[test]
    fn differences_leave_what_lies_below_alone_unless_asked() {
        let all = set(&json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}));
        let some = set(&json!({"f:a": {}}));
        assert_eq!(
            all.clone().difference(&some).to_json(),
            json!({"f:a": {"f:b": {}}, "f:c": {}})
        );
        assert_eq!(
            all.recursive_difference(&some).to_json(),
            json!({"f:c": {}})
        );
    }

    fn sets() -> impl Strategy<Value = Set> {
        let path = prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..4);
        prop::collection::vec(path, 0..6).prop_map(|paths| {
            let paths: Vec<String> = paths.iter().map(|path| path.join(".")).collect();
            Set::of(&paths.iter().map(String::as_str).collect::<Vec<_>>())
        })
    }

    fn paths(set: &Set) -> std::collections::BTreeSet<String> {
        let mut paths = std::collections::BTreeSet::new();
        set.each(&mut |path| {
            paths.insert(path.to_owned());
        });
        paths
    }

    proptest! {
        #[test]
        fn operations_are_those_of_sets_of_paths(a in sets(), b in sets()) {
            let (pa, pb) = (paths(&a), paths(&b));
            prop_assert_eq!(paths(&a.clone().union(&b)), &pa | &pb);
            prop_assert_eq!(paths(&a.intersection(&b)), &pa & &pb);
            prop_assert_eq!(paths(&a.clone().difference(&b)), &pa - &pb);
            for left in [a.clone().difference(&b), a.clone().recursive_difference(&b)] {
                // An empty node would be read back as a member.
                prop_assert_eq!(Set::from_json(&left.to_json()), Ok(left));
            }
            prop_assert_eq!(Set::from_json(&a.to_json()), Ok(a));
        }

        #[test]
        fn no_json_makes_reading_panic(text in "[a-z:.{}\"\\[\\]0-9,]{0,30}") {
            let json = serde_json::from_str(&text).unwrap_or(json!({ text: {} }));
            let _ = Set::from_json(&json);
        }
    }
}
