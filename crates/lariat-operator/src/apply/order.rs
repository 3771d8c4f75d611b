//! The order in which kinds are applied; pruning goes the other way.

use lariat_core::Gvk;

/// What others need comes first, and what could refuse others last; kinds nobody knows are between.
///
/// It is Helm's order of installation in short.
const RANKS: [&[&str]; 8] = [
    &["Namespace", "PriorityClass"],
    &["CustomResourceDefinition"],
    &[
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
    ],
    &[
        "NetworkPolicy",
        "ResourceQuota",
        "LimitRange",
        "PodDisruptionBudget",
        "StorageClass",
    ],
    &[
        "Secret",
        "ConfigMap",
        "PersistentVolume",
        "PersistentVolumeClaim",
    ],
    &["Service"],
    &[
        "DaemonSet",
        "Pod",
        "ReplicationController",
        "ReplicaSet",
        "Deployment",
        "HorizontalPodAutoscaler",
        "StatefulSet",
        "Job",
        "CronJob",
        "Ingress",
    ],
    // Kinds of others, whose CRDs and controllers are among the above.
    &[],
];

/// They can refuse what is applied while what they call is not there yet.
const LAST: [&str; 5] = [
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicyBinding",
];

/// Returns the place of a kind: lower ones are applied before.
pub(super) fn rank(gvk: &Gvk) -> usize {
    let unknown = RANKS.len() - 1;
    if !is_of_kubernetes(gvk.group()) {
        return unknown;
    }
    if LAST.contains(&gvk.kind()) {
        return RANKS.len();
    }
    let known = RANKS.iter().position(|kinds| kinds.contains(&gvk.kind()));
    known.unwrap_or(unknown)
}

/// Groups of others may name their kinds as they like, Services of Knative among them.
fn is_of_kubernetes(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_need_is_applied_first_and_what_may_refuse_them_last() {
        let kinds = [
            "v1/Namespace",
            "apiextensions.k8s.io/v1/CustomResourceDefinition",
            "rbac.authorization.k8s.io/v1/Role",
            "v1/ConfigMap",
            "v1/Service",
            "apps/v1/Deployment",
            "serving.knative.dev/v1/Service",
            "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration",
        ];
        let ranks: Vec<usize> = kinds
            .iter()
            .map(|kind| rank(&kind.parse().unwrap()))
            .collect();
        assert!(ranks.is_sorted_by(|a, b| a < b), "{ranks:?}");
    }
}
