//! The nodes, and how many Pods each has.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lariat_apimachinery::KUBERNETES;
use serde_json::{Value, json};

use super::kind::Kind;
use crate::control::controller::ControlPlane;
use crate::control::write::Writer;
use crate::store::{Event, EventType};
use crate::strategy::{NODE_FEATURES, Part};

/// The scheduler's view of the nodes.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    /// Every node, by name.
    nodes: BTreeMap<String, NodeState>,
    /// The node of every Pod that has one, by uid.
    bound: HashMap<Arc<str>, String>,
    /// The number of Pods that are bound to each node.
    pods: HashMap<String, usize>,
    /// Whether the nodes of the [settings](crate::Workloads::nodes) were created.
    created: bool,
}

/// The fields of a node that the scheduler reads.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct NodeState {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) is_unschedulable: bool,
    pub(super) address: String,
}

impl Nodes {
    /// Observes a change of a node; returns whether it may matter to the scheduler.
    pub(super) fn observe_node(&mut self, event: &Event) -> bool {
        let name = event.object.key().name();
        if event.event == EventType::Deleted {
            return self.nodes.remove(name).is_some();
        }
        let object = Value::Object(event.object.object());
        let labels = object["metadata"]["labels"].as_object();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let addresses = object["status"]["addresses"].as_array();
        let is_internal = |each: &&Value| each["type"] == "InternalIP";
        let address = addresses.and_then(|all| all.iter().find(is_internal));
        let state = NodeState {
            labels: labels
                .into_iter()
                .flatten()
                .map(|(name, value)| (name.clone(), text(value)))
                .collect(),
            is_unschedulable: object["spec"]["unschedulable"] == true,
            address: address
                .map(|each| text(&each["address"]))
                .unwrap_or_default(),
        };
        // The heartbeats of nodes must not wake all unscheduled Pods.
        if self.nodes.get(name) == Some(&state) {
            return false;
        }
        self.nodes.insert(name.to_owned(), state);
        true
    }

    /// Records the node of a Pod; returns the address of a Pod created with one.
    pub(super) fn observe_pod(&mut self, event: &Event) -> Option<String> {
        let uid = event.object.shared_uid();
        if event.event == EventType::Deleted {
            if let Some(node) = self.bound.remove(&uid)
                && let Some(count) = self.pods.get_mut(&node)
            {
                *count = count.saturating_sub(1);
            }
            return None;
        }
        // A Pod never changes its node, so that only its binding has to be decoded.
        if self.bound.contains_key(&uid) {
            return None;
        }
        let object = Value::Object(event.object.object());
        let bound_to = object["spec"]["nodeName"].as_str();
        let node = bound_to.filter(|name| !name.is_empty())?;
        *self.pods.entry(node.to_owned()).or_default() += 1;
        self.bound.insert(uid, node.to_owned());
        object["status"]["podIP"].as_str().map(str::to_owned)
    }

    /// Iterates over the uids of the Pods that are bound to a node.
    pub(super) fn bound_to(&self, node: &str) -> impl Iterator<Item = &str> {
        let bound = self.bound.iter().filter(move |(_, name)| *name == node);
        bound.map(|(uid, _)| &**uid)
    }

    pub(super) fn get(&self, name: &str) -> Option<&NodeState> {
        self.nodes.get(name)
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &NodeState)> {
        self.nodes.iter()
    }

    /// Returns the node with the fewest Pods, of those that fit.
    pub(super) fn choose(&self, fits: impl Fn(&str, &NodeState) -> bool) -> Option<&str> {
        let fitting = self.nodes.iter().filter(|(name, node)| fits(name, node));
        let count = |name: &str| self.pods.get(name).copied().unwrap_or(0);
        // Of equals this takes the first by name, so that every run places Pods alike.
        let chosen = fitting.min_by_key(|(name, _)| count(name));
        chosen.map(|(name, _)| name.as_str())
    }

    /// Returns whether the nodes of the settings are still to be created.
    pub(super) fn are_to_create_now(&self, count: usize) -> bool {
        !self.created && count > 0
    }

    /// Returns the same, once: from then on they are not.
    pub(super) fn are_to_create(&mut self, count: usize) -> bool {
        let are = self.are_to_create_now(count);
        self.created = true;
        are
    }
}

/// Creates the missing nodes of the settings, ready.
pub(super) fn create(plane: &ControlPlane, count: usize) {
    let catalog = plane.server.kinds.catalog();
    let Some(resource) = Kind::Node.resource(&catalog) else {
        return;
    };
    let writer = Writer {
        server: &plane.server,
        manager: Kind::Node.manager(),
    };
    for number in 1..=count {
        let name = format!("node-{number}");
        let key = resource.key(None, &name);
        if plane.server.store.get(resource.table, &key).is_some() {
            continue;
        }
        let node = json!({
            "kind": "Node", "apiVersion": "v1",
            "metadata": {"name": name, "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            }},
            "spec": {},
        });
        if let Err(error) = writer.create(resource, None, &node) {
            tracing::warn!(name, error = error.message(), "cannot create a node");
            continue;
        }
        if let Some(stored) = plane.server.store.get(resource.table, &key) {
            let status = status(&name, number, &plane.server.clock.now());
            let part = Part::Status;
            writer.update(resource, part, &stored, |object| {
                object.insert("status".into(), status);
            });
        }
    }
}

fn status(name: &str, number: usize, now: &str) -> Value {
    let resources =
        json!({"cpu": "32", "memory": "256Gi", "pods": "1000", "ephemeral-storage": "1Ti"});
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    // Addresses ending in .0 and .1 are left out, as those of a network and its gateway.
    let address = format!("172.18.{}.{}", number / 250, number % 250 + 2);
    json!({
        "capacity": resources, "allocatable": resources,
        "addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": name},
        ],
        "conditions": [
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory",
                "kubelet has sufficient memory available"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure",
                "kubelet has no disk pressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID",
                "kubelet has sufficient PID available"),
            condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
        ],
        "nodeInfo": {
            "machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "0",
            "osImage": "lariat", "containerRuntimeVersion": "lariat://0",
            "kubeletVersion": format!("v{KUBERNETES}.0"), "kubeProxyVersion": "", "operatingSystem": "linux",
            "architecture": "amd64",
        },
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "declaredFeatures": NODE_FEATURES,
    })
}
