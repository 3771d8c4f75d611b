//! The garbage collector, as a controller.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use lariat_apimachinery::kinds::{Catalog, TableId};
use tokio::time::Instant;

use super::collect;
use super::outcome::Outcome;
use crate::control::controller::{ControlPlane, Controller};
use crate::control::graph::Node;
use crate::control::metadata::{Metadata, OwnerReference};
use crate::control::queue::Queue;
use crate::server::Server;
use crate::store::{Change, Event, EventType};

/// The number of objects that are processed before others get their turn.
const BATCH: usize = 256;

/// Deletes dependents of deleted owners, and owners in foreground deletion.
#[derive(Debug)]
pub(crate) struct Collector {
    /// Objects to look at.
    queue: Queue<Node>,
    /// Objects whose owners are of a kind that is not served.
    ///
    /// They are enqueued in this order.
    unresolved: BTreeSet<Node>,
    /// The kinds that were served when `unresolved` was last looked at.
    catalog: Arc<Catalog>,
    /// Tables whose objects are never collected: Events.
    ignored: Vec<TableId>,
}

impl Collector {
    pub(crate) fn new(server: &Server) -> Self {
        let catalog = server.kinds.catalog();
        let events = ["", "events.k8s.io"].map(|group| catalog.resource(group, "v1", "events"));
        Self {
            queue: Queue::new(),
            unresolved: BTreeSet::new(),
            ignored: events.into_iter().flatten().map(|r| r.table).collect(),
            catalog,
        }
    }

    fn enqueue(&mut self, plane: &ControlPlane, node: &Node) {
        if !self.ignored.contains(&node.table) {
            let at = Instant::now() + plane.server.time.garbage_collection;
            self.queue.add_at(node.clone(), at);
        }
    }

    fn enqueue_dependents(&mut self, plane: &ControlPlane, uid: &str) {
        for node in plane.graph.dependents(uid) {
            self.enqueue(plane, node);
        }
    }

    /// Enqueues the owners that a dependent no longer refers to, or blocks.
    fn enqueue_released(
        &mut self,
        plane: &ControlPlane,
        old: &[OwnerReference],
        new: &[OwnerReference],
    ) {
        let mut by_uid = HashMap::new();
        for reference in new {
            by_uid.entry(&*reference.uid).or_insert(reference);
        }
        for reference in old {
            let now = by_uid.get(&*reference.uid);
            // An owner in foreground deletion is looked at when it is marked and when a blocking dependent goes. A
            // dependent that only stops to block makes no deletion that would lead to a look.
            let is_released = now.is_none_or(|now| reference.blocks() && !now.blocks());
            if is_released && let Some(owner) = plane.graph.node(&reference.uid) {
                self.enqueue(plane, owner);
            }
        }
    }

    /// Enqueues an object that is being deleted if that concerns its dependents.
    fn observe_deleting(&mut self, plane: &ControlPlane, node: &Node, event: &Event) {
        let marked_before = event.previous.as_ref().filter(|each| each.is_deleting());
        let before = marked_before.map_or_else(Metadata::default, |each| Metadata::of(each));
        let now = Metadata::of(&event.object);
        // Only the change to foreground deletion: every later write of the object would enqueue all its dependents
        // again.
        if now.is_foreground() && !before.is_foreground() {
            self.enqueue_dependents(plane, &node.uid);
            self.enqueue(plane, node);
        }
        if now.is_orphan() && !before.is_orphan() {
            self.enqueue(plane, node);
        }
    }

    /// Enqueues objects again whose owners' kinds may be served now.
    fn resolve(&mut self, plane: &ControlPlane) {
        let catalog = plane.server.kinds.catalog();
        // Every change of the served kinds makes a new catalog, so the pointer tells whether any owner can be found
        // now.
        if !Arc::ptr_eq(&catalog, &self.catalog) {
            self.catalog = catalog;
            for node in std::mem::take(&mut self.unresolved) {
                self.enqueue(plane, &node);
            }
        }
    }
}

impl Controller for Collector {
    fn observe(&mut self, plane: &ControlPlane, change: &Change) {
        let event = &change.event;
        let node = Node::of(change.table, &event.object);
        let previous = event.previous.as_ref();
        let old = previous.map_or_else(Vec::new, |old| Metadata::owners_of(old));
        if event.event == EventType::Deleted {
            self.unresolved.remove(&node);
            self.enqueue_dependents(plane, &node.uid);
            self.enqueue_released(plane, &old, &[]);
            return;
        }
        let new = Metadata::owners_of(&event.object);
        // Most writes leave the references alone, a status for example, and change nothing for the collector.
        if new != old {
            self.enqueue_released(plane, &old, &new);
            if !new.is_empty() {
                self.enqueue(plane, &node);
            }
        }
        if event.object.is_deleting() {
            self.observe_deleting(plane, &node, event);
        }
    }

    fn work(&mut self, plane: &ControlPlane) -> bool {
        self.resolve(plane);
        for _ in 0..BATCH {
            let Some(node) = self.queue.take_due() else {
                return false;
            };
            let look = collect::Collection {
                plane,
                catalog: &self.catalog,
            };
            match look.at(&node) {
                Outcome::Done => {}
                Outcome::Again => self.enqueue(plane, &node),
                Outcome::Unresolved => drop(self.unresolved.insert(node)),
            }
        }
        self.queue.has_due()
    }

    fn due(&self, _plane: &ControlPlane) -> Option<Instant> {
        self.queue.next_due()
    }

    fn is_paused(&self, plane: &ControlPlane) -> bool {
        !plane.server.switches.collects_garbage()
    }
}
