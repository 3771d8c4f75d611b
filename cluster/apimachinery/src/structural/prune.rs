//! Pruning of unknown fields, and of nulls where a schema allows none.
//!
//! Source: `schema/pruning/algorithm.go`, `schema/defaulting/prunenulls.go` and `schema/objectmeta`.

use serde_json::{Map, Value};

use super::node::{Additional, Node};

/// The members of a resource that its schema need not mention.
pub(super) const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The members of an object's metadata.
const METADATA: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// Removes unknown fields and collects their paths.
#[derive(Debug, Default)]
pub(super) struct Pruning {
    pub(super) removed: Vec<String>,
    /// The removed members of metadata, which the server reports after all others.
    pub(super) metadata: Vec<String>,
    /// Metadata are not looked at.
    leaves_metadata: bool,
}

/// The path of a value to prune, and what applies to it.
#[derive(Debug, Clone, Copy)]
struct PruneContext<'a> {
    path: &'a str,
    /// It carries type and metadata.
    root: bool,
    /// Its own unknown members stay.
    keeps: bool,
}

impl Pruning {
    /// Prunes a whole resource, or with `root` false a part of one.
    pub(super) fn prune(&mut self, value: &mut Value, node: Option<&Node>, root: bool) {
        let (path, keeps) = ("", false);
        self.visit(value, node, PruneContext { path, root, keeps });
    }

    /// Prunes a part of an object by its schema alone.
    pub(super) fn prune_fields(&mut self, value: &mut Value, node: &Node, is_resource: bool) {
        self.leaves_metadata = true;
        self.prune(value, Some(node), is_resource);
    }

    fn visit(&mut self, value: &mut Value, node: Option<&Node>, context: PruneContext<'_>) {
        // `context.keeps` reaches here through lists only: `visit_member` resets it, so that a schema below prunes
        // again.
        let keeps = context.keeps || node.is_some_and(|node| node.extensions.preserve);
        let embedded = context.root || node.is_some_and(|node| node.extensions.embedded);
        match value {
            Value::Object(members) => members.retain(|name, value| {
                let path = child(context.path, name);
                // Type and metadata of a resource stay, whether the schema declares them or not.
                if embedded && META.contains(&name.as_str()) {
                    if name == "metadata" && !self.leaves_metadata {
                        self.prune_metadata(value, &path);
                    }
                    return true;
                }
                self.visit_member(value, node, name, &path, keeps)
            }),
            Value::Array(elements) => {
                let items = node.and_then(|node| node.shape.items.as_deref());
                // Where unknown members stay, an element without a schema stays as it is.
                if keeps && items.is_none() {
                    return;
                }
                for (at, element) in elements.iter_mut().enumerate() {
                    let path = &*format!("{}[{at}]", context.path);
                    let root = false;
                    self.visit(element, items, PruneContext { path, root, keeps });
                }
            }
            _ => {}
        }
    }

    /// Prunes one member, given with its path; returns whether the member is kept.
    fn visit_member(
        &mut self,
        value: &mut Value,
        node: Option<&Node>,
        name: &str,
        path: &str,
        keeps: bool,
    ) -> bool {
        let shape = node.map(|node| &node.shape);
        let declared = shape.and_then(|shape| shape.properties.get(name));
        let additional = shape.and_then(|shape| shape.additional.as_ref());
        let schema = match (declared, additional) {
            (Some(node), _) => Some(node),
            (None, Some(Additional::Schema(node))) => Some(&**node),
            // Also with `additionalProperties: false`: pruning keeps the member, and validation refuses it.
            (None, Some(Additional::Any(_))) => None,
            // Nothing below a kept unknown member is looked at, since no schema describes it.
            (None, None) if keeps => return true,
            (None, None) => {
                self.removed.push(path.to_owned());
                return false;
            }
        };
        let (root, keeps) = (false, false);
        self.visit(value, schema, PruneContext { path, root, keeps });
        true
    }

    fn prune_metadata(&mut self, metadata: &mut Value, path: &str) {
        if let Value::Object(members) = metadata {
            members.retain(|name, _| {
                // Go drops these because it reads metadata into a struct, so only names at this level are removed.
                let known = METADATA.contains(&name.as_str());
                if !known {
                    self.metadata.push(child(path, name));
                }
                known
            });
        }
    }
}

pub(super) fn child(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

/// Removes nulls where a schema allows none, unless a default takes their place.
pub(super) fn drop_nulls(value: &mut Value, node: Option<&Node>) {
    match value {
        Value::Object(members) => drop_null_members(members, node),
        Value::Array(elements) => {
            let items = node.and_then(|node| node.shape.items.as_deref());
            for element in elements {
                drop_nulls(element, items);
            }
        }
        _ => {}
    }
}

fn drop_null_members(members: &mut Map<String, Value>, node: Option<&Node>) {
    members.retain(|name, value| {
        let member = node.and_then(|node| node.member(name));
        // `isNonNullableNonDefaultableNull`: a null with a default stays, because defaulting replaces it next.
        let unwanted = member.is_some_and(|node| !node.nullable && node.default.is_none());
        if value.is_null() && unwanted {
            return false;
        }
        drop_nulls(value, member);
        true
    });
}
