//! Tests of the readiness of objects, with statuses as Kubernetes' own controllers write them.

mod others;
mod workloads;

use serde_json::{Value, json};

use super::Readiness;

/// Returns an object with metadata of a generation, a spec and a status.
fn object(kind: &str, spec: &Value, status: &Value) -> Value {
    let (version, kind) = kind.rsplit_once('/').expect("a version and a kind");
    json!({"apiVersion": version, "kind": kind, "spec": spec, "status": status,
        "metadata": {"name": "a", "generation": 2}})
}

/// Checks the readiness of objects of a kind: what it begins with when printed.
fn check<const N: usize>(kind: &str, table: [(Value, Value, &str); N]) {
    for (spec, status, expected) in table {
        let found = Readiness::of(&object(kind, &spec, &status)).to_string();
        let fits = found.starts_with(expected) && (expected != "ready" || found == "ready");
        assert!(fits, "{kind} {spec} {status}: {found}, not {expected}");
    }
}

/// Returns a status without some of its members.
fn without(mut status: Value, names: &[&str]) -> Value {
    for name in names {
        status.as_object_mut().expect("a status").remove(*name);
    }
    status
}

/// Returns a status with other values.
fn with(mut status: Value, changes: Value) -> Value {
    let Value::Object(changes) = changes else {
        panic!("not a status")
    };
    for (name, value) in changes {
        status[name] = value;
    }
    status
}

#[test]
fn custom_kinds_have_conditions_and_configuration_is_ready_at_once() {
    let conditions = |conditions: Value| json!({"observedGeneration": 2, "conditions": conditions});
    check(
        "demo.dev/v1/Database",
        [
            (json!({}), Value::Null, "ready"),
            (
                json!({}),
                json!({"observedGeneration": 1}),
                "in progress: its controller has observed",
            ),
            (
                json!({}),
                conditions(json!([{"type": "Ready", "status": "True"}])),
                "ready",
            ),
            (
                json!({}),
                conditions(json!([{"type": "Ready", "status": "True", "observedGeneration": 1}])),
                "in progress: its condition Ready is of an earlier generation",
            ),
            (
                json!({}),
                conditions(json!([{"type": "Ready", "status": "False", "message": "no primary"}])),
                "in progress: no primary",
            ),
            (
                json!({}),
                conditions(json!([{"type": "Ready", "status": "Unknown", "reason": "Starting"}])),
                "in progress: Starting",
            ),
            (
                json!({}),
                conditions(json!([{"type": "Ready", "status": "True"},
                    {"type": "Reconciling", "status": "True", "message": "a new version"}])),
                "in progress: a new version",
            ),
            (
                json!({}),
                conditions(
                    json!([{"type": "Stalled", "status": "True", "message": "bad image"},
                    {"type": "Reconciling", "status": "True"}]),
                ),
                "failed: bad image",
            ),
            (
                json!({}),
                conditions(json!([{"type": "Stalled", "status": "False"}])),
                "ready",
            ),
        ],
    );
    // Knative's Services are not those of Kubernetes.
    check(
        "serving.knative.dev/v1/Service",
        [(
            json!({"type": "LoadBalancer"}),
            json!({"conditions": [{"type": "Ready", "status": "False", "message": "no revision"}]}),
            "in progress: no revision",
        )],
    );
    check("v1/ConfigMap", [(json!({}), Value::Null, "ready")]);
}

#[test]
fn what_is_being_deleted_is_not_ready_whatever_its_status_says() {
    let mut pod = object("v1/Pod", &json!({}), &json!({"phase": "Succeeded"}));
    pod["metadata"]["deletionTimestamp"] = json!("2026-11-27T10:00:00Z");
    assert_eq!(Readiness::of(&pod), Readiness::Deleting);
    assert_eq!(Readiness::of_condition(&pod, "Ready"), Readiness::Deleting);
}

#[test]
fn a_condition_can_be_required() {
    let database = |status: Value| {
        let object = object("demo.dev/v1/Database", &json!({}), &status);
        Readiness::of_condition(&object, "Synced").to_string()
    };
    let synced = |status: &str, generation: i64| json!({"conditions": [{"type": "Synced", "status": status, "observedGeneration": generation}]});
    assert!(database(Value::Null).contains("no condition Synced yet"));
    assert_eq!(database(synced("True", 2)), "ready");
    assert!(database(synced("True", 1)).contains("earlier generation"));
    assert_eq!(database(synced("False", 2)), "in progress: Synced is False");
}

#[test]
fn values_of_wrong_types_are_read_as_missing() {
    for odd in [
        json!(null),
        json!([]),
        json!({"apiVersion": 1, "kind": {}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "status": "fine", "spec": []}),
        json!({"apiVersion": "batch/v1", "kind": "Job", "status": {"conditions": {"type": 1}}}),
        json!({"apiVersion": "v1", "kind": "Pod", "status": {"phase": 1, "conditions": [1, null]}}),
    ] {
        let _ = Readiness::of(&odd).to_string();
        let _ = Readiness::of_condition(&odd, "Ready").to_string();
    }
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 1},
        "spec": {"replicas": "3"}, "status": {"observedGeneration": "1", "replicas": true}});
    assert!(!Readiness::of(&deployment).is_ready());
}
