//! Discovery in the legacy form, and what else a client asks before its first object.

use http::StatusCode;
use serde_json::{Value, json};

use super::reply::Reply;
use super::status::ApiError;
use crate::kinds::{Catalog, Resource};

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
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

fn reply(document: &Value) -> Reply {
    Reply::json(StatusCode::OK, document.to_string())
}

pub(crate) fn version() -> Reply {
    reply(&json!({
        "major": "1", "minor": "36", "gitVersion": "v1.36.0+lariat", "gitCommit": "",
        "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none",
        "compiler": "rustc", "platform": std::env::consts::OS,
    }))
}

pub(crate) fn core_versions() -> Reply {
    reply(&json!({
        "kind": "APIVersions", "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
    }))
}

pub(crate) fn groups(catalog: &Catalog) -> Reply {
    let groups: Vec<Value> = catalog
        .groups()
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
    let versions: Vec<Value> = catalog
        .versions(group)
        .into_iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    json!({"name": group, "versions": versions, "preferredVersion": versions[0]})
}

pub(crate) fn resources(catalog: &Catalog, group: &str, version: &str) -> Result<Reply, ApiError> {
    if !catalog.has_version(group, version) {
        return Err(unserved(catalog, group));
    }
    let resources: Vec<Value> = catalog
        .resources(group, version)
        .flat_map(|resource| resource_json(resource))
        .collect();
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    Ok(reply(&json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version,
        "resources": resources,
    })))
}

/// Returns the error for a path below a version that is not served: a built-in group knows that it
/// has no such version, elsewhere there is no handler at all.
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

fn resource_json(resource: &Resource) -> Vec<Value> {
    let mut verbs = COLLECTION_VERBS.to_vec();
    if resource.group.is_empty() && resource.plural == "namespaces" {
        verbs.retain(|verb| *verb != "deletecollection");
    }
    let mut document = json!({
        "name": resource.plural, "singularName": resource.singular,
        "namespaced": resource.namespaced, "kind": resource.kind, "verbs": verbs,
    });
    if !resource.short_names.is_empty() {
        document["shortNames"] = resource.short_names.clone().into();
    }
    if !resource.categories.is_empty() {
        document["categories"] = resource.categories.clone().into();
    }
    let mut documents = vec![document];
    if resource.rules.status {
        documents.push(json!({
            "name": format!("{}/status", resource.plural), "singularName": "",
            "namespaced": resource.namespaced, "kind": resource.kind, "verbs": SUBRESOURCE_VERBS,
        }));
    }
    documents
}
