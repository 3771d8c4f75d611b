//! The order in which groups and versions are listed.
//!
//! Clients look for a kind in this order. Source: the priorities of API services in
//! `k8s.io/kubernetes/pkg/controlplane/apiserver`.

use lariat_apimachinery::kinds::Catalog;

use crate::bootstrap::groups_by_priority;

/// Returns the groups, without the core group: the built-in ones, then all others by name.
pub(crate) fn groups(catalog: &Catalog) -> Vec<&str> {
    let mut groups = catalog.groups();
    let rank = |group: &str| groups_by_priority().position(|each| each == group);
    groups.sort_by_key(|group| (rank(group).unwrap_or(usize::MAX), *group));
    groups
}

/// Returns the versions of a group, the preferred one first.
pub(super) fn versions<'a>(catalog: &'a Catalog, group: &str) -> Vec<&'a str> {
    catalog.versions(group)
}
