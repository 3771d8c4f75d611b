//! Drops the members of features that are disabled.
//!
//! Source: `dropDisabledFields` in `k8s.io/kubernetes/pkg/api/pod`, with the default feature gates.

use super::members::{each, inner};
use crate::kinds::Resource;
use crate::object::Object;

/// Drops the members of features that are disabled.
///
/// The manager that sent them owns them: an API server computes `managedFields` before it drops them.
pub fn drop_disabled(resource: &Resource, object: &mut Object) {
    // A custom kind may have the group and the name of a built-in one of another server.
    if resource.rules.custom {
        return;
    }
    // A feature that is off in every object leaves nothing that is in use, so the members go without a look at the old
    // object.
    let kind = (resource.group.as_str(), resource.kind.as_str());
    if kind == ("apps", "StatefulSet") {
        drop_from_stateful_set(object);
    }
    let template: &[&str] = match kind {
        ("", "Pod") => &["spec"],
        ("", "PodTemplate") => &["template", "spec"],
        ("", "ReplicationController")
        | ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
        | ("batch", "Job") => &["spec", "template", "spec"],
        ("batch", "CronJob") => &["spec", "jobTemplate", "spec", "template", "spec"],
        ("coordination.k8s.io", "Lease") => return drop_from_lease(object),
        ("storage.k8s.io", "CSIDriver") => return drop_from_driver(object),
        ("", "Node") => return drop_from_node(object),
        ("discovery.k8s.io", "EndpointSlice") => {
            return each(object, "endpoints", |endpoint| {
                endpoint.remove("deprecatedTopology");
            });
        }
        _ => return,
    };
    if kind == ("", "Pod") {
        drop_from_pod_status(object);
    }
    let spec = template
        .iter()
        .try_fold(object, |object, member| inner(object, member));
    if let Some(spec) = spec {
        drop_from_pod(spec);
    }
}

/// Drops the bound of unavailable Pods from the strategy of a StatefulSet.
fn drop_from_stateful_set(set: &mut Object) {
    let strategy = inner(set, "spec").and_then(|spec| inner(spec, "updateStrategy"));
    if let Some(rolling) = strategy.and_then(|strategy| inner(strategy, "rollingUpdate")) {
        rolling.remove("maxUnavailable");
    }
}

/// Drops the configuration of the kubelet from a Node.
// `dropDisabledFields` of the registry of Nodes: new Nodes lose it, so it is in use nowhere.
fn drop_from_node(node: &mut Object) {
    for (part, member) in [("spec", "configSource"), ("status", "config")] {
        if let Some(part) = inner(node, part) {
            part.remove(member);
        }
    }
}

/// Drops a member for scheduling from a CSIDriver.
fn drop_from_driver(driver: &mut Object) {
    if let Some(spec) = inner(driver, "spec") {
        spec.remove("preventPodSchedulingIfMissing");
    }
}

/// Drops the members for coordinated leader election from a Lease.
fn drop_from_lease(lease: &mut Object) {
    if let Some(spec) = inner(lease, "spec") {
        spec.remove("strategy");
        spec.remove("preferredHolder");
    }
}

/// Drops disabled members from the devices of a ResourceSlice.
///
/// They are lists of values and what a device takes of its node.
pub(super) fn drop_from_devices(slice: &mut Object) {
    let Some(spec) = inner(slice, "spec") else {
        return;
    };
    each(spec, "devices", |device| {
        device.remove("nodeAllocatableResourceMappings");
        let attributes = inner(device, "attributes").into_iter().flatten();
        for attribute in attributes.filter_map(|(_, value)| value.as_object_mut()) {
            for lists in ["bools", "ints", "strings", "versions"] {
                attribute.remove(lists);
            }
        }
    });
}

/// Drops the members of a Pod's status that the server would not keep.
fn drop_from_pod_status(pod: &mut Object) {
    let Some(status) = inner(pod, "status") else {
        return;
    };
    status.remove("nodeAllocatableResourceClaimStatuses");
    for containers in [
        "containerStatuses",
        "initContainerStatuses",
        "ephemeralContainerStatuses",
    ] {
        each(status, containers, |container| {
            each(container, "volumeMounts", |mount| {
                mount.remove("volumeStatus");
            });
        });
    }
}

/// Drops the members of a Pod's spec that the server would not keep.
fn drop_from_pod(spec: &mut Object) {
    spec.remove("schedulingGroup");
    each(spec, "volumes", |volume| {
        if let Some(projected) = inner(volume, "projected") {
            each(projected, "sources", |source| {
                source.remove("clusterTrustBundle");
                source.remove("podCertificate");
            });
        }
    });
    for containers in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, containers, |container| {
            let lifecycle = inner(container, "lifecycle");
            let dropped = lifecycle.and_then(|lifecycle| {
                lifecycle.remove("stopSignal")?;
                // Go drops a lifecycle of which the stop signal was all.
                Some(lifecycle.is_empty())
            });
            if dropped == Some(true) {
                container.remove("lifecycle");
            }
        });
    }
}
