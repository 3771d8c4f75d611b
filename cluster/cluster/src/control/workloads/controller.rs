//! The controller of simulated workloads.

use std::collections::{HashMap, HashSet};

use lariat_core::ObjectKey;
use tokio::time::Instant;

use super::kind::{Kind, Tables};
use super::kubelet::Kubelet;
use super::nodes::Nodes;
use super::reconcile::{Reconcile, Requeue};
use super::selectors::Selectors;
use super::{
    claims, cron_job, daemon_set, deployment, endpoints, job, kind, kubelet, nodes, refusal,
    replica_set, scheduler, slices, stateful_set,
};
use crate::control::controller::{ControlPlane, Controller};
use crate::control::graph::Node;
use crate::control::metadata::Metadata;
use crate::control::queue::Queue;
use crate::store::{Change, EventType, Stored};
use crate::workloads::{Simulated, Workloads};

/// The number of objects reconciled before other controllers get their turn.
const BATCH: usize = 128;

/// An object to reconcile.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Item {
    kind: Kind,
    key: ObjectKey,
}

/// Runs the simulation.
#[derive(Debug)]
struct Simulation {
    settings: Workloads,
    tables: Option<Tables>,
    /// Objects to reconcile.
    queue: Queue<Item>,
    nodes: Nodes,
    kubelet: Kubelet,
    selectors: Selectors,
    /// Pods for which no node was found.
    unscheduled: HashSet<ObjectKey>,
    /// The number of refusals in a row for each object.
    failures: HashMap<Item, u32>,
}

/// Creates the controller of simulated workloads.
pub(crate) fn controller(simulated: &Simulated) -> Box<dyn Controller> {
    Box::new(Simulation::new(simulated))
}

impl Simulation {
    fn new(simulated: &Simulated) -> Self {
        Self {
            settings: simulated.settings.clone(),
            tables: None,
            queue: Queue::new(),
            nodes: Nodes::default(),
            kubelet: Kubelet::default(),
            selectors: Selectors::default(),
            unscheduled: HashSet::new(),
            failures: HashMap::new(),
        }
    }

    fn enqueue_now(&mut self, kind: Kind, key: &ObjectKey) {
        let key = key.clone();
        self.queue.add(Item { kind, key });
    }

    /// Enqueues the controller of an object, and returns its node in the owner graph.
    fn enqueue_owner(&mut self, plane: &ControlPlane, stored: &Stored) -> Option<Node> {
        let owners = Metadata::owners_of(stored);
        let controller = owners.iter().find(|owner| owner.controller == Some(true))?;
        let node = plane.graph.node(&controller.uid)?.clone();
        let kind = self.tables.as_ref()?.kind(node.table)?;
        self.enqueue_now(kind, &node.key);
        Some(node)
    }

    /// Enqueues the controllers that may wait for a deleted Pod: its own, and the Deployment that owns that.
    fn enqueue_above(&mut self, plane: &ControlPlane, pod: &Stored) {
        let node = self.enqueue_owner(plane, pod);
        let owner = node.and_then(|node| plane.server.store.get(node.table, &node.key));
        if let Some(owner) = owner {
            self.enqueue_owner(plane, &owner);
        }
    }

    /// Enqueues the objects that select a Pod, or did, and those that may adopt it.
    fn observe_pod(&mut self, change: &Change) {
        if let Some(address) = self.nodes.observe_pod(&change.event) {
            self.kubelet.note_address(&address);
        }
        for (kind, key) in self.selectors.observe_pod(&change.event) {
            self.enqueue_now(kind, &key);
        }
    }

    /// Enqueues the objects that depend on a deleted object.
    fn observe_end(&mut self, plane: &ControlPlane, kind: Kind, stored: &Stored) {
        self.enqueue_above(plane, stored);
        // An object that is created again under this name has not failed yet.
        let key = stored.key().clone();
        self.failures.remove(&Item { kind, key });
        match kind {
            Kind::Pod => {
                self.kubelet.forget(stored.uid());
                self.unscheduled.remove(stored.key());
            }
            // The look at a Service that is gone deletes its Endpoints.
            Kind::Service => self.enqueue_now(kind, stored.key()),
            Kind::Claim => {
                let volume = ObjectKey::cluster(&claims::volume_name(stored.uid()));
                self.enqueue_now(Kind::Volume, &volume);
            }
            _ => {}
        }
    }

    /// Enqueues all objects that depend on which nodes exist.
    fn observe_node(&mut self, plane: &ControlPlane, change: &Change) {
        // Most changes of a node are of its status and concern no Pod.
        if !self.nodes.observe_node(&change.event) {
            return;
        }
        for key in std::mem::take(&mut self.unscheduled) {
            self.enqueue_now(Kind::Pod, &key);
        }
        let bound = self.nodes.bound_to(change.event.object.key().name());
        let pods = bound.filter_map(|uid| plane.graph.node(uid));
        let keys: Vec<ObjectKey> = pods.map(|node| node.key.clone()).collect();
        for key in keys {
            self.enqueue_now(Kind::Pod, &key);
        }
        for key in kind::keys(plane, Kind::DaemonSet) {
            self.enqueue_now(Kind::DaemonSet, &key);
        }
    }

    /// Fails the Pods that tests asked to fail.
    ///
    /// A Pod that was written meanwhile fails in the next round.
    fn fail_pods(&self, plane: &ControlPlane, simulated: &Simulated) {
        for key in simulated.take_failing() {
            if let Some(pod) = Reconcile::new(plane, &self.settings, Kind::Pod, &key)
                && kubelet::fail(&pod) == Requeue::Now
            {
                simulated.fail(key);
                plane.server.switches.notify();
            }
        }
    }

    fn reconcile(&mut self, plane: &ControlPlane, item: &Item) -> Requeue {
        let Some(cx) = Reconcile::new(plane, &self.settings, item.kind, &item.key) else {
            self.failures.remove(item);
            if item.kind == Kind::Service {
                endpoints::clean_up(plane, &item.key);
            }
            return Requeue::OnChange;
        };
        let next = match item.kind {
            // One item of the queue stands for a Pod; who works on it next depends on its state.
            Kind::Pod if scheduler::is_to_schedule(&cx) => {
                let next = scheduler::schedule(&cx, &mut self.nodes, &mut self.kubelet);
                if next.is_none() {
                    self.unscheduled.insert(item.key.clone());
                }
                next.unwrap_or(Requeue::OnChange)
            }
            Kind::Pod => self.kubelet.run(&cx, &self.nodes),
            Kind::ReplicaSet => replica_set::reconcile(&cx, &self.selectors),
            Kind::Deployment => deployment::reconcile(&cx),
            Kind::StatefulSet => stateful_set::reconcile(&cx),
            Kind::DaemonSet => daemon_set::reconcile(&cx, &self.nodes),
            Kind::Job => job::reconcile(&cx),
            Kind::CronJob => cron_job::reconcile(&cx),
            Kind::Service => endpoints::reconcile(&cx).or(slices::reconcile(&cx)),
            Kind::Claim => claims::bind(&cx),
            Kind::Volume => claims::reclaim(&cx),
            Kind::Node | Kind::Endpoints | Kind::EndpointSlice => Requeue::OnChange,
        };
        next.or(retry(&mut self.failures, item, cx.has_failed()))
    }
}

/// Returns when something that was refused to an object is tried again.
fn retry(failures: &mut HashMap<Item, u32>, item: &Item, has_failed: bool) -> Requeue {
    if !has_failed {
        failures.remove(item);
        return Requeue::OnChange;
    }
    let failures = failures.entry(item.clone()).or_default();
    *failures = failures.saturating_add(1);
    Requeue::At(Instant::now() + refusal::delay(item.kind, *failures))
}

impl Controller for Simulation {
    fn observe(&mut self, plane: &ControlPlane, change: &Change) {
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
            // A Service is reconciled with its endpoints.
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

    fn work(&mut self, plane: &ControlPlane) -> bool {
        if self.nodes.are_to_create(self.settings.nodes) {
            nodes::create(plane, self.settings.nodes);
        }
        if let Some(simulated) = &plane.server.workloads {
            self.fail_pods(plane, simulated);
        }
        // What a reconcile has created is observed in the next turn only, so the object is enqueued for that.
        let mut again = Vec::new();
        for _ in 0..BATCH {
            let Some(item) = self.queue.take_due() else {
                break;
            };
            match self.reconcile(plane, &item) {
                Requeue::OnChange => {}
                Requeue::Now => again.push(item),
                Requeue::At(at) => self.queue.add_at(item, at),
            }
        }
        for item in again {
            self.queue.add(item);
        }
        self.queue.has_due()
    }

    fn due(&self, _plane: &ControlPlane) -> Option<Instant> {
        let creates = self.nodes.are_to_create_now(self.settings.nodes);
        let next = self.queue.next_due();
        next.or(creates.then(Instant::now))
    }
}
