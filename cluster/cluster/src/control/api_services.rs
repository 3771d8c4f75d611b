//! The controller of the API services of CRDs.
//!
//! Source: `k8s.io/kube-aggregator/pkg/controllers/autoregister`, and
//! `k8s.io/kubernetes/pkg/controlplane/controller/crdregistration`.

use std::collections::BTreeMap;
use std::sync::Arc;

use lariat_apimachinery::kinds::Resource;
use lariat_apimachinery::object::Object;
use serde_json::Value;

use super::controller::{ControlPlane, Controller};
use super::write::{WriteOutcome, Writer};
use crate::bootstrap;
use crate::server::Server;
use crate::store::{Change, Range, Stored};
use crate::strategy::Part;
use crate::verbs::Deletion;

const MANAGER: &str = "kube-apiserver";
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// Keeps an API service for each group version that a CRD defines.
#[derive(Debug)]
pub(super) struct ApiServices {
    resource: Option<Arc<Resource>>,
    /// Whether a CRD or an API service has changed.
    is_due: bool,
}

impl ApiServices {
    pub(super) fn new(server: &Server) -> Self {
        let catalog = server.kinds.catalog();
        let group = "apiregistration.k8s.io";
        Self {
            resource: catalog.resource(group, "v1", "apiservices").cloned(),
            is_due: false,
        }
    }
}

impl Controller for ApiServices {
    fn observe(&mut self, plane: &ControlPlane, change: &Change) {
        let own = self.resource.as_ref().map(|resource| resource.table);
        self.is_due |= change.table == plane.server.kinds.definitions || own == Some(change.table);
    }

    fn work(&mut self, plane: &ControlPlane) -> bool {
        if let Some(resource) = self.resource.as_ref().filter(|_| self.is_due) {
            let writer = Writer {
                server: &plane.server,
                manager: MANAGER,
            };
            self.is_due = reconcile(writer, resource);
        }
        self.is_due
    }
}

/// Creates, updates and deletes APIServices; returns true on a conflict.
fn reconcile(writer: Writer<'_>, resource: &Resource) -> bool {
    let mut wanted = wanted(writer.server);
    let mut raced = false;
    let page = writer.server.store.range(resource.table, &Range::default());
    for stored in page.map(|page| page.objects).unwrap_or_default() {
        // What is left in `wanted` after the loop has no API service yet.
        let service = wanted.remove(stored.key().name());
        // Those of the server itself are looked at when it starts, those of users never.
        if is_managed(&stored) {
            raced |= settle(writer, resource, &stored, service) == WriteOutcome::Raced;
        }
    }
    for service in wanted.into_values() {
        if let Err(error) = writer.create(resource, None, &service) {
            tracing::warn!(error = error.message(), "cannot create an API service");
        }
    }
    raced
}

fn settle(
    writer: Writer<'_>,
    resource: &Resource,
    stored: &Arc<Stored>,
    service: Option<Value>,
) -> WriteOutcome {
    let Some(service) = service else {
        return writer.delete(resource, stored, Deletion::default());
    };
    let spec = &service["spec"];
    if stored.object().get("spec") == Some(spec) {
        return WriteOutcome::Done;
    }
    writer.update(resource, Part::Main, stored, |object| {
        object.insert("spec".into(), spec.clone());
    })
}

fn is_managed(stored: &Stored) -> bool {
    stored.labels().get(MANAGED) == Some("true")
}

/// Returns the API services that the CRDs ask for, by their names.
fn wanted(server: &Server) -> BTreeMap<String, Value> {
    let page = server
        .store
        .range(server.kinds.definitions, &Range::default());
    let definitions = page.map(|page| page.objects).unwrap_or_default();
    let definitions: Vec<Object> = definitions.iter().map(|stored| stored.object()).collect();
    let mut wanted = BTreeMap::new();
    for spec in definitions
        .iter()
        .filter_map(|definition| definition.get("spec"))
    {
        let group = spec["group"].as_str().unwrap_or_default();
        let versions = spec["versions"].as_array().into_iter().flatten();
        for version in versions.filter(|version| version["served"] == true) {
            let name = version["name"].as_str().unwrap_or_default();
            // A CRD in a group version of the server's own does not take over its API service.
            if !bootstrap::is_built_in(group, name) {
                let service = bootstrap::api_service(group, name);
                wanted.insert(format!("{name}.{group}"), service);
            }
        }
    }
    wanted
}
