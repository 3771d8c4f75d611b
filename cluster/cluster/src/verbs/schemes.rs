//! The types that Go's decoders know.
//!
//! Source: the `register.go` of the groups.

use lariat_apimachinery::schema;

/// The types of one of the three servers that a kube-apiserver consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Main,
    Definitions,
    Aggregator,
}

impl Scheme {
    /// Returns the scheme of a group, given with a version.
    pub(super) fn of(api_version: &str) -> Self {
        match group(api_version) {
            "apiextensions.k8s.io" => Self::Definitions,
            "apiregistration.k8s.io" => Self::Aggregator,
            _ => Self::Main,
        }
    }

    /// Returns the place of its definition in Go, which is its name in messages.
    pub(super) fn place(self) -> &'static str {
        match self {
            Self::Main => "pkg/api/legacyscheme/scheme.go:30",
            Self::Definitions => "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:55",
            Self::Aggregator => "k8s.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:28",
        }
    }

    /// Returns whether it has a type.
    pub(super) fn has(self, api_version: &str, kind: &str) -> bool {
        // They belong to all versions.
        if matches!(
            kind,
            "Status" | "APIVersions" | "APIGroup" | "APIGroupList" | "APIResourceList"
        ) {
            return true;
        }
        let item = kind.strip_suffix("List").filter(|item| !item.is_empty());
        let kind = item.unwrap_or(kind);
        Self::of(api_version) == self
            && (is_present(api_version, kind) || is_older(api_version, kind))
    }
}

/// Returns whether a kind is that of options, or another that belongs to the machinery.
pub(super) fn is_meta(kind: &str) -> bool {
    const OPTIONS: [&str; 6] = ["Create", "Delete", "Get", "List", "Patch", "Update"];
    let options = kind.strip_suffix("Options");
    kind == "WatchEvent" || options.is_some_and(|verb| OPTIONS.contains(&verb))
}

fn is_present(api_version: &str, kind: &str) -> bool {
    let is_version = || schema::has_version(api_version) || older(api_version).is_some();
    schema::builtin(api_version, kind).is_some() || is_meta(kind) && is_version()
}

fn is_older(api_version: &str, kind: &str) -> bool {
    older(api_version).is_some_and(|kinds| kinds.split(' ').any(|each| each == kind))
}

fn older(api_version: &str) -> Option<&'static str> {
    let mut older = OLDER.iter();
    let (_, kinds) = older.find(|(version, _)| *version == api_version)?;
    Some(kinds)
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Returns the Go package of the internal type of a kind, in any version.
pub(super) fn package<'a>(api_version: &'a str, kind: &str) -> &'a str {
    match group(api_version) {
        "" | "events.k8s.io" => "core",
        "internal.apiserver.k8s.io" => "apiserverinternal",
        "extensions" if matches!(kind, "Ingress" | "NetworkPolicy") => "networking",
        "extensions" | "apps" if kind == "Scale" => "autoscaling",
        "extensions" => "apps",
        group => group.split('.').next().unwrap_or_default(),
    }
}

/// Versions and kinds that are read, but no longer served, and others that are no resources.
///
/// As far as a kube-apiserver knew them when it was sent each.
const OLDER: &[(&str, &str)] = &[
    ("admission.k8s.io/v1", "AdmissionReview"),
    ("admission.k8s.io/v1beta1", "AdmissionReview"),
    (
        "admissionregistration.k8s.io/v1alpha1",
        "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding",
    ),
    (
        "admissionregistration.k8s.io/v1beta1",
        "MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration",
    ),
    ("apiextensions.k8s.io/v1", "ConversionReview"),
    (
        "apiextensions.k8s.io/v1beta1",
        "ConversionReview CustomResourceDefinition",
    ),
    ("apiregistration.k8s.io/v1beta1", "APIService"),
    (
        "apps/v1beta1",
        "ControllerRevision Deployment DeploymentRollback Scale StatefulSet",
    ),
    (
        "apps/v1beta2",
        "ControllerRevision DaemonSet Deployment ReplicaSet Scale StatefulSet",
    ),
    ("authentication.k8s.io/v1alpha1", "SelfSubjectReview"),
    (
        "authentication.k8s.io/v1beta1",
        "SelfSubjectReview TokenReview",
    ),
    (
        "authorization.k8s.io/v1beta1",
        "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
    ),
    ("batch/v1beta1", "CronJob"),
    ("certificates.k8s.io/v1beta1", "CertificateSigningRequest"),
    ("coordination.k8s.io/v1beta1", "Lease"),
    ("discovery.k8s.io/v1beta1", "EndpointSlice"),
    ("events.k8s.io/v1beta1", "Event"),
    (
        "extensions/v1beta1",
        "DaemonSet Deployment DeploymentRollback Ingress NetworkPolicy ReplicaSet Scale",
    ),
    (
        "flowcontrol.apiserver.k8s.io/v1beta1",
        "FlowSchema PriorityLevelConfiguration",
    ),
    (
        "flowcontrol.apiserver.k8s.io/v1beta2",
        "FlowSchema PriorityLevelConfiguration",
    ),
    (
        "flowcontrol.apiserver.k8s.io/v1beta3",
        "FlowSchema PriorityLevelConfiguration",
    ),
    ("imagepolicy.k8s.io/v1alpha1", "ImageReview"),
    ("networking.k8s.io/v1beta1", "Ingress IngressClass"),
    ("node.k8s.io/v1alpha1", "RuntimeClass"),
    ("node.k8s.io/v1beta1", "RuntimeClass"),
    ("policy/v1beta1", "Eviction PodDisruptionBudget"),
    (
        "rbac.authorization.k8s.io/v1alpha1",
        "ClusterRole ClusterRoleBinding Role RoleBinding",
    ),
    (
        "rbac.authorization.k8s.io/v1beta1",
        "ClusterRole ClusterRoleBinding Role RoleBinding",
    ),
    ("scheduling.k8s.io/v1beta1", "PriorityClass"),
    (
        "storage.k8s.io/v1alpha1",
        "CSIStorageCapacity VolumeAttachment VolumeAttributesClass",
    ),
    (
        "storage.k8s.io/v1beta1",
        "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment",
    ),
    (
        "v1",
        "List NodeProxyOptions PodAttachOptions PodExecOptions PodLogOptions PodPortForwardOptions PodProxyOptions PodStatusResult RangeAllocation SerializedReference ServiceProxyOptions",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_those_that_a_genuine_server_knew() {
        let has = |api_version: &str, kind: &str| Scheme::Main.has(api_version, kind);
        for (api_version, kind) in [
            ("v1", "Pod"),
            ("v1", "PodList"),
            ("v1", "List"),
            ("v1", "DeleteOptions"),
            ("apps/v1beta1", "Scale"),
            ("apps/v1beta1", "WatchEvent"),
            ("extensions/v1beta1", "IngressList"),
            ("policy/v1", "Eviction"),
            ("foo/v1", "Status"),
        ] {
            assert!(has(api_version, kind), "{api_version} {kind}");
        }
        for (api_version, kind) in [
            ("v2", "Pod"),
            ("v1", "Foo"),
            ("v1", "pod"),
            ("v1", "Eviction"),
            ("apps/v1", "ConfigMap"),
            ("autoscaling/v2", "Scale"),
            ("meta.k8s.io/v1", "DeleteOptions"),
            ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ] {
            assert!(!has(api_version, kind), "{api_version} {kind}");
        }
    }
}
