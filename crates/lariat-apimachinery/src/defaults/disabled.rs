//! What belongs to features that are off, and is dropped.
//!
//! Source: `dropDisabledFields` in `k8s.io/kubernetes/pkg/api/pod`, with the feature gates as they are by default.

use super::members::{each, inner};
use crate::object::Object;

/// Drops the members for coordinated leader election from a Lease.
pub(super) fn drop_from_lease(lease: &mut Object) {
    if let Some(spec) = inner(lease, "spec") {
        spec.remove("strategy");
        spec.remove("preferredHolder");
    }
}

/// Drops from the devices of a ResourceSlice lists of values, and what they take of a node.
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

/// Drops from the spec of a Pod what the server would not keep.
pub(super) fn drop_from_pod(spec: &mut Object) {
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
                Some(lifecycle.is_empty())
            });
            if dropped == Some(true) {
                container.remove("lifecycle");
            }
        });
    }
}
