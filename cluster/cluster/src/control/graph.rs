//! The graph of owner references, kept up to date by every commit.
//!
//! The cost depends on the commit alone.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lariat_apimachinery::kinds::TableId;
use lariat_core::ObjectKey;

use super::metadata::Metadata;
use super::shrink::shrink;
use crate::store::{Change, EventType, Stored};

/// One object of the graph, by table, key and uid.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Node {
    pub(super) table: TableId,
    pub(super) key: ObjectKey,
    pub(super) uid: Arc<str>,
}

impl Node {
    pub(super) fn of(table: TableId, stored: &Stored) -> Self {
        Self {
            table,
            key: stored.key().clone(),
            uid: stored.shared_uid(),
        }
    }
}

/// The objects there are, and the dependents of each owner.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// Every stored object.
    nodes: HashMap<Arc<str>, Node>,
    /// Every uid that is referred to, whether or not an object has it.
    owners: HashMap<Arc<str>, Owner>,
}

/// The known facts about a uid that owner references name.
#[derive(Debug, Default)]
struct Owner {
    /// An object with this uid was seen to go.
    is_gone: bool,
    /// Its dependents, and whether they block its deletion; never empty.
    dependents: BTreeMap<Node, bool>,
}

impl Graph {
    pub(super) fn observe(&mut self, change: &Change) {
        let event = &change.event;
        let node = Node::of(change.table, &event.object);
        if let Some(previous) = &event.previous {
            // All links of the previous state are removed and those of the new one added: a reference may have changed
            // its owner or only its blocking.
            self.unlink(&node, previous);
        }
        if event.event == EventType::Deleted {
            if let Some(owner) = self.owners.get_mut(&node.uid) {
                owner.is_gone = true;
            }
            self.nodes.remove(&node.uid);
            shrink(&mut self.nodes);
            return;
        }
        for reference in Metadata::owners_of(&event.object) {
            let owner = self.owners.entry(reference.uid.as_str().into());
            let dependents = &mut owner.or_default().dependents;
            // Two references to one owner block it if either of them does.
            *dependents.entry(node.clone()).or_default() |= reference.blocks();
        }
        if event.previous.is_none() {
            // A restored snapshot brings back what was seen to go.
            if let Some(owner) = self.owners.get_mut(&node.uid) {
                owner.is_gone = false;
            }
            self.nodes.insert(Arc::clone(&node.uid), node);
        }
    }

    fn unlink(&mut self, node: &Node, previous: &Stored) {
        for reference in Metadata::owners_of(previous) {
            if let Some(owner) = self.owners.get_mut(reference.uid.as_str()) {
                owner.dependents.remove(node);
                if owner.dependents.is_empty() {
                    self.owners.remove(reference.uid.as_str());
                    shrink(&mut self.owners);
                }
            }
        }
    }

    /// Returns the object with a uid.
    pub(super) fn node(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid)
    }

    /// Returns whether an object with a uid that is still referred to was seen to go.
    pub(super) fn is_gone(&self, uid: &str) -> bool {
        self.owners.get(uid).is_some_and(|owner| owner.is_gone)
    }

    /// Iterates over those that refer to a uid, by table and key.
    pub(super) fn dependents(&self, uid: &str) -> impl Iterator<Item = &Node> {
        let owner = self.owners.get(uid);
        owner.into_iter().flat_map(|owner| owner.dependents.keys())
    }

    /// Returns whether a dependent blocks the deletion of its owner in the foreground.
    pub(super) fn is_blocked(&self, uid: &str) -> bool {
        let owner = self.owners.get(uid);
        owner.is_some_and(|owner| owner.dependents.values().any(|blocks| *blocks))
    }
}
