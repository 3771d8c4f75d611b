//! Devices, claims of them, and volumes: what the server decides about them.

use http::Method;
use serde_json::{Value, json};

use crate::bench::{Bench, text};

const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
const SLICES: &str = "/apis/resource.k8s.io/v1/resourceslices";
const VOLUMES: &str = "/api/v1/persistentvolumes";

fn claim(name: &str, exactly: &Value) -> Value {
    let mut exactly = exactly.clone();
    exactly["deviceClassName"] = "gpu".into();
    json!({"metadata": {"name": name},
        "spec": {"devices": {"requests": [{"name": "a", "exactly": exactly}]}}})
}

#[tokio::test(start_paused = true)]
async fn claims_for_administration_need_a_namespace_for_that() {
    let bench = Bench::new().await;
    let wanted = claim("a", &json!({"adminAccess": true}));
    let status = bench.post(CLAIMS, &wanted).await.fails(422, "Invalid");
    let cause = &status["details"]["causes"][0];
    assert_eq!(cause["field"], "spec.devices.requests[0].adminAccess");
    assert_eq!(cause["reason"], "FieldValueForbidden");
    let label = json!({"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}});
    bench.merge("/api/v1/namespaces/default", label).await;
    let created = bench.post(CLAIMS, &wanted).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let exactly = &created.json()["spec"]["devices"]["requests"][0]["exactly"];
    assert_eq!(exactly["allocationMode"], "ExactCount");
    assert_eq!(exactly["count"], 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_said_about_a_device_goes_with_its_allocation() {
    let bench = Bench::new().await;
    bench.post(CLAIMS, &claim("a", &json!({}))).await;
    let path = format!("{CLAIMS}/a/status");
    let device = json!({"driver": "d.e", "pool": "p", "device": "x"});
    let mut result = device.clone();
    result["request"] = "a".into();
    let allocated = json!({"status": {"allocation": {"devices": {"results": [result]}},
        "devices": [device]}});
    let answer = bench.merge(&path, allocated).await.json();
    assert_eq!(answer["status"]["devices"][0]["device"], "x", "{answer:#}");
    let freed = bench
        .merge(&path, json!({"status": {"allocation": null}}))
        .await;
    assert_eq!(
        freed.json()["status"]["devices"],
        Value::Null,
        "{}",
        freed.text
    );
}

#[tokio::test(start_paused = true)]
async fn taints_of_devices_get_the_time() {
    let bench = Bench::new().await;
    let devices = json!([{"name": "x", "taints": [{"key": "a", "effect": "NoSchedule"}],
        "attributes": {"a": {"int": 1, "ints": [1]}}}]);
    let slice = json!({"metadata": {"name": "s"}, "spec": {"driver": "d.e", "allNodes": true,
        "pool": {"name": "p", "resourceSliceCount": 1}, "devices": devices}});
    let created = bench.post(SLICES, &slice).await.json();
    text(&created, "/spec/devices/0/taints/0/timeAdded");
    // Lists of values belong to a feature that is off.
    let attribute = &created["spec"]["devices"][0]["attributes"]["a"];
    assert_eq!(*attribute, json!({"int": 1}), "{created:#}");
}

#[tokio::test(start_paused = true)]
async fn a_volume_says_since_when_it_is_in_its_phase() {
    let bench = Bench::new().await;
    let volume = json!({"metadata": {"name": "v"}, "spec": {"capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/v"},
        "claimRef": {"namespace": "default", "name": "c"}}});
    let created = bench.post(VOLUMES, &volume).await.json();
    let since = text(&created, "/status/lastPhaseTransitionTime").to_owned();
    let fields = &created["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:claimRef"];
    let owned = json!({".": {}, "f:name": {}, "f:namespace": {}});
    assert_eq!(*fields, owned, "{created:#}");
    tokio::time::advance(std::time::Duration::from_secs(90)).await;
    let path = format!("{VOLUMES}/v/status");
    let change = |status: Value| bench.merge(&path, json!({ "status": status }));
    let kept = change(json!({"message": "m"})).await.json();
    assert_eq!(text(&kept, "/status/lastPhaseTransitionTime"), since);
    let bound = change(json!({"phase": "Available"})).await.json();
    assert_ne!(text(&bound, "/status/lastPhaseTransitionTime"), since);
    let said = json!({"phase": "Bound", "lastPhaseTransitionTime": "2026-01-01T00:00:00Z"});
    let said = change(said).await.json();
    let since = text(&said, "/status/lastPhaseTransitionTime");
    assert_eq!(since, "2026-01-01T00:00:00Z");
}

#[tokio::test(start_paused = true)]
async fn labels_that_are_applied_through_a_part_of_a_pod_are_owned_and_not_stored() {
    let bench = Bench::new().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "p"},
        "spec": {"containers": [{"name": "a", "image": "b"}]}});
    bench.post(pods, &pod).await;
    let applied = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p",
        "labels": {"x": "y"}}, "spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}});
    let path = format!("{pods}/p/ephemeralcontainers?fieldManager=m");
    let media = "application/apply-patch+yaml";
    let answer = bench
        .call(Method::PATCH, &path, media, applied.to_string())
        .await
        .json();
    assert_eq!(answer["metadata"]["labels"], Value::Null, "{answer:#}");
    let managed = answer["metadata"]["managedFields"].as_array();
    let mut managed = managed.into_iter().flatten();
    let of_m = managed
        .find(|entry| entry["manager"] == "m")
        .expect("m applied");
    let labels = &of_m["fieldsV1"]["f:metadata"]["f:labels"];
    assert_eq!(*labels, json!({"f:x": {}}), "{answer:#}");
}
