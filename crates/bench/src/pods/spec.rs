//! What a pod is to run.

use fastrand::Rng;
use serde_json::{Value, json};

use super::plan::{Plan, seed};

pub(super) fn spec(plan: &Plan, rng: &mut Rng) -> Value {
    let token = format!(
        "kube-api-access-{}",
        super::plan::base36(rng.usize(..60_000_000))
    );
    let containers: Vec<Value> = (0..plan.containers)
        .map(|number| container(plan, number, &token))
        .collect();
    json!({
        "containers": containers,
        "dnsPolicy": "ClusterFirst", "enableServiceLinks": true, "nodeName": plan.node,
        "restartPolicy": "Always", "schedulerName": "default-scheduler", "securityContext": {"runAsNonRoot": true},
        "serviceAccountName": plan.app, "terminationGracePeriodSeconds": 30,
        "tolerations": [toleration("not-ready"), toleration("unreachable")],
        "volumes": [
            {"name": token, "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            ]}},
        ],
    })
}

fn container(plan: &Plan, number: usize, token: &str) -> Value {
    let env = plan
        .env
        .iter()
        .map(|(name, value)| json!({"name": name, "value": value}));
    json!({
        "name": container_name(plan, number), "image": image(plan, number),
        "imagePullPolicy": "IfNotPresent",
        "env": env.collect::<Vec<_>>(),
        "ports": [{"containerPort": port(number), "name": "http", "protocol": "TCP"}],
        "readinessProbe": {
            "httpGet": {"path": "/healthz", "port": "http"},
            "failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1,
        },
        "resources": {
            "limits": {"memory": format!("{}Mi", 128 + seed(&plan.hash) % 64 * 4)},
            "requests": {"cpu": format!("{}m", 50 * plan.env.len()), "memory": "128Mi"},
        },
        "volumeMounts": [{
            "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": token, "readOnly": true,
        }],
    })
}

pub(super) fn port(number: usize) -> usize {
    8080 + number
}

pub(super) fn container_name(plan: &Plan, number: usize) -> String {
    match number {
        0 => plan.app.clone(),
        _ => "envoy".to_owned(),
    }
}

pub(super) fn image(plan: &Plan, number: usize) -> String {
    match number {
        0 => format!("registry.example.com/shop/{}:{}", plan.app, plan.image_tag),
        _ => "docker.io/envoyproxy/envoy:v1.35.2".to_owned(),
    }
}

fn toleration(what: &str) -> Value {
    json!({
        "effect": "NoExecute", "key": format!("node.kubernetes.io/{what}"), "operator": "Exists",
        "tolerationSeconds": 300,
    })
}
