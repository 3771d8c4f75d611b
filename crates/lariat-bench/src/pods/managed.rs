//! Who manages which field of a pod: what the API server notes for every field that is written.

use serde_json::{Value, json};

use super::status::CONDITIONS;
use super::{Plan, object, spec};

/// Returns the entries of the controller that made the pod and of its kubelet.
pub(super) fn fields(plan: &Plan) -> Value {
    json!([
        {
            "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": by_controller(plan),
            "manager": "kube-controller-manager", "operation": "Update", "time": plan.time(0),
        },
        {
            "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:status": by_kubelet(plan)},
            "manager": "kubelet", "operation": "Update", "subresource": "status", "time": plan.time(14),
        },
    ])
}

fn by_controller(plan: &Plan) -> Value {
    let owner = format!(r#"k:{{"uid":"{}"}}"#, plan.owner);
    let containers = (0..plan.containers).map(|number| {
        let name = format!(r#"k:{{"name":"{}"}}"#, spec::container_name(plan, number));
        (name, container(plan))
    });
    json!({
        "f:metadata": {
            "f:annotations": {".": {}, "f:checksum/config": {}},
            "f:generateName": {},
            "f:labels": {
                ".": {}, "f:app": {}, "f:app.kubernetes.io/version": {}, "f:pod-template-hash": {},
                "f:team": {}, "f:tier": {},
            },
            "f:ownerReferences": object([(".".to_owned(), json!({})), (owner, json!({}))]),
        },
        "f:spec": {
            "f:containers": object(containers),
            "f:dnsPolicy": {}, "f:enableServiceLinks": {}, "f:restartPolicy": {}, "f:schedulerName": {},
            "f:securityContext": {".": {}, "f:runAsNonRoot": {}}, "f:serviceAccount": {},
            "f:serviceAccountName": {}, "f:terminationGracePeriodSeconds": {},
        },
    })
}

fn container(plan: &Plan) -> Value {
    let env = plan.env.iter().map(|(name, _)| {
        let fields = json!({".": {}, "f:name": {}, "f:value": {}});
        (format!(r#"k:{{"name":"{name}"}}"#), fields)
    });
    json!({
        ".": {}, "f:env": object(env), "f:image": {}, "f:imagePullPolicy": {}, "f:name": {},
        "f:ports": {
            ".": {}, "k:{\"containerPort\":8080,\"protocol\":\"TCP\"}": {
                ".": {}, "f:containerPort": {}, "f:name": {}, "f:protocol": {},
            },
        },
        "f:readinessProbe": {
            ".": {}, "f:failureThreshold": {}, "f:httpGet": {".": {}, "f:path": {}, "f:port": {}},
            "f:periodSeconds": {},
        },
        "f:resources": {
            ".": {}, "f:limits": {".": {}, "f:memory": {}},
            "f:requests": {".": {}, "f:cpu": {}, "f:memory": {}},
        },
    })
}

fn by_kubelet(plan: &Plan) -> Value {
    let conditions = CONDITIONS.map(|(name, _)| {
        let fields = json!({".": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}});
        (format!(r#"k:{{"type":"{name}"}}"#), fields)
    });
    let address = format!(r#"k:{{"ip":"{}"}}"#, plan.ip);
    let addresses = object([(address, json!({".": {}, "f:ip": {}}))]);
    json!({
        "f:conditions": object(conditions), "f:containerStatuses": {}, "f:hostIP": {}, "f:hostIPs": {},
        "f:phase": {}, "f:podIP": {}, "f:podIPs": addresses, "f:startTime": {},
    })
}
