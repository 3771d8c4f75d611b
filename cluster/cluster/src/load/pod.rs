//! Running pods.

use serde_json::{Value, json};

use super::plan::{App, CONDITIONS, Instance};
use super::{managed, template};

pub(super) fn pod(app: &App, pod: &Instance) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata(app, pod), "spec": spec(app, pod),
        "status": status(app, pod),
    })
}

fn metadata(app: &App, pod: &Instance) -> Value {
    json!({
        "name": pod.name, "generateName": format!("{}-", app.replica_set()), "namespace": app.namespace,
        "uid": pod.uid, "generation": 1, "creationTimestamp": pod.times[0],
        "labels": template::labels(app, true),
        "annotations": {
            "checksum/config": app.checksum, "cni.projectcalico.org/containerID": pod.ids[2],
            "cni.projectcalico.org/podIP": format!("{}/32", pod.address),
        },
        "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app.replica_set(),
            "uid": app.replica_set_uid, "controller": true, "blockOwnerDeletion": true,
        }],
        "managedFields": managed::pod(app, pod),
    })
}

fn spec(app: &App, pod: &Instance) -> Value {
    let mut spec = template::template(app, true)["spec"].take();
    for container in spec["containers"].as_array_mut().into_iter().flatten() {
        container["volumeMounts"] = json!([{
            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": pod.volume, "readOnly": true,
        }]);
    }
    for (name, value) in [
        ("enableServiceLinks", json!(true)),
        ("nodeName", json!(pod.node)),
        ("preemptionPolicy", json!("PreemptLowerPriority")),
        ("priority", json!(0)),
        (
            "tolerations",
            json!([toleration("not-ready"), toleration("unreachable")]),
        ),
        ("volumes", json!([volume(&pod.volume)])),
    ] {
        spec[name] = value;
    }
    spec
}

fn volume(name: &str) -> Value {
    // 420 is 0644 in octal, and 3607 is Go's WarnOnlyBoundTokenExpirationSeconds, an hour and a bit.
    json!({"name": name, "projected": {"defaultMode": 420, "sources": [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]}})
}

fn toleration(what: &str) -> Value {
    json!({
        "effect": "NoExecute", "key": format!("node.kubernetes.io/{what}"), "operator": "Exists",
        "tolerationSeconds": 300,
    })
}

fn status(app: &App, pod: &Instance) -> Value {
    let conditions = CONDITIONS.map(|(name, after)| {
        json!({
            "type": name, "status": "True", "lastProbeTime": null,
            "lastTransitionTime": pod.times[after],
        })
    });
    let containers: Vec<Value> = (0..=usize::from(app.sidecar))
        .map(|number| container(app, pod, number))
        .collect();
    json!({
        "observedGeneration": 1, "phase": "Running", "qosClass": "Burstable", "conditions": conditions,
        "containerStatuses": containers, "hostIP": pod.host, "hostIPs": [{"ip": pod.host}],
        "podIP": pod.address, "podIPs": [{"ip": pod.address}], "startTime": pod.times[0],
    })
}

fn container(app: &App, pod: &Instance, number: usize) -> Value {
    let image = template::image(app, number);
    let (repository, _) = image.rsplit_once(':').unwrap_or_default();
    let image_id = format!("{repository}@sha256:{}", app.digest);
    json!({
        "name": template::container_name(app, number), "image": image,
        "imageID": image_id,
        "containerID": format!("containerd://{}", pod.ids[number]),
        "ready": true, "started": true, "restartCount": app.restarts, "lastState": {},
        "state": {"running": {"startedAt": pod.times[1]}},
    })
}
