//! The `managedFields` that the API server keeps for every field that is written.

use serde_json::{Map, Value, json};

use super::plan::{App, CONDITIONS, Instance};
use super::{names, template};

const CONTROLLER: &str = "kube-controller-manager";

/// Returns the entries of the controller that made a pod and of its kubelet.
pub(super) fn pod(app: &App, pod: &Instance) -> Value {
    let owner = format!(r#"k:{{"uid":"{}"}}"#, app.replica_set_uid);
    let fields = json!({
        "f:metadata": {
            "f:annotations": {".": {}, "f:checksum/config": {}}, "f:generateName": {},
            "f:labels": labels(app), "f:ownerReferences": object([(".".to_owned(), json!({})), (owner, json!({}))]),
        },
        "f:spec": template_spec(app),
    });
    let status = json!({"f:status": pod_status(pod)});
    json!([
        entry(CONTROLLER, "v1", fields, &pod.times[0]),
        status_of(entry("kubelet", "v1", status, &pod.times[2])),
    ])
}

/// Returns the managed fields of a workload: its applier's and its controller's.
pub(super) fn workload(app: &App, manager: &str) -> Value {
    let fields = json!({
        "f:metadata": {"f:labels": labels(app)},
        "f:spec": {
            "f:replicas": {}, "f:selector": {},
            "f:template": {
                "f:metadata": {"f:annotations": {".": {}, "f:checksum/config": {}}, "f:labels": labels(app)},
                "f:spec": template_spec(app),
            },
        },
    });
    let status = json!({"f:status": {
        "f:availableReplicas": {}, "f:observedGeneration": {}, "f:readyReplicas": {}, "f:replicas": {},
    }});
    json!([
        entry(manager, "apps/v1", fields, &names::time(app.created)),
        status_of(entry(
            CONTROLLER,
            "apps/v1",
            status,
            &names::time(app.created + 20)
        )),
    ])
}

/// Returns the entry of a manager that wrote some parts of an object.
pub(super) fn whole(manager: &str, fields: Value, time: u32) -> Value {
    json!([entry(manager, "v1", fields, &names::time(time))])
}

fn entry(manager: &str, version: &str, fields: Value, time: &str) -> Value {
    let mut entry = json!({
        "apiVersion": version, "fieldsType": "FieldsV1", "manager": manager, "operation": "Update",
        "time": time,
    });
    entry["fieldsV1"] = fields;
    entry
}

fn status_of(mut entry: Value) -> Value {
    entry["subresource"] = "status".into();
    entry
}

fn labels(app: &App) -> Value {
    let labels = template::labels(app, true);
    let names = labels.as_object().into_iter().flatten();
    let fields = names.map(|(name, _)| (format!("f:{name}"), json!({})));
    object(fields.chain([(".".to_owned(), json!({}))]))
}

fn template_spec(app: &App) -> Value {
    let containers = (0..=usize::from(app.sidecar)).map(|number| {
        let name = template::container_name(app, number);
        (format!(r#"k:{{"name":"{name}"}}"#), container(app, number))
    });
    json!({
        "f:containers": object(containers), "f:dnsPolicy": {}, "f:enableServiceLinks": {},
        "f:restartPolicy": {}, "f:schedulerName": {}, "f:securityContext": {".": {}, "f:runAsNonRoot": {}},
        "f:serviceAccount": {}, "f:serviceAccountName": {}, "f:terminationGracePeriodSeconds": {},
    })
}

fn container(app: &App, number: usize) -> Value {
    let env = app.env.iter().map(|(name, _)| {
        let fields = json!({".": {}, "f:name": {}, "f:value": {}});
        (format!(r#"k:{{"name":"{name}"}}"#), fields)
    });
    let port = format!(
        r#"k:{{"containerPort":{},"protocol":"TCP"}}"#,
        8080 + number
    );
    let ports = json!({".": {}, "f:containerPort": {}, "f:name": {}, "f:protocol": {}});
    let mut fields = json!({
        ".": {}, "f:env": object(env.chain([(".".to_owned(), json!({}))])), "f:image": {},
        "f:imagePullPolicy": {}, "f:name": {}, "f:ports": object([(".".to_owned(), json!({})), (port, ports)]),
        "f:resources": {
            ".": {}, "f:limits": {".": {}, "f:memory": {}},
            "f:requests": {".": {}, "f:cpu": {}, "f:memory": {}},
        },
        "f:terminationMessagePath": {}, "f:terminationMessagePolicy": {},
    });
    if app.probe {
        fields["f:readinessProbe"] = json!({
            ".": {}, "f:failureThreshold": {}, "f:httpGet": {".": {}, "f:path": {}, "f:port": {}, "f:scheme": {}},
            "f:periodSeconds": {}, "f:successThreshold": {}, "f:timeoutSeconds": {},
        });
    }
    fields
}

fn pod_status(pod: &Instance) -> Value {
    // The kubelet does not own the condition `PodScheduled`.
    let own = CONDITIONS
        .iter()
        .filter(|(name, _)| *name != "PodScheduled");
    let conditions = own.map(|(name, _)| {
        let fields = json!({
            ".": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {},
        });
        (format!(r#"k:{{"type":"{name}"}}"#), fields)
    });
    let addresses = |address: &str| {
        let key = format!(r#"k:{{"ip":"{address}"}}"#);
        object([
            (".".to_owned(), json!({})),
            (key, json!({".": {}, "f:ip": {}})),
        ])
    };
    json!({
        "f:conditions": object(conditions), "f:containerStatuses": {}, "f:hostIP": {},
        "f:hostIPs": addresses(&pod.host), "f:observedGeneration": {}, "f:phase": {}, "f:podIP": {},
        "f:podIPs": addresses(&pod.address), "f:startTime": {},
    })
}

/// Returns an object of members that are given one by one.
fn object(members: impl IntoIterator<Item = (String, Value)>) -> Value {
    Value::Object(members.into_iter().collect::<Map<_, _>>())
}
