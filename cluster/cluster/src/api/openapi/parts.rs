//! The parts of a document about a resource: its paths, and the schemas they refer to.

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::schema::describe::Describer;
use serde_json::{Map, Value};

use super::operation::Path;
use super::operations;
use super::{custom, fixed};
use crate::api::discovery::subresources;
use crate::descriptions;

/// The types that operations of all stored resources refer to.
const OF_STORED: [&str; 3] = ["meta.v1.DeleteOptions", "meta.v1.Patch", "meta.v1.Status"];
/// The types that only those of built-in resources refer to.
const OF_BUILTIN: &str = "meta.v1.APIResourceList";
const OF_BUILTIN_STORED: &str = "meta.v1.WatchEvent";

/// Returns the paths of a resource, and that of its version unless it is custom.
pub(super) fn paths_of(resource: &Resource) -> Vec<Path> {
    let mut paths = operations::paths(resource, &subresources(resource));
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
    /// One of the resources is stored, unlike reviews.
    has_stored: bool,
}

impl SchemasOf {
    pub(super) fn add(&mut self, resource: &Resource) {
        for part in subresources(resource) {
            if let (Some((group, version)), Some(kind)) = (part.group_version, part.kind) {
                self.builtin.kind(&format!("{group}/{version}"), kind);
            }
        }
        self.has_stored |= !resource.rules.review;
        if resource.rules.custom {
            custom::describe(resource, &mut self.custom);
            self.builtin.types(&custom::REFERENCES);
            return;
        }
        self.builtin.types(&[OF_BUILTIN]);
        self.builtin.kind(&resource.api_version(), &resource.kind);
        if !resource.rules.review {
            self.builtin.types(&[OF_BUILTIN_STORED]);
            self.builtin
                .kind(&resource.api_version(), &resource.list_kind);
        }
    }

    /// Returns all schemas with their descriptions.
    pub(super) fn finish(mut self) -> Map<String, Value> {
        if self.has_stored {
            self.builtin.types(&OF_STORED);
        }
        let mut schemas = self.builtin.finish();
        descriptions::add(&mut schemas);
        schemas.extend(self.custom);
        schemas
    }
}
