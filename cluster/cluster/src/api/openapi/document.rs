//! Version 3: the index and the documents.

use std::sync::OnceLock;

use bytes::Bytes;
use lariat_apimachinery::kinds::Catalog;
use serde_json::{Map, Value, json};

use super::fixed::{info, v3};
use super::parts::{SchemasOf, paths_of};
use super::{digest, fixed, paths};
use crate::wire::gzip;

/// Writes the index.
///
/// `has_openid` says whether the documents about the issuer of tokens are served.
pub(crate) fn index(catalog: &Catalog, has_openid: bool) -> String {
    let versions = groups(catalog).flat_map(|group| {
        let versions = catalog.versions(group).into_iter();
        versions.map(move |version| match group {
            "" => format!("api/{version}"),
            group => format!("apis/{group}/{version}"),
        })
    });
    let groups = fixed::groups(catalog).map(|group| format!("apis/{group}"));
    let fixed = ["api", "apis", "version"].into_iter();
    let openid = fixed::OPENID_PATHS.into_iter().filter(|_| has_openid);
    let paths: Map<String, Value> = fixed
        .chain(openid)
        .map(str::to_owned)
        .chain(groups)
        .chain(versions)
        .filter_map(|path| {
            let url = url(&path, &digest_of(catalog, has_openid, &path)?);
            Some((path, json!({"serverRelativeURL": url})))
        })
        .collect();
    json!({"paths": paths}).to_string()
}

/// Returns the URL that the index has for a document.
pub(super) fn url(path: &str, digest: &str) -> String {
    format!("/openapi/v3/{path}?hash={digest}")
}

fn groups(catalog: &Catalog) -> impl Iterator<Item = &str> {
    std::iter::once("").chain(catalog.groups())
}

/// Returns the digest of the document at a path below `/openapi/v3/`.
pub(super) fn digest_of(catalog: &Catalog, has_openid: bool, path: &str) -> Option<String> {
    if fixed::OPENID_PATHS.contains(&path) {
        return has_openid.then(|| digest::of_path(path));
    }
    let Some((group, version)) = version_of(path) else {
        return fixed::has(catalog, path).then(|| digest::of_path(path));
    };
    let cached = catalog.openapi_of(group, version)?;
    let resources = || catalog.resources(group, version);
    let digest = cached
        .digest
        .get_or_init(|| digest::of_resources(resources()));
    Some(digest.clone())
}

/// Returns the compressed document at a path below `/openapi/v3/`.
pub(super) fn document(catalog: &Catalog, path: &str) -> Option<Bytes> {
    Some(match version_of(path) {
        Some((group, version)) => {
            let slot = &catalog.openapi_of(group, version)?.json;
            once(slot, || write(catalog, group, version))
        }
        // These are small and rarely asked for, so they are not kept.
        None => {
            let document = fixed::openid(path).unwrap_or_else(|| fixed::document(path));
            gzip::compress(document.to_string().as_bytes())
        }
    })
}

/// Compresses a document at the first request for it.
pub(super) fn once(slot: &OnceLock<Bytes>, write: impl FnOnce() -> Value) -> Bytes {
    slot.get_or_init(|| gzip::compress(write().to_string().as_bytes()))
        .clone()
}

/// Splits the path of a document about a version into group and version.
fn version_of(path: &str) -> Option<(&str, &str)> {
    match path.split('/').collect::<Vec<_>>()[..] {
        ["api", version] => Some(("", version)),
        ["apis", group, version] => Some((group, version)),
        _ => None,
    }
}

fn write(catalog: &Catalog, group: &str, version: &str) -> Value {
    let (mut paths, mut schemas) = (Map::new(), SchemasOf::default());
    let mut info = info();
    for resource in catalog.resources(group, version) {
        // Go builds the documents of CRDs apart from its own, and gives them this title.
        if resource.rules.custom {
            info = json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"});
        }
        for path in paths_of(resource) {
            paths.insert(path.path.clone(), paths::describe(&path));
        }
        schemas.add(resource);
    }
    v3(&info, paths, schemas.finish())
}
