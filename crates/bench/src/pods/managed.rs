//! Who manages which field of a pod: what the API server notes for every field that is written.
//!
//! The entries are those of kube-apiserver for a pod of a ReplicaSet: of the controller that made it from the
//! template (with the defaults, but without what admission adds), and of its kubelet, which reports its status. Network
//! plugins add a third one; here their annotations have no owner.

use serde_json::{Value, json};

use super::plan::{Plan, object};
use super::spec;
use super::status::CONDITIONS;

/// Who creates pods.
pub(crate) const CONTROLLER: &str = "kube-controller-manager";

/// Who reports their status.
pub(crate) const KUBELET: &str = "kubelet";

/// Returns the entries of the controller that made the pod and of its kubelet.
pub(super) fn fields(plan: &Plan) -> Value {
    json!([
        {
            "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": by_controller(plan),
            "manager": CONTROLLER, "operation": "Update", "time": plan.time(0),
        },
        {
            "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:status": by_kubelet(plan)},
            "manager": KUBELET, "operation": "Update", "subresource": "status", "time": plan.time(14),
        },
    ])
}

fn by_controller(plan: &Plan) -> Value {
    let owner = format!(r#"k:{{"uid":"{}"}}"#, plan.owner);
    let containers = (0..plan.containers).map(|number| {
        let name = format!(r#"k:{{"name":"{}"}}"#, spec::container_name(plan, number));
        (name, container(plan, number))
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

fn container(plan: &Plan, number: usize) -> Value {
    let env = plan.env.iter().map(|(name, _)| {
        let fields = json!({".": {}, "f:name": {}, "f:value": {}});
        (format!(r#"k:{{"name":"{name}"}}"#), fields)
    });
    let itself = || (".".to_owned(), json!({}));
    // The key of a port in a list that is merged by `containerPort` and `protocol`.
    let number = spec::port(number);
    let port = format!(r#"k:{{"containerPort":{number},"protocol":"TCP"}}"#);
    let fields = json!({".": {}, "f:containerPort": {}, "f:name": {}, "f:protocol": {}});
    json!({
        ".": {}, "f:env": object([itself()].into_iter().chain(env)), "f:image": {}, "f:imagePullPolicy": {},
        "f:name": {}, "f:ports": object([itself(), (port, fields)]),
        "f:readinessProbe": {
            ".": {}, "f:failureThreshold": {},
            "f:httpGet": {".": {}, "f:path": {}, "f:port": {}, "f:scheme": {}},
            "f:periodSeconds": {}, "f:successThreshold": {}, "f:timeoutSeconds": {},
        },
        "f:resources": {
            ".": {}, "f:limits": {".": {}, "f:memory": {}},
            "f:requests": {".": {}, "f:cpu": {}, "f:memory": {}},
        },
        "f:terminationMessagePath": {}, "f:terminationMessagePolicy": {},
    })
}

fn by_kubelet(plan: &Plan) -> Value {
    let conditions = CONDITIONS.map(|(name, _)| {
        let fields = match name {
            // It comes with the binding, and its kubelet adds which generation that was.
            "PodScheduled" => json!({"f:observedGeneration": {}}),
            _ => json!({
                ".": {}, "f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:observedGeneration": {},
                "f:status": {}, "f:type": {},
            }),
        };
        (format!(r#"k:{{"type":"{name}"}}"#), fields)
    });
    let address = format!(r#"k:{{"ip":"{}"}}"#, plan.ip);
    json!({
        "f:conditions": object(conditions), "f:containerStatuses": {}, "f:hostIP": {},
        "f:hostIPs": {}, "f:observedGeneration": {}, "f:phase": {}, "f:podIP": {},
        "f:podIPs": object([(".".to_owned(), json!({})), (address, json!({".": {}, "f:ip": {}}))]),
        "f:startTime": {},
    })
}
