//! OpenAPI v3: an index, and a document for every group and version.
//!
//! A custom kind has the schema of its definition, so that `kubectl explain` tells about it. A built-in
//! one has what kubectl looks for before it sends an object: an operation that patches the kind and
//! takes the parameter `fieldValidation`.

mod custom;
mod operations;

use serde_json::{Map, Value, json};

use super::etag::digest;
use crate::kinds::{Catalog, Resource};

/// Writes the index.
pub(crate) fn index(catalog: &Catalog) -> String {
    let mut paths = Map::new();
    let groups = std::iter::once("").chain(catalog.groups());
    for (group, version) in groups.flat_map(|group| {
        let versions = catalog.versions(group).into_iter();
        versions.map(move |version| (group, version))
    }) {
        let path = match group {
            "" => format!("api/{version}"),
            group => format!("apis/{group}/{version}"),
        };
        let document = document(catalog, group, version).unwrap_or_default();
        let hash = digest(document.as_bytes());
        let url = format!("/openapi/v3/{path}?hash={hash}");
        paths.insert(path, json!({"serverRelativeURL": url}));
    }
    format!("{}\n", json!({"paths": paths}))
}

/// Writes the document of a version, if it is served.
pub(crate) fn document(catalog: &Catalog, group: &str, version: &str) -> Option<String> {
    if !catalog.has_version(group, version) {
        return None;
    }
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for resource in catalog.resources(group, version) {
        operations::describe(resource, &mut paths);
        if resource.rules.custom {
            custom::describe(resource, &mut schemas);
        }
    }
    let document = json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.36.0"},
        "paths": paths, "components": {"schemas": schemas},
    });
    Some(format!("{document}\n"))
}

/// Names a kind as extensions of operations and schemas do.
fn kind_json(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

/// Returns the name of the schema of a custom kind: its group backwards, version and kind.
fn schema_name(resource: &Resource, kind: &str) -> String {
    let mut parts: Vec<&str> = resource.group.split('.').rev().collect();
    parts.extend([resource.version.as_str(), kind]);
    parts.join(".")
}
