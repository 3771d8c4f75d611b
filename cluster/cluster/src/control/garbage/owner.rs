//! The state of the owner that a reference names.

use std::sync::Arc;

use lariat_apimachinery::kinds::{Catalog, Resource};

use crate::control::controller::ControlPlane;
use crate::control::graph::Node;
use crate::control::metadata::{Metadata, OwnerReference};

/// The state of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// It exists, and its deletion, if any, does not wait for its dependents.
    Solid,
    /// It waits for its dependents to be deleted.
    Waiting,
    /// It does not exist, or not with the uid.
    Absent,
    /// It is in a namespace, and the dependent is in none.
    Unreachable,
    /// Its kind is not served.
    Unknown,
}

/// Finds the owner that a reference of an object names.
///
/// It is looked for in the object's namespace.
pub(super) fn find(
    plane: &ControlPlane,
    catalog: &Catalog,
    node: &Node,
    reference: &OwnerReference,
) -> Owner {
    // Uids are never used again, so an owner that was seen to go is absent whatever has its name now, and even if its
    // kind is no longer served.
    if plane.graph.is_gone(&reference.uid) {
        return Owner::Absent;
    }
    let Some(resource) = kind_of(catalog, reference) else {
        return Owner::Unknown;
    };
    if resource.namespaced && node.key.namespace().is_none() {
        return Owner::Unreachable;
    }
    let key = resource.key(node.key.namespace(), &reference.name);
    match plane.server.store.get(resource.table, &key) {
        // By uid: an object that was created again under the name is another one, and does not own the dependents of
        // the first.
        Some(owner) if owner.uid() == reference.uid => {
            if owner.is_deleting() && Metadata::of(&owner).is_foreground() {
                Owner::Waiting
            } else {
                Owner::Solid
            }
        }
        _ => Owner::Absent,
    }
}

fn kind_of<'a>(catalog: &'a Catalog, reference: &OwnerReference) -> Option<&'a Arc<Resource>> {
    let (group, version) = reference.group_version();
    let mut resources = catalog.resources(group, version);
    resources.find(|resource| resource.kind == reference.kind)
}
