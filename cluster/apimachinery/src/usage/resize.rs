//! The capacity a node must have for a Pod on it to be resized.
//!
//! Source: `nodedeclaredfeatures` and `podresize` in `k8s.io/kubernetes/plugin/pkg/admission`, and
//! `k8s.io/component-helpers/nodedeclaredfeatures`.

use serde_json::Value;

use super::amounts::Amounts;
use super::pods;
use crate::checks::equality::are_equal;
use crate::quantity::Quantity;

/// Returns the features a node must declare for a change of a Pod's spec.
///
/// ```
/// use lariat_apimachinery::usage::required_features;
/// use serde_json::json;
///
/// let spec = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
/// let features = required_features(&spec("1"), &spec("2"));
/// assert_eq!(features, ["InPlacePodLevelResourcesVerticalScaling"]);
/// ```
#[must_use]
pub fn required_features(old: &Value, new: &Value) -> Vec<&'static str> {
    let mut features = Vec::new();
    if !are_equal(&old["resources"], &new["resources"]) {
        features.push("InPlacePodLevelResourcesVerticalScaling");
    }
    let new_containers = pods::containers(new, "initContainers");
    let mut containers = pods::containers(old, "initContainers").zip(new_containers);
    let is_resized = |(old, new): (&Value, &Value)| {
        let is_sidecar = old["restartPolicy"] == "Always";
        !is_sidecar && !are_equal(&old["resources"], &new["resources"])
    };
    if containers.any(is_resized) {
        features.push("InPlacePodVerticalScalingInitContainers");
    }
    features
}

/// Checks that a node can give a Pod the CPU and the memory that it requests.
///
/// `allocatable` is that of the node's status; what is missing there counts as nothing.
///
/// # Errors
///
/// The resource of which the node has too little, in Go's words.
///
/// ```
/// use lariat_apimachinery::usage::check_allocatable;
/// use serde_json::json;
///
/// let spec = json!({"containers": [{"resources": {"requests": {"cpu": "1500m"}}}]});
/// assert!(check_allocatable(&spec, &json!({"cpu": "2", "memory": "1Gi"})).is_ok());
/// assert_eq!(
///     check_allocatable(&spec, &json!({"cpu": "1"})).unwrap_err(),
///     "node didn't have enough allocatable resources: cpu, requested: 1500, allocatable: 1000"
/// );
/// ```
pub fn check_allocatable(spec: &Value, allocatable: &Value) -> Result<(), String> {
    let (requests, allocatable) = (pods::total(spec, "requests"), Amounts::read(allocatable));
    let lack = |name: &str, count: fn(Quantity) -> i64| {
        let requested = requests.get(name)?;
        let available = allocatable.get(name).unwrap_or(Quantity::ZERO);
        (requested > available).then(|| {
            let (requested, available) = (count(requested), count(available));
            format!("{name}, requested: {requested}, allocatable: {available}")
        })
    };
    let missing = [
        lack("cpu", Quantity::thousandths),
        lack("memory", Quantity::rounded),
    ];
    let missing: Vec<String> = missing.into_iter().flatten().collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join("; ");
    Err(format!(
        "node didn't have enough allocatable resources: {missing}"
    ))
}
