//! The objects that a real cluster puts into every namespace.
//!
//! Source: `serviceaccounts_controller.go` in `k8s.io/kubernetes/pkg/controller/serviceaccount`, and
//! `k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher`.

use std::collections::BTreeSet;

use lariat_apimachinery::kinds::TableId;
use serde_json::{Value, json};

use super::write::Writer;
use crate::control::controller::{ControlPlane, Controller};
use crate::server::Server;
use crate::store::{Change, EventType};

const MANAGER: &str = "kube-controller-manager";
const ROOT_CA: &str = "kube-root-ca.crt";
const ABOUT: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using \
    internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
    guaranteed across distributions of Kubernetes clusters.";

/// Creates the default ServiceAccount and the bundle of authorities.
#[derive(Debug)]
pub(super) struct Defaults {
    /// The tables and names of these objects.
    tables: Vec<(TableId, &'static str)>,
    /// Namespaces to look at.
    queue: BTreeSet<String>,
}

impl Defaults {
    pub(super) fn new(server: &Server) -> Self {
        let catalog = server.kinds.catalog();
        let kinds = [("serviceaccounts", "default"), ("configmaps", ROOT_CA)];
        let table = |(plural, name)| Some((catalog.resource("", "v1", plural)?.table, name));
        Self {
            tables: kinds.into_iter().filter_map(table).collect(),
            queue: BTreeSet::new(),
        }
    }
}

impl Controller for Defaults {
    fn observe(&mut self, plane: &ControlPlane, change: &Change) {
        let (event, key) = (&change.event, change.event.object.key());
        if change.table == plane.server.kinds.namespaces {
            if event.event == EventType::Added {
                self.queue.insert(key.name().to_owned());
            }
        } else if event.event == EventType::Deleted
            && self.tables.contains(&(change.table, key.name()))
            && let Some(namespace) = key.namespace()
        {
            // As ServiceAccountsController and rootcacertpublisher: what is deleted comes back.
            self.queue.insert(namespace.to_owned());
        }
    }

    fn work(&mut self, plane: &ControlPlane) -> bool {
        for namespace in std::mem::take(&mut self.queue) {
            for (plural, object) in objects() {
                create(plane, &namespace, plural, &object);
            }
        }
        false
    }
}

fn objects() -> [(&'static str, Value); 2] {
    [
        (
            "serviceaccounts",
            json!({"kind": "ServiceAccount", "apiVersion": "v1", "metadata": {"name": "default"}}),
        ),
        (
            "configmaps",
            json!({
                "kind": "ConfigMap", "apiVersion": "v1",
                "metadata": {
                    "name": ROOT_CA,
                    "annotations": {"kubernetes.io/description": ABOUT},
                },
                "data": {"ca.crt": ""},
            }),
        ),
    ]
}

/// Creates an object unless it is there, or the namespace is going.
fn create(plane: &ControlPlane, namespace: &str, plural: &str, object: &Value) {
    let catalog = plane.server.kinds.catalog();
    let Some(resource) = catalog.resource("", "v1", plural) else {
        return;
    };
    let writer = Writer {
        server: &plane.server,
        manager: MANAGER,
    };
    if let Err(error) = writer.create(resource, Some(namespace), object) {
        // It is there already as a rule, or its namespace is going.
        tracing::trace!(namespace, plural, ?error, "a default object is not created");
    }
}
