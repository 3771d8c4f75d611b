//! Discovery: which groups, versions and resources there are.

use std::sync::atomic::Ordering;

use http::StatusCode;
use lariat_apimachinery::KUBERNETES;
use lariat_apimachinery::kinds::{Catalog, Resource};
use serde::Serialize;
use serde_json::json;

use crate::status::ApiError;
use crate::wire::reply::Reply;

use super::order::{groups as group_names, versions};
use super::shapes::{ApiResource, Group, GroupList, GroupVersion, ResourceList};
use super::subresources::subresources;

const COLLECTION_VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// The verbs of custom resources, in the order in which they are listed.
const CUSTOM_VERBS: [&str; 8] = [
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];

fn reply(document: &impl Serialize) -> Reply {
    let text = serde_json::to_string(document).unwrap_or_default();
    Reply::json(StatusCode::OK, text)
}

pub(crate) fn version() -> Reply {
    let (major, minor) = KUBERNETES.split_once('.').unwrap_or_default();
    let before = minor
        .parse::<u32>()
        .map_or(0, |minor| minor.saturating_sub(1));
    reply(&json!({
        "major": major, "minor": minor, "emulationMajor": major, "emulationMinor": minor,
        "minCompatibilityMajor": major, "minCompatibilityMinor": before.to_string(),
        "gitVersion": format!("v{KUBERNETES}.0+lariat"), "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    }))
}

pub(crate) fn core_versions() -> Reply {
    reply(&json!({
        "kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
    }))
}

pub(crate) fn groups(catalog: &Catalog) -> Reply {
    let groups = group_names(catalog).into_iter();
    reply(&GroupList {
        kind: "APIGroupList",
        api_version: "v1",
        groups: groups.map(|group| group_of(catalog, group)).collect(),
    })
}

pub(crate) fn group(catalog: &Catalog, group: &str) -> Result<Reply, ApiError> {
    if group.is_empty() || !catalog.has_group(group) {
        return Err(ApiError::page_not_found());
    }
    Ok(reply(&Group {
        kind: Some("APIGroup"),
        api_version: Some("v1"),
        ..group_of(catalog, group)
    }))
}

fn group_of(catalog: &Catalog, group: &str) -> Group {
    let version = |version: &str| GroupVersion {
        group_version: format!("{group}/{version}"),
        version: version.to_owned(),
    };
    let versions = versions(catalog, group);
    Group {
        kind: None,
        api_version: None,
        name: group.to_owned(),
        preferred_version: versions.first().map(|first| version(first)),
        versions: versions.into_iter().map(version).collect(),
    }
}

pub(crate) fn resources(catalog: &Catalog, group: &str, version: &str) -> Result<Reply, ApiError> {
    if !catalog.has_version(group, version) {
        return Err(unserved(catalog, group));
    }
    let resources = sorted(catalog, group, version).into_iter();
    Ok(reply(&ResourceList {
        kind: "APIResourceList",
        // A genuine server leaves `apiVersion` out for the core group.
        api_version: (!group.is_empty()).then_some("v1"),
        group_version: group_version(group, version),
        resources: resources.flat_map(with_parts).collect(),
    }))
}

/// Returns the resources of a version in the order of their names.
pub(super) fn sorted<'a>(catalog: &'a Catalog, group: &str, version: &str) -> Vec<&'a Resource> {
    let served = catalog.resources(group, version);
    let mut sorted: Vec<&Resource> = served.map(|resource| &**resource).collect();
    sorted.sort_by(|a, b| a.plural.cmp(&b.plural));
    sorted
}

fn group_version(group: &str, version: &str) -> String {
    match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    }
}

/// Returns the error for a path below a version that is not served.
///
/// A built-in group knows that it has no such version; elsewhere there is no handler.
pub(crate) fn unserved(catalog: &Catalog, group: &str) -> ApiError {
    let custom = |version: &&str| {
        catalog
            .resources(group, version)
            .any(|resource| resource.rules.custom)
    };
    if !catalog.has_group(group) || catalog.versions(group).iter().any(custom) {
        ApiError::page_not_found()
    } else {
        ApiError::unknown_resource()
    }
}

/// Returns the verbs of a resource itself.
pub(super) fn verbs(resource: &Resource) -> Vec<&'static str> {
    if resource.rules.review {
        return vec!["create"];
    }
    if resource.rules.read_only {
        return vec!["get", "list"];
    }
    if resource.rules.custom {
        let mut verbs = CUSTOM_VERBS.to_vec();
        if resource.terminating.load(Ordering::Relaxed) {
            verbs.retain(|verb| !matches!(*verb, "patch" | "create" | "update"));
        }
        return verbs;
    }
    let mut verbs = COLLECTION_VERBS.to_vec();
    if resource.group.is_empty() && resource.plural == "namespaces" {
        // Each namespace is deleted on its own: its REST storage in Go has no DeleteCollection.
        verbs.retain(|verb| *verb != "deletecollection");
    }
    verbs
}

fn with_parts(resource: &Resource) -> Vec<ApiResource<'_>> {
    let parts = subresources(resource).into_iter();
    std::iter::once(ApiResource::of(resource, verbs(resource)))
        .chain(parts.map(|part| ApiResource::part(resource, part)))
        .collect()
}
