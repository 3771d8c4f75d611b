//! OpenAPI v3: an index, and a document for every group and version.
//!
//! A custom kind has the schema of its definition, a built-in one that of its type, so that
//! `kubectl explain` tells about it. Both have what kubectl looks for before it sends an object: an
//! operation that patches the kind and takes the parameter `fieldValidation`.

mod custom;
mod operations;

use lariat_apimachinery::kinds::{Catalog, Resource, Written};
use lariat_apimachinery::schema::describe;
use serde_json::{Map, Value, json};

use super::etag::digest;

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
        let hash = document(catalog, group, version).map(|document| document.digest.as_str());
        let url = format!("/openapi/v3/{path}?hash={}", hash.unwrap_or_default());
        paths.insert(path, json!({"serverRelativeURL": url}));
    }
    format!("{}\n", json!({"paths": paths}))
}

/// Returns the document of a version, if it is served.
pub(crate) fn document<'a>(
    catalog: &'a Catalog,
    group: &str,
    version: &str,
) -> Option<&'a Written> {
    let written = catalog.document(group, version)?;
    Some(written.get_or_init(|| {
        let text = write(catalog, group, version);
        Written {
            digest: digest(text.as_bytes()),
            text: text.into(),
        }
    }))
}

fn write(catalog: &Catalog, group: &str, version: &str) -> String {
    let (mut paths, mut schemas) = (Map::new(), Map::new());
    for resource in catalog.resources(group, version) {
        operations::describe(resource, &mut paths);
        match resource.rules.custom {
            true => custom::describe(resource, &mut schemas),
            false if schemas.is_empty() => schemas = describe::version(&resource.api_version()),
            false => {}
        }
    }
    let document = json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.36.0"},
        "paths": paths, "components": {"schemas": schemas},
    });
    format!("{document}\n")
}

/// Names a kind as extensions of operations and schemas do.
fn kind_json(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

/// Returns the name of the schema of a kind: of a custom one, its group backwards, version and kind.
fn schema_name(resource: &Resource, kind: &str) -> String {
    if !resource.rules.custom
        && let Some(name) = describe::name(&resource.api_version(), kind)
    {
        return name;
    }
    let mut parts: Vec<&str> = resource.group.split('.').rev().collect();
    parts.extend([resource.version.as_str(), kind]);
    parts.join(".")
}
