//! Admission of Pods by the node they are on.
//!
//! Source: `podtopologylabels`, `nodedeclaredfeatures` and `podresize` in `k8s.io/kubernetes/plugin/pkg/admission`.

use std::sync::Arc;

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::{Object, metadata_mut, metadata_text};
use lariat_apimachinery::usage;
use lariat_core::ObjectKey;
use serde_json::{Map, Value};

use super::Part;
use crate::server::Server;
use crate::status::ApiError;
use crate::store::Stored;

/// The labels of a node that its Pods get.
const TOPOLOGY: [&str; 2] = [
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
];

/// The declared features of nodes that can do all that a Pod may ask for.
///
/// Those of a kubelet of the same version whose feature gates have their defaults.
#[cfg(any(feature = "load", feature = "workloads"))]
pub(crate) const NODE_FEATURES: [&str; 4] = [
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
];

/// Copies the zone and the region of a node to the labels of a Pod or binding.
pub(crate) fn copy_topology(server: &Server, node: &str, object: &mut Object) {
    let Some(node) = find(server, node) else {
        return;
    };
    set_topology(object, |name| node.labels().get(name));
}

/// Sets the zone and the region that the labels of a node have.
pub(crate) fn set_topology<'a>(object: &mut Object, label: impl Fn(&str) -> Option<&'a str>) {
    let found = TOPOLOGY
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), label(name)?.into())));
    let found: Map<String, Value> = found.collect();
    if found.is_empty() {
        return;
    }
    let labels = metadata_mut(object).entry("labels");
    if let Value::Object(labels) = labels.or_insert_with(|| Map::new().into()) {
        labels.extend(found);
    }
}

/// Checks that the node of a Pod can do what a change of its spec asks for.
///
/// # Errors
///
/// 403: the node is missing, does not declare a feature, or is too small for a resize.
pub(crate) fn check_node(
    server: &Server,
    resource: &Resource,
    part: Part,
    old: &Object,
    pod: &Object,
) -> Result<(), ApiError> {
    let is_pod = resource.group.is_empty() && resource.plural == "pods";
    if !is_pod || !matches!(part, Part::Main | Part::Resize) || is_same(old, pod) {
        return Ok(());
    }
    let (Some(old), Some(spec)) = (old.get("spec"), pod.get("spec")) else {
        return Ok(());
    };
    let node = spec["nodeName"].as_str().unwrap_or_default();
    let features = usage::required_features(old, spec);
    if node.is_empty() || (features.is_empty() && part != Part::Resize) {
        return Ok(());
    }
    let name = metadata_text(pod, "name");
    let refuse = |detail: String| ApiError::forbidden(resource, name, &detail);
    let Some(found) = find(server, node) else {
        return Err(refuse(format!("node {node:?} not found")));
    };
    let object = found.object();
    let status = object.get("status").unwrap_or(&Value::Null);
    // `nodedeclaredfeatures` comes before `podresize` in the order of the plugins.
    let missing = missing(&features, &status["declaredFeatures"]);
    if !missing.is_empty() {
        return Err(refuse(format!(
            "pod update requires features {missing} which are not available on node {node:?}"
        )));
    }
    if part != Part::Resize {
        return Ok(());
    }
    let refuse = |reason: &'static str, detail: String| {
        refuse(detail).causes(&[StatusCause::new(reason, "", "")])
    };
    let system = found.labels().get("kubernetes.io/os").unwrap_or("linux");
    if system != "linux" {
        let detail =
            format!("pod resize is only supported on linux nodes, node {node:?} is {system:?}");
        return Err(refuse("UnsupportedPlatform", detail));
    }
    usage::check_allocatable(spec, &status["allocatable"])
        .map_err(|detail| refuse("NodeCapacity", detail))
}

/// Returns whether two states of an object have the same generation, and so the same spec.
fn is_same(old: &Object, new: &Object) -> bool {
    let generation = |object: &Object| Some(object.get("metadata")?.get("generation")?.as_i64());
    generation(old) == generation(new)
}

/// Returns the features that a node does not declare.
fn missing(features: &[&'static str], declared: &Value) -> String {
    let is_declared = |feature: &&str| {
        let mut declared = declared.as_array().into_iter().flatten();
        declared.any(|each| each == *feature)
    };
    let missing: Vec<&str> = features
        .iter()
        .filter(|feature| !is_declared(feature))
        .copied()
        .collect();
    missing.join(", ")
}

fn find(server: &Server, node: &str) -> Option<Arc<Stored>> {
    let table = server.store.table("nodes");
    server.store.get(table, &ObjectKey::cluster(node))
}
