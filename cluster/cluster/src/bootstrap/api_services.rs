//! The API services of the built-in groups, and those of CRDs.
//!
//! Source: `apiVersionPriorities` in `k8s.io/kubernetes/cmd/kube-apiserver/app`, and
//! `k8s.io/kubernetes/pkg/controlplane/controller/crdregistration`.

use serde_json::{Value, json};

use crate::store::Template;

/// Groups, versions and priorities, in the order in which clients search kinds.
const PRIORITIES: [(&str, &str, u32, u32); 21] = [
    ("", "v1", 18000, 1),
    ("apps", "v1", 17800, 15),
    ("events.k8s.io", "v1", 17750, 15),
    ("authentication.k8s.io", "v1", 17700, 15),
    ("authorization.k8s.io", "v1", 17600, 15),
    ("autoscaling", "v2", 17500, 30),
    ("autoscaling", "v1", 17500, 15),
    ("batch", "v1", 17400, 15),
    ("certificates.k8s.io", "v1", 17300, 15),
    ("networking.k8s.io", "v1", 17200, 15),
    ("policy", "v1", 17100, 15),
    ("rbac.authorization.k8s.io", "v1", 17000, 15),
    ("storage.k8s.io", "v1", 16800, 15),
    ("admissionregistration.k8s.io", "v1", 16700, 15),
    ("apiextensions.k8s.io", "v1", 16700, 15),
    ("scheduling.k8s.io", "v1", 16600, 15),
    ("coordination.k8s.io", "v1", 16500, 15),
    ("node.k8s.io", "v1", 16300, 15),
    ("discovery.k8s.io", "v1", 16200, 15),
    ("resource.k8s.io", "v1", 16200, 21),
    ("flowcontrol.apiserver.k8s.io", "v1", 16100, 21),
];

/// The priorities of the group versions that CRDs define.
const CUSTOM: (u32, u32) = (1000, 100);

/// Returns whether the server registers a version itself, rather than a CRD.
pub(crate) fn is_built_in(group: &str, version: &str) -> bool {
    PRIORITIES
        .iter()
        .any(|each| (each.0, each.1) == (group, version))
}

/// Returns the built-in groups but the core group, the foremost first.
///
/// The API of API services itself comes before all others.
pub(crate) fn groups_by_priority() -> impl Iterator<Item = &'static str> {
    // As apisHandler of kube-aggregator, which always adds its own group first: there is no APIService for it.
    let others = PRIORITIES.iter().map(|each| each.0);
    std::iter::once("apiregistration.k8s.io").chain(others.filter(|group| !group.is_empty()))
}

/// Makes the API service of a version that CRDs define.
pub(crate) fn api_service(group: &str, version: &str) -> Value {
    // As manageContinuously of autoregister: the label says that the object is restored whenever it changes.
    service(group, version, CUSTOM, "true")
}

/// Makes the API services of the built-in groups, with a gap for the time.
pub(super) fn built_in() -> impl Iterator<Item = Value> {
    PRIORITIES.iter().map(|(group, version, high, low)| {
        // As manageOnStart: created at the start of a server and left alone from then on.
        let mut object = service(group, version, (*high, *low), "onstart");
        object["status"] = json!({"conditions": [{
            "type": "Available", "status": "True", "lastTransitionTime": Template::TIME,
            "reason": "Local", "message": "Local APIServices are always available",
        }]});
        object
    })
}

fn service(group: &str, version: &str, priorities: (u32, u32), managed: &str) -> Value {
    let mut spec = json!({
        "groupPriorityMinimum": priorities.0, "version": version, "versionPriority": priorities.1,
    });
    if !group.is_empty() {
        spec["group"] = group.into();
    }
    json!({
        "kind": "APIService", "apiVersion": "apiregistration.k8s.io/v1",
        "metadata": {
            "name": format!("{version}.{group}"),
            "labels": {"kube-aggregator.kubernetes.io/automanaged": managed},
        },
        "spec": spec,
    })
}
