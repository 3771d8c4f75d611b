//! Computes the `used` of ResourceQuotas.
//!
//! Source: `k8s.io/kubernetes/pkg/controller/resourcequota`.

use std::collections::{BTreeSet, HashMap};

use lariat_apimachinery::kinds::TableId;
use lariat_apimachinery::usage::{Amounts, Quota};

use super::write::Writer;
use crate::control::controller::{ControlPlane, Controller};
use crate::server::Server;
use crate::store::{Change, EventType, Range};
use crate::strategy::{self, Part};

const MANAGER: &str = "kube-controller-manager";

/// Writes the usage into the status of quotas.
#[derive(Debug)]
pub(super) struct Quotas {
    table: TableId,
    /// The names of the quotas of each namespace.
    known: HashMap<String, BTreeSet<String>>,
    /// Namespaces to look at.
    queue: BTreeSet<String>,
}

impl Quotas {
    pub(super) fn new(server: &Server) -> Self {
        Self {
            table: server.store.table("resourcequotas"),
            known: HashMap::new(),
            queue: BTreeSet::new(),
        }
    }

    /// Counts the usage of a namespace again.
    fn count(&self, plane: &ControlPlane, namespace: &str) {
        let server = &plane.server;
        let catalog = server.kinds.catalog();
        let Some(quotas) = catalog.of_table(self.table) else {
            return;
        };
        let range = Range {
            namespace: Some(namespace),
            ..Range::default()
        };
        let page = server.store.range(self.table, &range);
        let writer = Writer {
            server,
            manager: MANAGER,
        };
        for stored in page.map(|page| page.objects).unwrap_or_default() {
            let object = stored.object();
            let quota = Quota::read(&object, server.clock.timestamp().into());
            let mut seen = BTreeSet::new();
            let mut used = Amounts::default();
            for resource in catalog.all() {
                // Several versions have one table, and their objects are counted once.
                if resource.namespaced && quota.concerns(resource) && seen.insert(resource.table) {
                    used.add(&strategy::used(server, &quota, resource, namespace));
                }
            }
            let status = quota.status(&object, &used);
            if object.get("status") != Some(&status) {
                // A lost race is not repeated: the change that won leads to the next count.
                writer.update(quotas, Part::Status, &stored, |object| {
                    object.insert("status".into(), status);
                });
            }
        }
    }
}

impl Controller for Quotas {
    fn observe(&mut self, _: &ControlPlane, change: &Change) {
        let key = change.event.object.key();
        let Some(namespace) = key.namespace() else {
            return;
        };
        if change.table == self.table {
            let names = self.known.entry(namespace.to_owned()).or_default();
            match change.event.event {
                EventType::Deleted => names.remove(key.name()),
                _ => names.insert(key.name().to_owned()),
            };
            if names.is_empty() {
                self.known.remove(namespace);
            }
        }
        // Most namespaces have no quota, and their changes cost nothing.
        if self.known.contains_key(namespace) {
            self.queue.insert(namespace.to_owned());
        }
    }

    fn work(&mut self, plane: &ControlPlane) -> bool {
        for namespace in std::mem::take(&mut self.queue) {
            self.count(plane, &namespace);
        }
        false
    }
}
