//! The index and the documents.

use lariat_apimachinery::kinds::{Catalog, Written};
use lariat_apimachinery::schema::describe;
use serde_json::{Map, json};

use super::{custom, operations};
use crate::api::etag::digest;

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
        if resource.rules.custom {
            custom::describe(resource, &mut schemas);
        } else if schemas.is_empty() {
            schemas = describe::version(&resource.api_version());
        }
    }
    let document = json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.36.0"},
        "paths": paths, "components": {"schemas": schemas},
    });
    format!("{document}\n")
}
