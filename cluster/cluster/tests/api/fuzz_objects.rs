//! Objects for the fuzzer: sound ones, and what becomes of them.

use fastrand::Rng;
use serde_json::{Map, Value, json};

use crate::kinds::{definition, widget};

/// Values that something may trip over.
const TEXTS: [&str; 44] = [
    "",
    " ",
    "a",
    "b",
    "a/b",
    "a=b",
    "a in (b)",
    "!a",
    "-1",
    "0",
    "1",
    "100%",
    "-5%",
    "999999999999",
    "1e400",
    "0.5",
    "1Ei",
    "99999999999999999999Ei",
    "1n",
    "100m",
    "2020-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z",
    "-0001-13-45T99:99:99Z",
    "10.0.0.1",
    "::1",
    "10.0.0.0/8",
    "Always",
    "Never",
    "None",
    "True",
    "ClusterIP",
    "Recreate",
    "Foreground",
    "Orphan",
    "v1",
    "apps/v1",
    "Pod",
    "default",
    "ä💥",
    "\u{0}\u{7f}",
    "* * * * *",
    "99 * * * *",
    "^(a+)+$",
    "([",
];

/// Names that a member may get.
const NAMES: [&str; 30] = [
    "metadata",
    "spec",
    "status",
    "name",
    "namespace",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "managedFields",
    "generateName",
    "resourceVersion",
    "uid",
    "generation",
    "deletionTimestamp",
    "creationTimestamp",
    "kind",
    "apiVersion",
    "template",
    "selector",
    "matchLabels",
    "replicas",
    "containers",
    "conditions",
    "type",
    "items",
    "data",
    "$patch",
    "$retainKeys",
    "x-kubernetes-validations",
];

const CONFIG_RULES: [&str; 6] = [
    "self == oldSelf",
    "self.size > 0",
    "self.all(x, x)",
    "1 / 0 == 0",
    "self.matches('(')",
    "((((",
];

pub(crate) fn pick<'a, T: ?Sized>(rng: &mut Rng, from: &[&'a T]) -> &'a T {
    from[rng.usize(..from.len())]
}

/// Returns an object as a client would send it, of the kind with a plural if that is known.
pub(crate) fn sound(rng: &mut Rng, plural: &str, name: &str) -> Value {
    let pod = json!({"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}],
        "env": [{"name": "A", "value": "1"}], "resources": {"requests": {"cpu": "1"}}}]});
    let labels = json!({"app": "a"});
    let template = json!({"metadata": {"labels": labels}, "spec": pod});
    let selector = json!({"matchLabels": labels});
    let workload = json!({"replicas": rng.u8(..3), "selector": selector, "template": template});
    let mut job_template = template.clone();
    job_template["spec"]["restartPolicy"] = json!("Never");
    let job = json!({"template": job_template, "completions": 2, "parallelism": 1});
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 50}}});
    let body = match plural {
        "configmaps" => json!({"data": {"a": "1"}, "binaryData": {"b": "AAAA"}}),
        "secrets" => json!({"data": {"a": "MQ=="}, "stringData": {"b": "1"}, "type": "Opaque"}),
        "pods" => json!({"spec": pod}),
        "services" => json!({"spec": {"selector": labels, "ports": [{"port": 80}]}}),
        "deployments" | "replicasets" | "daemonsets" => json!({"spec": workload}),
        "statefulsets" => json!({"spec": workload}),
        "replicationcontrollers" => json!({"spec": {"replicas": 1, "template": template}}),
        "jobs" => json!({"spec": job}),
        "cronjobs" => json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job}}}),
        "horizontalpodautoscalers" => json!({"spec": {"maxReplicas": 3, "metrics": [cpu],
            "scaleTargetRef": {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}}}),
        "poddisruptionbudgets" => json!({"spec": {"minAvailable": "50%", "selector": selector}}),
        "leases" => json!({"spec": {"holderIdentity": "a", "leaseDurationSeconds": 1,
            "renewTime": "2020-01-01T00:00:00.000000Z"}}),
        "events" => json!({"involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"},
            "reason": "a", "message": "b", "type": "Normal"}),
        "bindings" => json!({"target": {"kind": "Node", "name": "node-1"}}),
        "persistentvolumeclaims" => json!({"spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}}),
        "roles" | "clusterroles" => json!({"rules": [{"apiGroups": [""], "resources": ["pods"],
            "verbs": ["get"]}]}),
        "customresourcedefinitions" => return custom(rng),
        "widgets" => widget(name),
        _ => json!({"spec": {"replicas": 1}, "data": {"a": "b"}}),
    };
    let mut object = body;
    object["metadata"]["name"] = name.into();
    if rng.u8(..4) == 0 {
        object["metadata"]["labels"] = labels;
        object["metadata"]["finalizers"] = json!(["demo.dev/a"]);
        object["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u"}]);
    }
    object
}

/// Returns a CRD with a schema of some depth.
fn custom(rng: &mut Rng) -> Value {
    let plural = pick(rng, &["gadgets", "gizmos"]);
    let mut made = definition(plural, "Gadget", pick(rng, &["Namespaced", "Cluster"]));
    let rule = json!({"rule": pick(rng, &CONFIG_RULES), "message": "no"});
    let size = json!({"type": "integer", "default": 1, "minimum": 0, "maximum": 10});
    let list = json!({"type": "array", "items": {"type": "object", "required": ["name"],
        "properties": {"name": {"type": "string", "pattern": "^a"}}},
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]});
    let spec = json!({"type": "object", "properties": {"size": size, "list": list},
        "x-kubernetes-validations": [rule]});
    let version = &mut made["spec"]["versions"][0];
    version["schema"]["openAPIV3Schema"]["properties"] = json!({"spec": spec});
    version["additionalPrinterColumns"] =
        json!([{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]);
    made
}

/// Changes a few places of a value at random.
pub(crate) fn mutate(rng: &mut Rng, value: &mut Value) {
    for _ in 0..rng.usize(1..4) {
        mutate_at(rng, value);
    }
}

/// Goes down to some place, and changes it.
fn mutate_at(rng: &mut Rng, value: &mut Value) {
    if rng.u8(..6) != 0 {
        let below = match value {
            Value::Object(members) => {
                let place = rng.usize(..members.len().max(1));
                members.values_mut().nth(place)
            }
            Value::Array(items) => {
                let place = rng.usize(..items.len().max(1));
                items.get_mut(place)
            }
            _ => None,
        };
        if let Some(below) = below {
            return mutate_at(rng, below);
        }
    }
    change(rng, value);
}

fn change(rng: &mut Rng, value: &mut Value) {
    match (rng.u8(..6), &mut *value) {
        (0, Value::Object(members)) => {
            let name = members.keys().next().cloned().unwrap_or_default();
            members.remove(&name);
        }
        (1 | 2, Value::Object(members)) => {
            members.insert(pick(rng, &NAMES).into(), random(rng, 2));
        }
        (0 | 1, Value::Array(items)) => {
            items.extend(items.first().cloned());
        }
        (2, Value::Array(items)) => items.push(random(rng, 2)),
        (3, inner) if !is_deeper(inner, 20) => {
            let inner = inner.take();
            *value = nested(rng, inner);
        }
        _ => *value = random(rng, 3),
    }
}

/// Returns whether a value nests deeper than some levels.
fn is_deeper(value: &Value, levels: usize) -> bool {
    let inner = |value: &Value| levels == 0 || is_deeper(value, levels - 1);
    match value {
        Value::Array(items) => items.iter().any(inner),
        Value::Object(members) => members.values().any(inner),
        _ => false,
    }
}

/// Puts a value deep into others.
fn nested(rng: &mut Rng, mut value: Value) -> Value {
    let depth = [1, 2, 60, 108, 125, 140, 180][rng.usize(..7)];
    let name = pick(rng, &NAMES);
    for _ in 0..depth {
        value = if rng.bool() {
            json!([value])
        } else {
            json!({ name: value })
        };
    }
    value
}

/// Makes any value at all.
pub(crate) fn random(rng: &mut Rng, depth: usize) -> Value {
    match rng.u8(..if depth == 0 { 8 } else { 10 }) {
        0 => Value::Null,
        1 => rng.bool().into(),
        2 => rng.i64(..).into(),
        3 => rng.u64(..).into(),
        4 => (rng.f64() * 1e30).into(),
        5 => rng.i8(..).into(),
        6 | 7 => text(rng).into(),
        8 => (0..rng.usize(..4))
            .map(|_| random(rng, depth - 1))
            .collect(),
        _ => {
            let members =
                (0..rng.usize(..4)).map(|_| (pick(rng, &NAMES).to_owned(), random(rng, depth - 1)));
            Value::Object(members.collect::<Map<String, Value>>())
        }
    }
}

pub(crate) fn text(rng: &mut Rng) -> String {
    match rng.u8(..10) {
        0 => pick(rng, &TEXTS).repeat(rng.usize(1..300)),
        1 => (0..rng.usize(..12)).map(|_| rng.char(..)).collect(),
        _ => pick(rng, &TEXTS).to_owned(),
    }
}
