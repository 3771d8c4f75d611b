//! The document, in either encoding.

use bytes::Bytes;
use lariat_apimachinery::kinds::Catalog;
use serde_json::{Map, Value, json};

use super::super::document::once;
use super::super::encoding::DocumentEncoding;
use super::super::fixed::info;
use super::super::parts::{SchemasOf, paths_of};
use super::super::{digest as digests, fixed};
use super::{paths, protobuf, schemas};
use crate::wire::gzip;

/// Returns the digest of the document.
pub(in crate::api::openapi) fn digest(catalog: &Catalog) -> &str {
    let cached = catalog.openapi();
    cached
        .digest
        .get_or_init(|| digests::of_resources(catalog.all()))
}

/// Returns the document, compressed.
pub(in crate::api::openapi) fn document(catalog: &Catalog, encoding: DocumentEncoding) -> Bytes {
    let cached = catalog.openapi();
    match encoding {
        DocumentEncoding::Json => once(&cached.json, || write(catalog)),
        DocumentEncoding::Protobuf => cached
            .protobuf
            .get_or_init(|| gzip::compress(&protobuf::encode(&write(catalog))))
            .clone(),
    }
}

pub(super) fn write(catalog: &Catalog) -> Value {
    let (mut paths, mut found) = (Map::new(), SchemasOf::default());
    for (path, kind) in fixed::all(catalog) {
        paths.insert(path.path.clone(), paths::describe(&path));
        found.builtin.types(&[kind]);
    }
    for resource in catalog.all() {
        for path in paths_of(resource) {
            paths.insert(path.path.clone(), paths::describe(&path));
        }
        found.add(resource);
    }
    let schemas = found.finish().into_iter();
    let definitions: Map<String, Value> = schemas
        .map(|(name, schema)| {
            let schema = schemas::definition(&name, schema);
            (name, schema)
        })
        .collect();
    let token = json!({
        "type": "apiKey", "description": "Bearer Token authentication",
        "name": "authorization", "in": "header",
    });
    let mut document = json!({
        "swagger": "2.0", "info": info(), "parameters": paths::parameters(),
        "securityDefinitions": {"BearerToken": token}, "security": [{"BearerToken": []}],
    });
    document["paths"] = paths.into();
    document["definitions"] = definitions.into();
    document
}
