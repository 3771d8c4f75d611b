//! Discovery: which groups, versions and resources there are.

use http::StatusCode;
use lariat_apimachinery::kinds::{Catalog, Resource};
use serde_json::{Value, json};

use crate::status::ApiError;
use crate::wire::reply::Reply;

use super::order::{groups as group_names, versions};
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

fn reply(document: &Value) -> Reply {
    Reply::json(StatusCode::OK, document.to_string())
}

pub(crate) fn version() -> Reply {
    reply(&json!({
        "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
        "gitVersion": "v1.36.0+lariat", "gitCommit": "", "gitTreeState": "clean",
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
    let groups: Vec<Value> = group_names(catalog)
        .into_iter()
        .map(|group| group_json(catalog, group))
        .collect();
    reply(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
}

pub(crate) fn group(catalog: &Catalog, group: &str) -> Result<Reply, ApiError> {
    if group.is_empty() || !catalog.has_group(group) {
        return Err(ApiError::page_not_found());
    }
    let mut document = group_json(catalog, group);
    document["kind"] = "APIGroup".into();
    document["apiVersion"] = "v1".into();
    Ok(reply(&document))
}

fn group_json(catalog: &Catalog, group: &str) -> Value {
    let versions: Vec<Value> = versions(catalog, group)
        .into_iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    json!({"name": group, "versions": versions, "preferredVersion": versions[0]})
}

pub(crate) fn resources(catalog: &Catalog, group: &str, version: &str) -> Result<Reply, ApiError> {
    if !catalog.has_version(group, version) {
        return Err(unserved(catalog, group));
    }
    let resources: Vec<Value> = sorted(catalog, group, version)
        .into_iter()
        .flat_map(resource_json)
        .collect();
    Ok(reply(&json!({
        "kind": "APIResourceList", "apiVersion": "v1",
        "groupVersion": group_version(group, version), "resources": resources,
    })))
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
    let mut verbs = COLLECTION_VERBS.to_vec();
    if resource.group.is_empty() && resource.plural == "namespaces" {
        verbs.retain(|verb| *verb != "deletecollection");
    }
    verbs
}

fn resource_json(resource: &Resource) -> Vec<Value> {
    let mut document = json!({
        "name": resource.plural, "singularName": resource.singular,
        "namespaced": resource.namespaced, "kind": resource.kind, "verbs": verbs(resource),
    });
    if !resource.short_names.is_empty() {
        document["shortNames"] = resource.short_names.clone().into();
    }
    if !resource.categories.is_empty() {
        document["categories"] = resource.categories.clone().into();
    }
    let subresources = subresources(resource).into_iter().map(|subresource| {
        let mut document = json!({
            "name": format!("{}/{}", resource.plural, subresource.name), "singularName": "",
            "namespaced": resource.namespaced, "verbs": subresource.verbs,
        });
        document["kind"] = subresource.kind.unwrap_or(&resource.kind).into();
        if let Some((group, version)) = subresource.group_version {
            document["group"] = group.into();
            document["version"] = version.into();
        }
        document
    });
    std::iter::once(document).chain(subresources).collect()
}
