//! Discovery documents of one group and version, which every API server has.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResource, APIResourceList};
use lariat_core::{Gvk, ResourceKind, Scope};
use serde::Deserialize;

use super::aggregated::Served;

/// The accepted content type.
pub(super) const ACCEPTED: &str = "application/json";

/// Returns the kinds that a document lists, without subresources.
pub(super) fn served_kinds(text: &str) -> Result<Vec<Served>, serde_json::Error> {
    let list: APIResourceList = serde_json::from_str(text)?;
    let (group, version) = list
        .group_version
        .split_once('/')
        .unwrap_or(("", &list.group_version));
    let resources = list
        .resources
        .iter()
        .filter(|resource| !resource.name.contains('/'));
    let served = |resource: &APIResource| {
        let gvk = Gvk::new(group, version, &resource.kind);
        let scope = if resource.namespaced {
            Scope::Namespaced
        } else {
            Scope::Cluster
        };
        let served = ResourceKind::new(gvk, &resource.name, scope);
        Served::new(served, &resource.verbs)
    };
    Ok(resources.map(served).collect())
}

/// Returns the versions that `/api` or `/apis` list.
///
/// The versions of each group are in order of preference.
pub(super) fn versions(text: &str) -> Result<Vec<String>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Document {
        /// Of the core group.
        #[serde(default)]
        versions: Vec<String>,
        #[serde(default)]
        groups: Vec<APIGroup>,
    }
    let document: Document = serde_json::from_str(text)?;
    let core = document.versions.into_iter();
    let named = document.groups.into_iter().flat_map(|group| {
        let preferred = group.preferred_version.map(|version| version.group_version);
        let mut versions: Vec<String> = group
            .versions
            .into_iter()
            .map(|version| version.group_version)
            .collect();
        versions.sort_by_key(|version| Some(version) != preferred.as_ref());
        versions
    });
    let core = core.map(|version| format!("/api/{version}"));
    Ok(core
        .chain(named.map(|version| format!("/apis/{version}")))
        .collect())
}
