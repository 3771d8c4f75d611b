//! Digests by which clients ask whether a document has changed.
//!
//! They are computed from what documents are made of: documents are large, and the index names the digests of all.

use std::sync::Arc;

use lariat_apimachinery::kinds::Resource;
use serde_json::{Value, json};

use crate::api::etag;
use crate::descriptions;

/// Returns the digest of a document that is always the same.
pub(super) fn of_path(path: &str) -> String {
    of(&json!(path))
}

/// Returns the digest of a document about some resources.
pub(super) fn of_resources<'a>(resources: impl Iterator<Item = &'a Arc<Resource>>) -> String {
    of(&resources.map(|resource| parts(resource)).collect())
}

/// Returns the parts of a resource that its document depends on.
fn parts(resource: &Resource) -> Value {
    let rules = &resource.rules;
    json!([
        [
            resource.api_version(),
            resource.kind,
            resource.list_kind,
            resource.plural
        ],
        [
            resource.namespaced,
            rules.custom,
            rules.status,
            rules.scale.is_some()
        ],
        rules.field_labels,
        resource.schema.as_ref().map(|schema| schema.raw()),
    ])
}

fn of(parts: &Value) -> String {
    // Another version of this program may describe the same resources in other words.
    let program = (env!("CARGO_PKG_VERSION"), descriptions::PRESENT);
    etag::digest(json!([program, parts]).to_string().as_bytes())
}
