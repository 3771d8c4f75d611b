//! The scheduler: binds Pods to nodes.
//!
//! It considers which nodes exist and are schedulable, `nodeSelector`, and the affinity to one
//! node that Pods of DaemonSets have; not resources, taints or other affinities.

use serde_json::{Value, json};

use super::conditions::{Condition, is_true};
use super::kubelet::{Kubelet, Transition};
use super::nodes::{NodeState, Nodes};
use super::reconcile::{Reconcile, Requeue};
use crate::control::write::{WriteOutcome, Writer};
use crate::strategy::{self, Part};

const MANAGER: &str = "kube-scheduler";

/// Returns whether a Pod waits for this scheduler.
pub(super) fn is_to_schedule(pod: &Reconcile<'_>) -> bool {
    let scheduler = pod.text("/spec/schedulerName");
    let gates = pod.at("/spec/schedulingGates").as_array();
    pod.text("/spec/nodeName").is_empty()
        && !pod.stored.is_deleting()
        && matches!(scheduler, "" | "default-scheduler")
        && gates.is_none_or(Vec::is_empty)
}

/// Binds a Pod to a node; `None` if it has to wait for the nodes to change.
pub(super) fn schedule(
    pod: &Reconcile<'_>,
    nodes: &mut Nodes,
    kubelet: &mut Kubelet,
) -> Option<Requeue> {
    if let Some(at) = kubelet.wait(pod, Transition::Bind, pod.settings.scheduling) {
        return Some(Requeue::At(at));
    }
    let writer = Writer {
        server: &pod.plane.server,
        manager: MANAGER,
    };
    let Some(node) = nodes.choose(|name, node| fits(pod, name, node)) else {
        let message = format!("0/{} nodes are available.", nodes.len());
        let now = pod.now();
        let written = writer.update(&pod.resource, Part::Status, &pod.stored, |object| {
            let status = object.entry("status").or_insert_with(|| json!({}));
            Condition::new("PodScheduled", false)
                .because("Unschedulable", message)
                .set(&mut status["conditions"], &now, None);
        });
        // The condition is a change, which leads to one more look; that one finds nothing to write.
        return (written == WriteOutcome::Raced).then_some(Requeue::Now);
    };
    let labels = nodes.get(node).map(|node| &node.labels);
    // Node and condition in one write, as the registry's assignPod does for a Binding.
    Some(Requeue::from(writer.store(
        &pod.resource,
        &pod.stored,
        |object| {
            // As admission does to a Binding.
            strategy::set_topology(object, |name| labels?.get(name).map(String::as_str));
            let mut value = Value::Object(std::mem::take(object));
            value["spec"]["nodeName"] = node.into();
            if !is_true(&value["status"]["conditions"], "PodScheduled") {
                let conditions = &mut value["status"]["conditions"];
                Condition::new("PodScheduled", true).set(conditions, &pod.now(), None);
            }
            if let Value::Object(bound) = value {
                *object = bound;
            }
        },
    )))
}

/// Returns whether a Pod may run on a node.
pub(super) fn fits(pod: &Reconcile<'_>, name: &str, node: &NodeState) -> bool {
    let is_pinned_elsewhere = pinned_node(pod).is_some_and(|pinned| pinned != name);
    let is_pinned = pinned_node(pod).is_some();
    // Pods of DaemonSets tolerate nodes that are unschedulable.
    !is_pinned_elsewhere
        && (is_pinned || !node.is_unschedulable)
        && selects(pod.at("/spec/nodeSelector"), node)
}

/// Returns whether a `nodeSelector` admits a node.
pub(super) fn selects(selector: &Value, node: &NodeState) -> bool {
    let mut wanted = selector.as_object().into_iter().flatten();
    wanted.all(|(name, value)| node.labels.get(name).map(String::as_str) == value.as_str())
}

/// Returns the only node that the affinity of a Pod admits by name.
fn pinned_node<'a>(pod: &'a Reconcile<'_>) -> Option<&'a str> {
    // Only in the form that the controller of DaemonSets writes.
    let term = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
        /nodeSelectorTerms/0/matchFields/0";
    let field = pod.at(term);
    if field["key"] != "metadata.name" {
        return None;
    }
    field["values"][0].as_str()
}
