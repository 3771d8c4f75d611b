//! Deployments and ReplicaSets that are all ready.

use serde_json::{Value, json};

use super::plan::App;
use super::{managed, names, template};

pub(super) fn deployment(app: &App) -> Value {
    let conditions = [
        condition(
            app,
            "Available",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        ),
        condition(
            app,
            "Progressing",
            "NewReplicaSetAvailable",
            &format!(
                "ReplicaSet \"{}\" has successfully progressed.",
                app.replica_set()
            ),
        ),
    ];
    let mut status = status(app);
    status["updatedReplicas"] = app.replicas.into();
    status["conditions"] = conditions.into();
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": app.name, "namespace": app.namespace, "uid": app.uid, "generation": 1,
            "creationTimestamp": names::time(app.created), "labels": template::labels(app, false),
            "annotations": {"deployment.kubernetes.io/revision": "1"},
            "managedFields": managed::workload(app, "helm"),
        },
        "spec": {
            "replicas": app.replicas, "selector": {"matchLabels": {"app": app.name}},
            "template": template::template(app, false),
            "strategy": {
                "type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
            },
            "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
        },
        "status": status,
    })
}

pub(super) fn replica_set(app: &App) -> Value {
    let labels = template::labels(app, true);
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": app.replica_set(), "namespace": app.namespace, "uid": app.replica_set_uid,
            "generation": 1, "creationTimestamp": names::time(app.created), "labels": labels,
            "annotations": {
                "deployment.kubernetes.io/desired-replicas": app.replicas.to_string(),
                // The surge of 25 % is rounded up, as Go's controller does.
                "deployment.kubernetes.io/max-replicas": (app.replicas + app.replicas.div_ceil(4)).to_string(),
                "deployment.kubernetes.io/revision": "1",
            },
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": app.name, "uid": app.uid,
                "controller": true, "blockOwnerDeletion": true,
            }],
            "managedFields": managed::workload(app, "kube-controller-manager"),
        },
        "spec": {
            "replicas": app.replicas,
            "selector": {"matchLabels": {"app": app.name, "pod-template-hash": app.hash}},
            "template": template::template(app, true),
        },
        "status": {
            "fullyLabeledReplicas": app.replicas, "observedGeneration": 1, "replicas": app.replicas,
            "readyReplicas": app.replicas, "availableReplicas": app.replicas,
        },
    })
}

fn status(app: &App) -> Value {
    json!({
        "observedGeneration": 1, "replicas": app.replicas, "readyReplicas": app.replicas,
        "availableReplicas": app.replicas,
    })
}

fn condition(app: &App, name: &str, reason: &str, message: &str) -> Value {
    let time = names::time(app.created + 20);
    json!({
        "type": name, "status": "True", "reason": reason, "message": message,
        "lastTransitionTime": time, "lastUpdateTime": time,
    })
}
