//! The order in which groups and versions are listed.
//!
//! Clients look for a kind in this order. Source: the priorities of API services in
//! `k8s.io/kubernetes/pkg/controlplane/apiserver`.

use lariat_apimachinery::kinds::Catalog;

/// The built-in groups, the foremost first; all others follow by name.
const GROUPS: [&str; 20] = [
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "resource.k8s.io",
];

/// Returns the groups, without the core group.
pub(crate) fn groups(catalog: &Catalog) -> Vec<&str> {
    let mut groups = catalog.groups();
    let rank = |group: &str| GROUPS.iter().position(|each| *each == group);
    groups.sort_by_key(|group| (rank(group).unwrap_or(GROUPS.len()), *group));
    groups
}

/// Returns the versions of a group, the preferred one first.
pub(super) fn versions<'a>(catalog: &'a Catalog, group: &str) -> Vec<&'a str> {
    catalog.versions(group)
}
