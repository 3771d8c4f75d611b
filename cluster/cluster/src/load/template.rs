//! The pod template of a Deployment, with the defaults that the API server fills in.
//!
//! A missing default would be added by the first update, which the validation of Pods then refuses as a change.

use serde_json::{Value, json};

use super::plan::App;

/// Returns the template; the ReplicaSet's has the hash among its labels.
pub(super) fn template(app: &App, with_hash: bool) -> Value {
    let containers: Vec<Value> = (0..=usize::from(app.sidecar))
        .map(|number| container(app, number))
        .collect();
    json!({
        "metadata": {"labels": labels(app, with_hash), "annotations": {"checksum/config": app.checksum}},
        "spec": {
            "containers": containers, "dnsPolicy": "ClusterFirst", "restartPolicy": "Always",
            "schedulerName": "default-scheduler", "securityContext": {"runAsNonRoot": true},
            "serviceAccount": app.name, "serviceAccountName": app.name,
            "terminationGracePeriodSeconds": 30,
        },
    })
}

pub(super) fn labels(app: &App, with_hash: bool) -> Value {
    let mut labels = json!({
        "app": app.name, "app.kubernetes.io/version": app.tag, "team": app.team,
        "tier": if app.env.len() > 1 { "backend" } else { "frontend" },
    });
    if with_hash {
        labels["pod-template-hash"] = app.hash.as_str().into();
    }
    labels
}

pub(super) fn container(app: &App, number: usize) -> Value {
    let variable = |(name, value): &(_, _)| json!({"name": name, "value": value});
    let env = app.env.iter().map(variable);
    let mut container = json!({
        "name": container_name(app, number), "image": image(app, number),
        "imagePullPolicy": "IfNotPresent", "env": env.collect::<Vec<_>>(),
        "ports": [{"containerPort": 8080 + number, "name": "http", "protocol": "TCP"}],
        "resources": {
            "limits": {"memory": format!("{}Mi", app.memory)},
            "requests": {"cpu": format!("{}m", 50 * app.env.len()), "memory": "128Mi"},
        },
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
    });
    if app.probe {
        container["readinessProbe"] = json!({
            "failureThreshold": 3, "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"},
            "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1,
        });
    }
    container
}

pub(super) fn container_name(app: &App, number: usize) -> &str {
    match number {
        0 => &app.name,
        _ => "envoy",
    }
}

pub(super) fn image(app: &App, number: usize) -> String {
    match number {
        0 => app.image(),
        _ => "docker.io/envoyproxy/envoy:v1.35.2".to_owned(),
    }
}
