//! The choice of the rule for each built-in kind.

use serde_json::Value;

use super::fields::Fields;
use super::readiness::Readiness;
use super::{others, workloads};

/// Returns whether an object of one kind is ready.
pub(super) type Rule = fn(Fields<'_>) -> Readiness;

/// Returns the rule of an object's kind, in any version, if the kind has one.
pub(super) fn rule_of(object: &Value) -> Option<Rule> {
    let version = object.get("apiVersion")?.as_str()?;
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let rule: Rule = match (group, object.get("kind")?.as_str()?) {
        ("apps", "Deployment") => workloads::deployment,
        ("apps", "StatefulSet") => workloads::stateful_set,
        ("apps", "DaemonSet") => workloads::daemon_set,
        ("apps", "ReplicaSet") => workloads::replica_set,
        ("batch", "Job") => others::job,
        ("", "Pod") => others::pod,
        ("", "PersistentVolumeClaim") => others::claim,
        ("", "Service") => others::service,
        ("policy", "PodDisruptionBudget") => others::disruption_budget,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => others::definition,
        _ => return None,
    };
    Some(rule)
}
