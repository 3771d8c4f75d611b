//! Claims for volumes: those of StatefulSets, and the volumes that all of them get.
//!
//! Source: `k8s.io/kubernetes/pkg/controller/volume/persistentvolume`, with one provisioner for all
//! storage classes. It binds no volumes that users create.

use serde_json::{Value, json};

use super::events;
use super::kind::Kind;
use super::reconcile::{FAILED_CREATE, Reconcile, Requeue};
use super::refusal::Refusal;
use crate::control::write::WriteOutcome;

const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND: &str = "pv.kubernetes.io/bound-by-controller";
const PROVISIONER: &str = "volumes.lariat.dev";

/// Creates the claims of a StatefulSet's Pod, and adds them to its volumes.
///
/// Returns the first refusal.
pub(super) fn claim(set: &Reconcile<'_>, pod: &mut Value, ordinal: i64) -> Result<(), Refusal> {
    let mut claimed = Ok(());
    let templates = set.at("/spec/volumeClaimTemplates").as_array();
    for template in templates.into_iter().flatten() {
        let volume = template["metadata"]["name"].as_str().unwrap_or_default();
        let name = format!("{volume}-{}-{ordinal}", set.name());
        if set.find(Kind::Claim, &name).is_none() {
            let mut claim = json!({
                "kind": "PersistentVolumeClaim", "apiVersion": "v1",
                "metadata": {"name": name, "labels": set.at("/spec/selector/matchLabels")},
                "spec": template["spec"],
            });
            let labels = template["metadata"]["labels"].as_object();
            for (label, value) in labels.into_iter().flatten() {
                claim["metadata"]["labels"][label] = value.clone();
            }
            if !template["metadata"]["annotations"].is_null() {
                claim["metadata"]["annotations"] = template["metadata"]["annotations"].clone();
            }
            let created = create(set, &claim, pod);
            claimed = claimed.and(created);
        }
        let mount = json!({"name": volume, "persistentVolumeClaim": {"claimName": name}});
        match pod["spec"]["volumes"].as_array_mut() {
            Some(volumes) => {
                // As updateStorage: the claim takes the place of a volume of the template that has its name.
                volumes.retain(|each| each["name"] != volume);
                volumes.push(mount);
            }
            None => pod["spec"]["volumes"] = json!([mount]),
        }
    }
    claimed
}

/// Creates a claim of a StatefulSet's Pod; records an event if it is refused.
// `createPersistentVolumeClaims` and `recordClaimEvent` in stateful_pod_control.go.
fn create(set: &Reconcile<'_>, claim: &Value, pod: &Value) -> Result<(), Refusal> {
    let text = |object: &Value| {
        object["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let (name, pod) = (text(claim), text(pod));
    set.try_create(Kind::Claim, claim).map_err(|refusal| {
        let reason = &refusal.message;
        if !refusal.is_taken {
            let owner = set.name();
            let message = format!(
                "Create Claim {name} for Pod {pod} in StatefulSet {owner} failed error: {reason}"
            );
            events::warn(set, FAILED_CREATE, &message);
        }
        Refusal {
            message: format!("failed to create PVC {name}: {reason}"),
            is_taken: false,
            ..refusal
        }
    })
}

/// Returns the name of the volume that a claim gets.
pub(super) fn volume_name(uid: &str) -> String {
    format!("pvc-{uid}")
}

/// Creates a volume for a claim, and binds the two.
pub(super) fn bind(claim: &Reconcile<'_>) -> Requeue {
    let name = volume_name(claim.stored.uid());
    let chosen = claim.text("/spec/volumeName");
    let waits = claim.at("/spec/storageClassName") == "" || !(chosen.is_empty() || chosen == name);
    // A claim without a class waits for a volume that a user creates.
    if claim.stored.is_deleting() || claim.text("/status/phase") == "Bound" || waits {
        return Requeue::OnChange;
    }
    let Some(volume) = claim.find(Kind::Volume, &name) else {
        return if claim.create(Kind::Volume, &volume(claim, &name)) {
            Requeue::Now
        } else {
            Requeue::OnChange
        };
    };
    // In the order of `bind` in pv_controller.go: the volume, then the claim, then the status of the claim.
    if volume.text("/status/phase") != "Bound" {
        let written =
            claim.edit_status(&volume, |volume| volume["status"]["phase"] = "Bound".into());
        if written != WriteOutcome::Done {
            return Requeue::from(written);
        }
    }
    if chosen.is_empty() {
        let part = crate::strategy::Part::Main;
        let writer = claim.writer();
        return Requeue::from(
            writer.update(&claim.resource, part, &claim.stored, |object| {
                let mut bound = Value::Object(std::mem::take(object));
                bound["spec"]["volumeName"] = name.into();
                super::template::annotate(&mut bound, BIND_COMPLETED, "yes");
                super::template::annotate(&mut bound, BOUND, "yes");
                if let Value::Object(bound) = bound {
                    *object = bound;
                }
            }),
        );
    }
    Requeue::from(claim.write_status(json!({
        "phase": "Bound", "accessModes": claim.at("/spec/accessModes"),
        "capacity": claim.at("/spec/resources/requests"),
    })))
}

fn volume(claim: &Reconcile<'_>, name: &str) -> Value {
    let mut spec = json!({
        "capacity": claim.at("/spec/resources/requests"),
        "accessModes": claim.at("/spec/accessModes"),
        "persistentVolumeReclaimPolicy": "Delete",
        "volumeMode": claim.at("/spec/volumeMode"),
        "csi": {"driver": PROVISIONER, "volumeHandle": name},
        "claimRef": {
            "kind": "PersistentVolumeClaim", "apiVersion": "v1", "name": claim.name(),
            "namespace": claim.stored.key().namespace(), "uid": claim.stored.uid(),
            "resourceVersion": claim.stored.revision().to_string(),
        },
    });
    if let Some(class) = claim.at("/spec/storageClassName").as_str() {
        spec["storageClassName"] = class.into();
    }
    json!({
        "kind": "PersistentVolume", "apiVersion": "v1",
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": spec,
    })
}

/// Deletes a volume whose claim is gone.
pub(super) fn reclaim(volume: &Reconcile<'_>) -> Requeue {
    let uid = volume.text("/spec/claimRef/uid");
    // The name is made of a uid, so volumes that users create never match.
    let is_ours = volume.name() == volume_name(uid) && !volume.stored.is_deleting();
    let is_claimed = volume.plane.graph.node(uid).is_some();
    if is_ours && !is_claimed && volume.text("/status/phase") == "Bound" {
        Requeue::from(volume.write_status(json!({"phase": "Released"})))
    } else if is_ours && !is_claimed {
        Requeue::from(volume.delete_self())
    } else {
        Requeue::OnChange
    }
}
