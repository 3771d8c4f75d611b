//! What documents have of a resource: its paths, and the schemas they refer to.

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::schema::describe::Describer;
use serde_json::{Map, Value};

use super::operations::{self, Path};
use super::{custom, fixed};
use crate::api::discovery::subresources;
use crate::descriptions;

/// The types that operations of all resources refer to.
const OF_ALL: [&str; 3] = ["meta.v1.DeleteOptions", "meta.v1.Patch", "meta.v1.Status"];
/// The types that only those of built-in resources refer to.
const OF_BUILTIN: [&str; 2] = ["meta.v1.APIResourceList", "meta.v1.WatchEvent"];

/// Returns the paths of a resource, and that of its version unless it is custom.
pub(super) fn paths_of(resource: &Resource, with_watches: bool) -> Vec<Path> {
    let mut paths = operations::paths(resource, &subresources(resource), with_watches);
    if !resource.rules.custom {
        paths.push(fixed::of_version(&resource.group, &resource.version));
    }
    paths
}

/// The schemas that the operations of resources refer to.
#[derive(Debug, Default)]
pub(super) struct SchemasOf {
    pub(super) builtin: Describer,
    custom: Map<String, Value>,
}

impl SchemasOf {
    pub(super) fn add(&mut self, resource: &Resource) {
        for part in subresources(resource) {
            if let (Some((group, version)), Some(kind)) = (part.group_version, part.kind) {
                self.builtin.kind(&format!("{group}/{version}"), kind);
            }
        }
        if resource.rules.custom {
            custom::describe(resource, &mut self.custom);
            self.builtin.types(&custom::REFERENCES);
        } else {
            self.builtin.types(&OF_BUILTIN);
            for kind in [&resource.kind, &resource.list_kind] {
                self.builtin.kind(&resource.api_version(), kind);
            }
        }
    }

    /// Returns all schemas with their descriptions.
    pub(super) fn finish(mut self) -> Map<String, Value> {
        self.builtin.types(&OF_ALL);
        let mut schemas = self.builtin.finish();
        descriptions::add(&mut schemas);
        schemas.extend(self.custom);
        schemas
    }
}
