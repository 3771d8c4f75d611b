//! The order in which kinds are applied. Pruning goes in the opposite order.

use lariat_core::Gvk;

/// The kinds by rank, a short form of Helm's install order.
///
/// Kinds that others need come first, and unknown kinds last.
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
    // All other kinds. Their CRDs and controllers are among the above.
    &[],
];

/// Kinds that are applied after all others.
///
/// They make the API server call other servers, and would refuse objects until those run.
const LAST: [&str; 5] = [
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicyBinding",
];

/// Returns the rank of a kind; lower ranks are applied first.
pub(super) fn rank(gvk: &Gvk) -> usize {
    // Kinds of other groups come after everything that Kubernetes itself provides, since their CRDs and controllers may
    // be part of the same set.
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

/// Returns whether a group is one of Kubernetes itself.
///
/// Other groups may have kinds of the same names, such as Knative's Services.
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
