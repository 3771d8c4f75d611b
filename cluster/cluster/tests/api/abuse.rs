//! Requests no client should send, after which everything else goes on.

use crate::bench::{Bench, CONFIG_MAPS, DEFINITIONS, text};
use crate::kinds::{WIDGETS, definition, widget};
use http::StatusCode;
use serde_json::json;
use tokio::time::{Duration, sleep};

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test(start_paused = true)]
async fn what_no_client_could_read_is_refused_by_field() {
    let bench = Bench::new().await;
    bench.config_map("a", json!({})).await;
    for (member, value, field) in [
        (
            "labels",
            json!(5),
            "metadata.labels of type map[string]string",
        ),
        ("labels", json!({"a": 5}), "cannot unmarshal number"),
        (
            "annotations",
            json!(["a"]),
            "metadata.annotations of type map[string]string",
        ),
        (
            "finalizers",
            json!("a"),
            "metadata.finalizers of type []string",
        ),
        ("finalizers", json!([1]), "cannot unmarshal number"),
        (
            "ownerReferences",
            json!(["a"]),
            "metadata.ownerReferences of type v1.OwnerReference",
        ),
        (
            "generateName",
            json!(1),
            "metadata.generateName of type string",
        ),
    ] {
        let mut object = json!({"metadata": {"name": "b"}});
        object["metadata"][member] = value.clone();
        let status = bench
            .post(CONFIG_MAPS, &object)
            .await
            .fails(400, "BadRequest");
        assert!(text(&status, "/message").contains(field), "{status:#}");
        // In a merge patch a null takes a member away.
        let value = json!({"name": "a", member: value});
        let put = bench
            .put(&format!("{CONFIG_MAPS}/a"), &json!({"metadata": value}))
            .await;
        assert_eq!(put.code, StatusCode::BAD_REQUEST, "{}", put.text);
    }
}

#[tokio::test(start_paused = true)]
async fn parts_that_are_no_objects_are_refused() {
    let bench = Bench::new().await;
    bench.config_map("a", json!({})).await;
    for (part, value) in [
        ("spec", json!(1)),
        ("status", json!("x")),
        ("metadata", json!([])),
    ] {
        let mut pod = json!({"metadata": {"name": "b"}});
        pod[part] = value.clone();
        bench.post(PODS, &pod).await.fails(400, "BadRequest");
        // A ConfigMap has no such parts, which are then dropped, but metadata.
        if part != "metadata" {
            continue;
        }
        let put = json!({part: value});
        bench
            .put(&format!("{CONFIG_MAPS}/a"), &put)
            .await
            .fails(400, "BadRequest");
    }
}

#[tokio::test(start_paused = true)]
async fn labels_are_checked_as_keys_and_values_and_not_as_a_selector() {
    let bench = Bench::new().await;
    for labels in [
        json!({"a": "b,c=d"}),
        json!({"!a": "b"}),
        json!({"a": "!"}),
        json!({"a in (b)": ""}),
        json!({"": "a"}),
        json!({"a/b/c": "d"}),
        json!({"a": "x".repeat(64)}),
    ] {
        let object = json!({"metadata": {"name": "b", "labels": labels}});
        let status = bench.post(CONFIG_MAPS, &object).await.fails(422, "Invalid");
        assert_eq!(text(&status, "/details/causes/0/field"), "metadata.labels");
    }
    bench
        .config_map("good", json!({"demo.dev/a_b": "", "A": "x.y"}))
        .await;
}

#[tokio::test(start_paused = true)]
async fn numbers_beyond_every_clock_mean_very_long() {
    let bench = Bench::new().await;
    let huge = i64::MAX;
    let mut watch = bench
        .watch(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds={huge}"))
        .await;
    let containers = json!([{"name": "c", "image": "i"}]);
    let spec = json!({"nodeName": "n", "terminationGracePeriodSeconds": i64::MAX,
        "containers": containers});
    for name in ["a", "b"] {
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        assert_eq!(bench.post(PODS, &pod).await.code, StatusCode::CREATED);
    }
    let marked = bench.delete(&format!("{PODS}/a")).await;
    assert_eq!(marked.code, StatusCode::OK, "{}", marked.text);
    let asked = format!("{PODS}/b?gracePeriodSeconds={}", i64::MAX);
    assert_eq!(bench.delete(&asked).await.code, StatusCode::OK);
    bench.config_map("a", json!({})).await;
    assert_eq!(watch.short().await, "ADDED a");
}

#[tokio::test(start_paused = true)]
async fn a_timeout_of_zero_leaves_the_choice_to_the_server() {
    let bench = Bench::new().await;
    let mut watch = bench
        .watch(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=0"))
        .await;
    sleep(Duration::from_secs(60)).await;
    bench.config_map("a", json!({})).await;
    assert_eq!(watch.short().await, "ADDED a");
}

#[tokio::test(start_paused = true)]
async fn a_spec_with_finalizers_of_its_own_does_not_hold_an_object() {
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    let mut object = widget("a");
    object["spec"]["finalizers"] = json!(["not metadata"]);
    assert_eq!(bench.post(WIDGETS, &object).await.code, StatusCode::CREATED);
    bench.delete(&format!("{WIDGETS}/a")).await;
    bench
        .get(&format!("{WIDGETS}/a"))
        .await
        .fails(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_not_deleted_as_a_collection() {
    let bench = Bench::new().await;
    bench
        .delete("/api/v1/namespaces")
        .await
        .fails(405, "MethodNotAllowed");
}

#[tokio::test(start_paused = true)]
async fn a_strange_status_of_a_definition_is_refused() {
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    let path = format!("{DEFINITIONS}/widgets.demo.dev");
    for status in [
        json!("x"),
        json!(5),
        json!(["x"]),
        json!({"conditions": "x"}),
        json!({"conditions": [1]}),
        json!({"acceptedNames": 1}),
    ] {
        let patch = json!({"status": status});
        bench
            .merge(&format!("{path}/status"), patch)
            .await
            .fails(422, "Invalid");
    }
    let patch = json!({"status": null});
    let answer = bench.merge(&format!("{path}/status"), patch).await;
    assert!(!answer.code.is_server_error(), "{}", answer.text);
    bench
        .define(&definition("zebras", "Zebra", "Cluster"))
        .await;
    bench.delete(&path).await;
    bench
        .post("/api/v1/namespaces", &json!({"metadata": {"name": "a"}}))
        .await;
    bench.delete("/api/v1/namespaces/a").await;
    sleep(Duration::from_secs(1)).await;
    bench.get(&path).await.fails(404, "NotFound");
    bench
        .get("/api/v1/namespaces/a")
        .await
        .fails(404, "NotFound");
    let mut strange = definition("things", "Thing", "Cluster");
    strange["spec"]["names"]["shortNames"] = json!(5);
    bench
        .post(DEFINITIONS, &strange)
        .await
        .fails(400, "BadRequest");
}

#[tokio::test(start_paused = true)]
async fn of_two_definitions_with_one_kind_made_at_once_one_is_accepted() {
    let bench = Bench::new().await;
    for plural in ["widgets", "wodgets"] {
        let answer = bench
            .post(DEFINITIONS, &definition(plural, "Widget", "Namespaced"))
            .await;
        assert_eq!(answer.code, StatusCode::CREATED);
    }
    sleep(Duration::from_secs(1)).await;
    let mut accepted = Vec::new();
    for plural in ["widgets", "wodgets"] {
        let stored = bench
            .get(&format!("{DEFINITIONS}/{plural}.demo.dev"))
            .await
            .json();
        let conditions = stored["status"]["conditions"].as_array().unwrap().clone();
        let holds = |kind: &str| {
            conditions
                .iter()
                .any(|c| c["type"] == kind && c["status"] == "True")
        };
        assert_eq!(holds("NamesAccepted"), holds("Established"), "{stored:#}");
        accepted.push(holds("Established"));
    }
    assert_eq!(accepted.iter().filter(|accepted| **accepted).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_was_shut_down_says_so() {
    let bench = Bench::new().await;
    let mut service = bench.cluster.service();
    bench.cluster.shutdown().await;
    let request = http::Request::builder()
        .uri(CONFIG_MAPS)
        .body(String::new())
        .unwrap();
    let response = tower_service::Service::call(&mut service, request)
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
}
