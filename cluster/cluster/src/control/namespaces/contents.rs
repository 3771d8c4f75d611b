//! The objects of a namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use lariat_apimachinery::kinds::{Catalog, Resource, qualified};

use crate::control::controller::ControlPlane;
use crate::control::metadata::Metadata;
use crate::control::write::Writer;
use crate::store::{Range, Stored};
use crate::verbs::{Deletion, Propagation};

pub(super) const MANAGER: &str = "kube-controller-manager";

/// The number of objects that are deleted before others get their turn.
const BATCH: usize = 512;

/// The number of objects that are read at a time.
const PAGE: usize = BATCH;

/// The objects left in a namespace once all that no finalizer holds are deleted.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// The number of objects left of each resource, by `plural.group`.
    pub(super) resources: BTreeMap<String, usize>,
    /// The number of objects that each finalizer holds.
    pub(super) finalizers: BTreeMap<String, usize>,
    /// Not everything was looked at.
    pub(super) is_cut_short: bool,
    deleted: usize,
}

impl Contents {
    /// Deletes the objects of a namespace: Pods first, and the rest when they are gone.
    pub(super) fn delete(plane: &ControlPlane, catalog: &Catalog, namespace: &str) -> Self {
        let mut contents = Self::default();
        let is_pods = |resource: &Resource| resource.group.is_empty() && resource.plural == "pods";
        let (pods, others): (Vec<_>, Vec<_>) = catalog
            .each_table()
            .filter(|resource| resource.namespaced)
            .partition(|resource| is_pods(resource));
        // As the feature OrderedNamespaceDeletion: a Pod must not run on without the policies that restrict it.
        for resources in [pods, others] {
            for resource in resources {
                contents.delete_all(plane, resource, namespace);
            }
            if contents.remaining() > 0 || contents.is_cut_short {
                break;
            }
        }
        contents
    }

    pub(super) fn remaining(&self) -> usize {
        self.resources.values().sum()
    }

    fn delete_all(&mut self, plane: &ControlPlane, resource: &Resource, namespace: &str) {
        let mut start = String::new();
        loop {
            let some = page(plane, resource, namespace, &start);
            for stored in some.iter().filter(|stored| !stored.is_deleting()) {
                if self.deleted == BATCH {
                    self.is_cut_short = true;
                    return;
                }
                self.deleted += 1;
                delete(plane, resource, stored);
            }
            match some.last().filter(|_| some.len() == PAGE) {
                // The first key behind the last.
                Some(last) => start = format!("{}\0", last.key().as_str()),
                None => break,
            }
        }
        // Read again: some objects are only marked, and wait for finalizers or for their grace period.
        let left = everything(plane, resource, namespace);
        if left.is_empty() {
            return;
        }
        // The group comes behind a dot even where it is empty.
        let name = if resource.group.is_empty() {
            format!("{}.", resource.plural)
        } else {
            qualified(&resource.plural, &resource.group)
        };
        self.resources.insert(name, left.len());
        for stored in left {
            for finalizer in Metadata::of(&stored).finalizers {
                *self.finalizers.entry(finalizer).or_default() += 1;
            }
        }
    }
}

/// Reads some of the objects in a namespace.
///
/// Reading all of them for each batch would take quadratic time.
fn page(
    plane: &ControlPlane,
    resource: &Resource,
    namespace: &str,
    start: &str,
) -> Vec<Arc<Stored>> {
    let range = Range {
        namespace: Some(namespace),
        start: Some(start),
        limit: Some(PAGE),
        uncounted: true,
        ..Range::default()
    };
    let page = plane.server.store.range(resource.table, &range);
    page.map_or_else(|_| Vec::new(), |page| page.objects)
}

fn everything(plane: &ControlPlane, resource: &Resource, namespace: &str) -> Vec<Arc<Stored>> {
    let range = Range {
        namespace: Some(namespace),
        ..Range::default()
    };
    let page = plane.server.store.range(resource.table, &range);
    page.map_or_else(|_| Vec::new(), |page| page.objects)
}

fn delete(plane: &ControlPlane, resource: &Resource, stored: &Stored) {
    let writer = Writer {
        server: &plane.server,
        manager: MANAGER,
    };
    let deletion = Deletion {
        propagation: Some(Propagation::Background),
        ..Deletion::default()
    };
    writer.delete_whatever(resource, stored, deletion);
}
