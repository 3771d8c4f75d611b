//! The namespace lifecycle: a namespace that is deleted takes everything in it along.

use std::sync::Arc;

use serde_json::Value;

use crate::kinds::{Catalog, Resource};
use crate::server::Server;
use crate::store::{Object, Range, Stored};
use crate::verbs::{self, Part};

/// Empties terminating namespaces, and lets go of those that are empty.
pub(super) fn reconcile(server: &Server) {
    let catalog = server.kinds.catalog();
    let Some(namespaces) = catalog.resource("", "v1", "namespaces") else {
        return;
    };
    for namespace in everything(server, namespaces, None) {
        if namespace.is_deleting() && is_empty(server, &catalog, namespace.key().name()) {
            finalize(server, namespaces, &namespace);
        }
    }
}

/// Deletes what is in a namespace; tells whether nothing was.
fn is_empty(server: &Server, catalog: &Catalog, namespace: &str) -> bool {
    let mut empty = true;
    for resource in catalog.each_table().filter(|resource| resource.namespaced) {
        for stored in everything(server, resource, Some(namespace)) {
            empty = false;
            if !stored.is_deleting() {
                verbs::remove(server, resource, &stored, None);
            }
        }
    }
    empty
}

fn everything(server: &Server, resource: &Resource, namespace: Option<&str>) -> Vec<Arc<Stored>> {
    let range = Range {
        namespace,
        ..Range::default()
    };
    server
        .store
        .range(resource.table, &range)
        .map_or_else(|_| Vec::new(), |page| page.objects)
}

/// Takes away the finalizer in the namespace's spec, with which the namespace goes.
fn finalize(server: &Server, namespaces: &Resource, stored: &Arc<Stored>) {
    let old = stored.object();
    let mut new: Object = old.clone();
    if let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("finalizers");
    }
    if let Ok(replacement) = verbs::replacement(namespaces, Part::Finalize, &old, new) {
        // If somebody else was faster, the next look sees it.
        let _ = verbs::replace(server, namespaces, stored, &replacement);
    }
}
