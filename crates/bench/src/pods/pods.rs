//! Pods as API servers have them.

use fastrand::Rng;
use serde_json::{Value, json};

use super::plan::{Plan, hex, seed};
use super::{managed, spec, status};

/// The service account of pods on a genuine server.
pub(crate) const SERVICE_ACCOUNT: &str = "lariat-bench";

/// One pod, in the parts in which it is written.
#[derive(Debug)]
pub(crate) struct Pod {
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// What is created.
    pub(crate) object: Value,
    /// What its kubelet reports.
    pub(crate) status: Value,
    /// `metadata.managedFields` once both are written.
    ///
    /// The entries that a pod has in a cluster, by its controller and its kubelet.
    ///
    /// The server's own would name one manager, the one that created the pod with all fields.
    pub(crate) managed: Value,
}

/// Returns the pod of a number.
pub(crate) fn pod(index: usize) -> Pod {
    // The golden ratio, so that neighbouring numbers have unlike seeds, and none equals that of a deployment.
    let mut rng = Rng::with_seed(index as u64 ^ 0x9e37_79b9_7f4a_7c15);
    let plan = Plan::new(index, &mut rng);
    let metadata = metadata(&plan, &mut rng);
    Pod {
        namespace: plan.namespace.clone(),
        name: plan.name.clone(),
        object: json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec::spec(&plan, &mut rng),
        }),
        status: status::status(&plan, &mut rng),
        managed: managed::fields(&plan),
    }
}

impl Pod {
    /// Moves the pod to a namespace of a genuine server.
    ///
    /// It loses its owner and node, which do not exist there, and its scheduler, so that no controller acts on it.
    pub(crate) fn move_to(&mut self, namespace: &str) {
        self.namespace = namespace.to_owned();
        if let Some(metadata) = self.object["metadata"].as_object_mut() {
            metadata.remove("ownerReferences");
            metadata.insert("namespace".to_owned(), namespace.into());
        }
        if let Some(spec) = self.object["spec"].as_object_mut() {
            spec.remove("nodeName");
            spec.insert("serviceAccountName".to_owned(), SERVICE_ACCOUNT.into());
            spec.insert("schedulerName".to_owned(), "lariat-bench".into());
        }
    }
}

/// Returns the number of the pod with a name.
pub(crate) fn index(name: &str) -> usize {
    let (_, suffix) = name.rsplit_once('-').unwrap_or_default();
    usize::from_str_radix(suffix, 36).unwrap_or(usize::MAX)
}

fn metadata(plan: &Plan, rng: &mut Rng) -> Value {
    let Plan { app, hash, ip, .. } = plan;
    let mut labels = json!({
        "app": app, "app.kubernetes.io/version": plan.image_tag, "pod-template-hash": hash, "team": plan.team,
        "tier": if plan.env.len() > 1 { "backend" } else { "frontend" },
    });
    if plan.canary {
        labels["canary"] = "true".into();
    }
    json!({
        "name": plan.name, "generateName": format!("{app}-{hash}-"), "namespace": plan.namespace,
        "labels": labels,
        "annotations": {
            // The same for all pods of a template, unlike the annotations of the network plugin below.
            "checksum/config": hex(&mut Rng::with_seed(seed(hash)), 32),
            "cni.projectcalico.org/containerID": hex(rng, 64),
            "cni.projectcalico.org/podIP": format!("{ip}/32"),
        },
        "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{app}-{hash}"),
            "uid": plan.owner, "controller": true, "blockOwnerDeletion": true,
        }],
    })
}
