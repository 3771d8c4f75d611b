//! The registry of all served resources.

use std::sync::Arc;

use parking_lot::RwLock;

use super::builtin;
use super::catalog::Catalog;
use super::resource::{Resource, TableId, qualified};

/// The registry of all served resources, built-in and from CRDs.
///
/// A request takes the current catalog and uses it until its end, so a CRD that changes meanwhile does not affect it.
///
/// ```
/// use lariat_apimachinery::kinds::{Kinds, TableId};
///
/// // A server has one table for each resource; here one is enough.
/// let catalog = Kinds::new(|_| TableId(0)).catalog();
/// let deployments = catalog.resource("apps", "v1", "deployments").expect("it is built in");
/// assert_eq!(deployments.kind, "Deployment");
/// assert!(deployments.namespaced);
/// ```
#[derive(Debug)]
pub struct Kinds {
    catalog: RwLock<Arc<Catalog>>,
    /// The table of Namespaces.
    pub namespaces: TableId,
    /// The table of CustomResourceDefinitions.
    pub definitions: TableId,
}

impl Kinds {
    /// Registers the built-in kinds; `table_of` returns the table of a resource.
    pub fn new(mut table_of: impl FnMut(&str) -> TableId) -> Self {
        let mut catalog = Catalog::default();
        for row in builtin::rows() {
            // Events are one store, whatever the group they are read and written in.
            let name = match row.plural {
                "events" => "events".to_owned(),
                plural => qualified(plural, row.group),
            };
            let table = table_of(&name);
            catalog.add(Arc::new(row.resource(table)));
        }
        Self {
            catalog: RwLock::new(Arc::new(catalog)),
            namespaces: table_of("namespaces"),
            definitions: table_of("customresourcedefinitions.apiextensions.k8s.io"),
        }
    }

    /// Returns the current catalog.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read())
    }

    /// Replaces the resources of one table, in all versions.
    ///
    /// An empty list stops serving the kind. Requests in progress keep the previous catalog.
    pub fn serve(&self, table: TableId, resources: Vec<Arc<Resource>>) {
        let mut catalog = self.catalog.write();
        // Copied, so that readers keep what they have; resources are shared, so the copy is small.
        let mut next = Catalog::clone(&catalog);
        next.remove(table);
        for resource in resources {
            next.add(resource);
        }
        *catalog = Arc::new(next);
    }
}
