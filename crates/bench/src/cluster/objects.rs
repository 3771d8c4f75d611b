//! What is written: ConfigMaps of about 1 kB, and pods.

use http::Method;
use serde_json::{Value, json};

use super::wire::Ask;
use crate::pods;

/// The namespace of all ConfigMaps.
pub(super) const NAMESPACE: &str = "bench";

/// How long the text in a ConfigMap is.
const TEXT: usize = 800;

pub(super) fn config_maps() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps")
}

fn name(number: usize) -> String {
    format!("object-{number:06}")
}

pub(super) fn path(number: usize) -> String {
    format!("{}/{}", config_maps(), name(number))
}

/// Returns a ConfigMap in some round of its life.
pub(super) fn config_map(number: usize, round: usize) -> Value {
    // Digits that differ from object to object, since equal texts would compress and share too well.
    let text: String = (0..TEXT / 16)
        .map(|at| {
            format!(
                "{:016x}",
                (number * 31 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            )
        })
        .collect();
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": name(number), "namespace": NAMESPACE,
            "labels": {"app": format!("app-{}", number % 100), "tier": "backend"},
        },
        "data": {"round": round.to_string(), "text": text, "mode": "fast"},
    })
}

/// Returns a ConfigMap that another owns.
pub(super) fn owned(number: usize, owner: &Value) -> Value {
    let mut object = config_map(number, 0);
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }]);
    object
}

/// Returns the request that creates a ConfigMap.
pub(super) fn creation(object: &Value) -> Ask {
    Ask::new(Method::POST, config_maps(), object.to_string())
}

/// Returns a pod, and where all of its namespace are.
pub(super) fn pod(number: usize) -> (String, Value) {
    let mut pod = pods::pod(number);
    if let Some(metadata) = pod.object["metadata"].as_object_mut() {
        // The server would collect pods whose owner is missing.
        metadata.remove("ownerReferences");
    }
    let all = format!("/api/v1/namespaces/{}/pods", pod.namespace);
    (all, pod.object)
}

/// Returns the requests that create the namespaces of the pods and the ConfigMaps.
pub(super) fn namespaces() -> Vec<Ask> {
    let pods = (0..pods::NAMESPACES).map(pods::namespace);
    let names = pods.chain([NAMESPACE.to_owned()]);
    let create = |name: String| {
        let namespace = json!({"metadata": {"name": name}});
        let path = "/api/v1/namespaces".to_owned();
        Ask::new(Method::POST, path, namespace.to_string())
    };
    names.map(create).collect()
}
