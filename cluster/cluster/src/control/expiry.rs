//! The end of Events: they are kept for some time after their last change.
//!
//! A real server expires its own identity Leases too, which this one does not have; Leases of others
//! stay until they are deleted, there as here.

use std::collections::HashMap;

use lariat_apimachinery::kinds::TableId;
use tokio::time::Instant;

use super::graph::Node;
use super::queue::Queue;
use super::shrink::shrink;
use crate::control::controller::{ControlPlane, Controller};
use crate::server::Server;
use crate::store::{Change, EventType, Write};

/// The number of Events that are removed before others get their turn.
const BATCH: usize = 512;

/// Removes Events whose time is over.
#[derive(Debug)]
pub(super) struct Expiry {
    /// The tables of Events.
    tables: Vec<TableId>,
    /// The time of the last change of each Event.
    changed: HashMap<Node, Instant>,
    /// Every Event, for a time before which it cannot be over.
    queue: Queue<Node>,
}

impl Expiry {
    pub(super) fn new(server: &Server) -> Self {
        let catalog = server.kinds.catalog();
        let events = ["", "events.k8s.io"].map(|group| catalog.resource(group, "v1", "events"));
        Self {
            tables: events.into_iter().flatten().map(|r| r.table).collect(),
            changed: HashMap::new(),
            queue: Queue::new(),
        }
    }

    /// Removes an Event, also if it changes meanwhile.
    fn remove(plane: &ControlPlane, node: &Node) {
        let store = &plane.server.store;
        while let Some(current) = store.get(node.table, &node.key) {
            // Repeated after a race: an Event whose time was over when it was looked at goes even if it was changed
            // just now.
            let revision = Some(current.revision());
            let write = Write::new(node.table, &node.key, revision, None);
            if current.uid() != &*node.uid || store.commit(write).is_ok() {
                return;
            }
        }
    }
}

impl Controller for Expiry {
    fn observe(&mut self, plane: &ControlPlane, change: &Change) {
        let ttl = plane.server.time.event_ttl;
        if !self.tables.contains(&change.table) || ttl.is_zero() {
            return;
        }
        let node = Node::of(change.table, &change.event.object);
        if change.event.event == EventType::Deleted {
            self.changed.remove(&node);
            shrink(&mut self.changed);
            return;
        }
        let now = Instant::now();
        // A later change does not move the entry in the queue: when it comes due, it is queued again for the rest of
        // the time. A busy Event costs one entry in the queue, not one for each change.
        if self.changed.insert(node.clone(), now).is_none() {
            self.queue.add_at(node, now + ttl);
        }
    }

    fn work(&mut self, plane: &ControlPlane) -> bool {
        let now = Instant::now();
        for _ in 0..BATCH {
            let Some(node) = self.queue.take_due() else {
                return false;
            };
            // It was deleted since it was queued.
            let Some(changed) = self.changed.get(&node) else {
                continue;
            };
            let end = *changed + plane.server.time.event_ttl;
            if end > now {
                self.queue.add_at(node, end);
            } else {
                Self::remove(plane, &node);
            }
        }
        true
    }

    fn due(&self, _plane: &ControlPlane) -> Option<Instant> {
        self.queue.next_due()
    }
}
