//! The controllers that keep volumes and claims which are in use.
//!
//! Source: `k8s.io/kubernetes/pkg/controller/volume/pvcprotection` and `.../pvprotection`.

use std::sync::Arc;

use lariat_apimachinery::kinds::{Resource, TableId};
use lariat_apimachinery::object::{Object, finalizers, metadata_mut};
use serde_json::Value;

use super::controller::{ControlPlane, Controller};
use super::write::{WriteOutcome, Writer};
use crate::server::Server;
use crate::store::{Change, Range, Stored};
use crate::strategy::{CLAIM_PROTECTION, Part, VOLUME_PROTECTION};

const MANAGER: &str = "kube-controller-manager";

/// Removes the finalizers of deleted claims that no Pod uses, and of deleted volumes that no claim has.
#[derive(Debug)]
pub(super) struct Protection {
    claims: Option<Arc<Resource>>,
    volumes: Option<Arc<Resource>>,
    pods: Option<TableId>,
    /// Whether something that is deleted may be free now.
    is_due: bool,
    /// The number of claims and volumes being deleted that were left at the last look.
    waiting: usize,
}

impl Protection {
    pub(super) fn new(server: &Server) -> Self {
        let catalog = server.kinds.catalog();
        let resource = |plural: &str| catalog.resource("", "v1", plural).cloned();
        Self {
            claims: resource("persistentvolumeclaims"),
            volumes: resource("persistentvolumes"),
            pods: resource("pods").map(|resource| resource.table),
            is_due: false,
            waiting: 0,
        }
    }
}

impl Controller for Protection {
    fn observe(&mut self, _plane: &ControlPlane, change: &Change) {
        let is_of = |resource: &Option<Arc<Resource>>| {
            resource
                .as_ref()
                .is_some_and(|resource| resource.table == change.table)
        };
        let is_deleting = change.event.object.is_deleting();
        self.is_due |= is_deleting && (is_of(&self.claims) || is_of(&self.volumes));
        // Pods change often, and concern nothing here unless something waits for them.
        self.is_due |= self.waiting > 0 && self.pods == Some(change.table);
    }

    fn work(&mut self, plane: &ControlPlane) -> bool {
        if !std::mem::take(&mut self.is_due) {
            return false;
        }
        let writer = Writer {
            server: &plane.server,
            manager: MANAGER,
        };
        // All are checked each time: which Pod or claim held which object is not tracked.
        self.waiting = 0;
        let in_use = |claim: &Stored| {
            self.pods
                .is_some_and(|pods| is_mounted(&plane.server, pods, claim))
        };
        let kinds = [
            (&self.claims, CLAIM_PROTECTION),
            (&self.volumes, VOLUME_PROTECTION),
        ];
        for (resource, finalizer) in kinds {
            let Some(resource) = resource else {
                continue;
            };
            let page = plane.server.store.range(resource.table, &Range::default());
            let objects = page.map(|page| page.objects).unwrap_or_default();
            for stored in objects.iter().filter(|stored| stored.is_deleting()) {
                let object = stored.object();
                if !finalizers(&object).contains(&finalizer) {
                    continue;
                }
                if is_bound(resource, &object) || (resource.namespaced && in_use(stored)) {
                    self.waiting += 1;
                } else {
                    self.is_due |=
                        release(writer, resource, stored, finalizer) == WriteOutcome::Raced;
                }
            }
        }
        self.is_due
    }
}

/// Returns whether a claim has a volume.
fn is_bound(resource: &Resource, object: &Object) -> bool {
    let phase = object
        .get("status")
        .and_then(|status| status["phase"].as_str());
    // Only volumes are held by their phase; a claim is bound until it goes.
    !resource.namespaced && phase == Some("Bound")
}

/// Returns whether a Pod on a node, which has not ended, has a claim.
fn is_mounted(server: &Server, pods: TableId, claim: &Stored) -> bool {
    let range = Range {
        namespace: claim.key().namespace(),
        ..Range::default()
    };
    let page = server.store.range(pods, &range);
    let pods = page.map(|page| page.objects).unwrap_or_default();
    pods.iter().any(|pod| {
        let pod = Value::Object(pod.object());
        let has_ended = matches!(
            pod["status"]["phase"].as_str(),
            Some("Succeeded" | "Failed")
        );
        let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
        let mut names = volumes.map(|volume| &volume["persistentVolumeClaim"]["claimName"]);
        // As pvc_protection_controller.go: a kubelet starts no Pod whose claim is being deleted, so what is not placed
        // does not count.
        let is_placed = pod["spec"]["nodeName"]
            .as_str()
            .is_some_and(|name| !name.is_empty());
        is_placed && !has_ended && names.any(|name| name == claim.key().name())
    })
}

fn release(
    writer: Writer<'_>,
    resource: &Resource,
    stored: &Arc<Stored>,
    finalizer: &str,
) -> WriteOutcome {
    writer.update(resource, Part::Main, stored, |object| {
        let rest: Vec<String> = finalizers(object)
            .into_iter()
            .filter(|name| *name != finalizer)
            .map(str::to_owned)
            .collect();
        metadata_mut(object).insert("finalizers".into(), rest.into());
    })
}
