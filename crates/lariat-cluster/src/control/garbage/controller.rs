//! The garbage collector, as a controller.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

use lariat_apimachinery::kinds::{Catalog, TableId};
use tokio::time::Instant;

use super::collect;
use super::outcome::Outcome;
use crate::control::graph::Node;
use crate::control::metadata::{Metadata, OwnerReference};
use crate::control::plane::{Controller, Plane};
use crate::server::Server;
use crate::store::{Change, Event, EventType};

/// How many objects are looked at before others get their turn.
const BATCH: usize = 256;

/// Deletes dependents of what is gone, and lets owners go that wait for theirs.
#[derive(Debug)]
pub(crate) struct Collector {
    /// Objects to look at, and when, in that order.
    queue: VecDeque<(Instant, Node)>,
    /// Exactly the objects in `queue`.
    queued: HashSet<Node>,
    /// Objects whose owners are of a kind that is not served, in the order in which they are enqueued later.
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
            queue: VecDeque::new(),
            queued: HashSet::new(),
            unresolved: BTreeSet::new(),
            ignored: events.into_iter().flatten().map(|r| r.table).collect(),
            catalog,
        }
    }

    fn enqueue(&mut self, plane: &Plane, node: &Node) {
        if self.ignored.contains(&node.table) || !self.queued.insert(node.clone()) {
            return;
        }
        let at = Instant::now() + plane.server.time.garbage_collection;
        self.queue.push_back((at, node.clone()));
    }

    fn enqueue_dependents(&mut self, plane: &Plane, uid: &str) {
        for node in plane.graph.dependents(uid) {
            self.enqueue(plane, node);
        }
    }

    /// Looks again at the owners that a dependent no longer refers to, or no longer blocks.
    fn enqueue_released(&mut self, plane: &Plane, old: &[OwnerReference], new: &[OwnerReference]) {
        for reference in old {
            let now = new.iter().find(|each| each.uid == reference.uid);
            let is_released = now.is_none_or(|now| reference.blocks() && !now.blocks());
            if is_released && let Some(owner) = plane.graph.node(&reference.uid) {
                self.enqueue(plane, owner);
            }
        }
    }

    /// Looks at an object that is being deleted if that concerns its dependents.
    fn observe_deleting(&mut self, plane: &Plane, node: &Node, event: &Event) {
        let before = event.previous.as_ref().filter(|each| each.is_deleting());
        let before = before.map(|each| Metadata::of(each)).unwrap_or_default();
        let now = Metadata::of(&event.object);
        if now.is_foreground() && !before.is_foreground() {
            self.enqueue_dependents(plane, &node.uid);
            self.enqueue(plane, node);
        }
        if now.is_orphan() && !before.is_orphan() {
            self.enqueue(plane, node);
        }
    }

    /// Looks again at objects whose owners' kinds may be served now.
    fn resolve(&mut self, plane: &Plane) {
        let catalog = plane.server.kinds.catalog();
        if !Arc::ptr_eq(&catalog, &self.catalog) {
            self.catalog = catalog;
            for node in std::mem::take(&mut self.unresolved) {
                self.enqueue(plane, &node);
            }
        }
    }

    /// Takes the next object that is due.
    fn next(&mut self) -> Option<Node> {
        let (at, _) = self.queue.front()?;
        if *at > Instant::now() {
            return None;
        }
        let (_, node) = self.queue.pop_front()?;
        self.queued.remove(&node);
        Some(node)
    }
}

impl Controller for Collector {
    fn observe(&mut self, plane: &Plane, change: &Change) {
        let event = &change.event;
        let node = Node::of(change.table, &event.object);
        let old = event.previous.as_ref();
        let old = old.map(|old| Metadata::owners_of(old)).unwrap_or_default();
        if event.event == EventType::Deleted {
            self.unresolved.remove(&node);
            self.enqueue_dependents(plane, &node.uid);
            self.enqueue_released(plane, &old, &[]);
            return;
        }
        let new = Metadata::owners_of(&event.object);
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

    fn work(&mut self, plane: &Plane) -> bool {
        self.resolve(plane);
        for _ in 0..BATCH {
            let Some(node) = self.next() else {
                return false;
            };
            let look = collect::Look {
                plane,
                catalog: &self.catalog,
            };
            match look.at(&node) {
                Outcome::Done => {}
                Outcome::Again => self.enqueue(plane, &node),
                Outcome::Unresolved => drop(self.unresolved.insert(node)),
            }
        }
        self.queue
            .front()
            .is_some_and(|(at, _)| *at <= Instant::now())
    }

    fn due(&self, _plane: &Plane) -> Option<Instant> {
        self.queue.front().map(|(at, _)| *at)
    }

    fn is_paused(&self, plane: &Plane) -> bool {
        !plane.server.switches.collects_garbage()
    }
}
