//! The controller of simulated workloads.

use std::collections::HashSet;

use lariat_core::ObjectKey;
use tokio::time::Instant;

use super::kind::{Kind, Tables};
use super::kubelet::Kubelet;
use super::look::{Look, Next};
use super::nodes::Nodes;
use super::selectors::Selectors;
use super::{
    claims, cron_job, daemon_set, deployment, endpoints, job, kind, kubelet, nodes, replica_set,
    scheduler, slices, stateful_set,
};
use crate::control::graph::Node;
use crate::control::metadata::Metadata;
use crate::control::plane::{Controller, Plane};
use crate::control::queue::Queue;
use crate::store::{Change, EventType, Stored};
use crate::workloads::Workloads;

/// How many objects are looked at before others get their turn.
const BATCH: usize = 128;

/// An object that is looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Item {
    kind: Kind,
    key: ObjectKey,
}

/// Runs the simulation.
#[derive(Debug)]
pub(crate) struct Simulation {
    settings: Workloads,
    tables: Option<Tables>,
    /// Objects to look at.
    queue: Queue<Item>,
    nodes: Nodes,
    kubelet: Kubelet,
    selectors: Selectors,
    /// Pods for which there was no node.
    unscheduled: HashSet<ObjectKey>,
}

impl Simulation {
    pub(crate) fn new(settings: Workloads) -> Self {
        Self {
            settings,
            tables: None,
            queue: Queue::new(),
            nodes: Nodes::default(),
            kubelet: Kubelet::default(),
            selectors: Selectors::default(),
            unscheduled: HashSet::new(),
        }
    }

    fn enqueue_now(&mut self, kind: Kind, key: &ObjectKey) {
        let key = key.clone();
        self.queue.add(Item { kind, key });
    }

    /// Looks at the controller of an object, and returns where it is.
    fn enqueue_owner(&mut self, plane: &Plane, stored: &Stored) -> Option<Node> {
        let owners = Metadata::owners_of(stored);
        let controller = owners.iter().find(|owner| owner.is_controller())?;
        let node = plane.graph.node(&controller.uid)?.clone();
        let kind = self.tables.as_ref()?.kind(node.table)?;
        self.enqueue_now(kind, &node.key);
        Some(node)
    }

    /// Looks at those that wait for a Pod to be gone: its controller, and the Deployment above it.
    fn enqueue_above(&mut self, plane: &Plane, pod: &Stored) {
        let owner = self.enqueue_owner(plane, pod);
        let owner = owner.and_then(|node| plane.server.store.get(node.table, &node.key));
        if let Some(owner) = owner {
            self.enqueue_owner(plane, &owner);
        }
    }

    /// Looks at those that select a Pod, or did, and at those that may adopt it.
    fn observe_pod(&mut self, change: &Change) {
        if let Some(address) = self.nodes.observe_pod(&change.event) {
            self.kubelet.note_address(&address);
        }
        for (kind, key) in self.selectors.observe_pod(&change.event) {
            self.enqueue_now(kind, &key);
        }
    }

    /// Looks at what something that is gone leaves behind.
    fn observe_end(&mut self, plane: &Plane, kind: Kind, stored: &Stored) {
        self.enqueue_above(plane, stored);
        match kind {
            Kind::Pod => {
                self.kubelet.forget(stored.uid());
                self.unscheduled.remove(stored.key());
            }
            Kind::Service => self.enqueue_now(kind, stored.key()),
            Kind::Claim => {
                let volume = ObjectKey::cluster(&claims::volume_name(stored.uid()));
                self.enqueue_now(Kind::Volume, &volume);
            }
            _ => {}
        }
    }

    /// Looks again at all that depends on which nodes there are.
    fn observe_node(&mut self, plane: &Plane, change: &Change) {
        if !self.nodes.observe_node(&change.event) {
            return;
        }
        for key in std::mem::take(&mut self.unscheduled) {
            self.enqueue_now(Kind::Pod, &key);
        }
        let bound = self.nodes.bound_to(change.event.object.key().name());
        let pods = bound.filter_map(|uid| plane.graph.node(uid));
        let pods: Vec<ObjectKey> = pods.map(|node| node.key.clone()).collect();
        for key in pods {
            self.enqueue_now(Kind::Pod, &key);
        }
        for key in kind::keys(plane, Kind::DaemonSet) {
            self.enqueue_now(Kind::DaemonSet, &key);
        }
    }

    fn look_at(&mut self, plane: &Plane, item: &Item) -> Next {
        let Some(look) = Look::new(plane, &self.settings, item.kind, &item.key) else {
            if item.kind == Kind::Service {
                endpoints::clean_up(plane, &item.key);
            }
            return Next::Change;
        };
        match item.kind {
            Kind::Pod if scheduler::is_to_schedule(&look) => {
                let next = scheduler::schedule(&look, &mut self.nodes, &mut self.kubelet);
                if next == Next::Nodes {
                    self.unscheduled.insert(item.key.clone());
                }
                next
            }
            Kind::Pod => self.kubelet.run(&look, &self.nodes),
            Kind::ReplicaSet => replica_set::reconcile(&look, &self.selectors),
            Kind::Deployment => deployment::reconcile(&look),
            Kind::StatefulSet => stateful_set::reconcile(&look),
            Kind::DaemonSet => daemon_set::reconcile(&look, &self.nodes),
            Kind::Job => job::reconcile(&look),
            Kind::CronJob => cron_job::reconcile(&look),
            Kind::Service => endpoints::reconcile(&look).or(slices::reconcile(&look)),
            Kind::Claim => claims::bind(&look),
            Kind::Volume => claims::reclaim(&look),
            Kind::Node | Kind::Endpoints | Kind::EndpointSlice => Next::Change,
        }
    }
}

impl Controller for Simulation {
    fn observe(&mut self, plane: &Plane, change: &Change) {
        let tables = self.tables.get_or_insert_with(|| Tables::new(plane));
        let Some(kind) = tables.kind(change.table) else {
            return;
        };
        let stored = &change.event.object;
        if kind == Kind::Node {
            return self.observe_node(plane, change);
        }
        match kind {
            Kind::Pod => self.observe_pod(change),
            Kind::Service | Kind::ReplicaSet => self.selectors.observe(kind, &change.event),
            // They follow their Service.
            Kind::Endpoints => return self.enqueue_now(Kind::Service, stored.key()),
            Kind::EndpointSlice => return drop(self.enqueue_owner(plane, stored)),
            _ => {}
        }
        if change.event.event == EventType::Deleted {
            self.observe_end(plane, kind, stored);
        } else {
            self.enqueue_owner(plane, stored);
            self.enqueue_now(kind, stored.key());
        }
    }

    fn work(&mut self, plane: &Plane) -> bool {
        if self.nodes.are_to_create(self.settings.nodes) {
            nodes::create(plane, self.settings.nodes);
        }
        for key in plane.server.switches.take_failing() {
            if let Some(pod) = Look::new(plane, &self.settings, Kind::Pod, &key)
                && kubelet::fail(&pod) == Next::Again
            {
                plane.server.switches.fail(key);
            }
        }
        // What a look has created is known only to the next turn, so it is made again only then.
        let mut again = Vec::new();
        for _ in 0..BATCH {
            let Some(item) = self.queue.take_due() else {
                break;
            };
            match self.look_at(plane, &item) {
                Next::Change | Next::Nodes => {}
                Next::Again => again.push(item),
                Next::At(at) => self.queue.add_at(item, at),
            }
        }
        for item in again {
            self.queue.add(item);
        }
        self.queue.has_due()
    }

    fn due(&self, _plane: &Plane) -> Option<Instant> {
        let creates = self.nodes.are_to_create_now(self.settings.nodes);
        let next = self.queue.next_due();
        next.or(creates.then(Instant::now))
    }
}
