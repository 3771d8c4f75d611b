//! Versions of a CRD that are not served for a while.

use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::{Duration, sleep};

use crate::bench::{Bench, DEFINITIONS};
use crate::kinds::{WIDGETS, definition, widget};
use crate::own_objects::becomes;

const V2: &str = "/apis/demo.dev/v2/namespaces/default/widgets";

async fn serve(bench: &Bench, version: usize, is_served: bool) {
    let path = format!("{DEFINITIONS}/widgets.demo.dev");
    let pointer = format!("/spec/versions/{version}/served");
    let patch = json!([{"op": "replace", "path": pointer, "value": is_served}]);
    assert_eq!(bench.json_patch(&path, patch).await.code, StatusCode::OK);
}

async fn defined() -> Bench {
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    bench
}

#[tokio::test(start_paused = true)]
async fn versions_are_served_again_after_none_was() {
    let bench = defined().await;
    bench.post(WIDGETS, &widget("a")).await;
    for version in [0, 1] {
        serve(&bench, version, false).await;
    }
    becomes(&bench, WIDGETS, 404).await;
    becomes(&bench, V2, 404).await;
    serve(&bench, 0, true).await;
    becomes(&bench, WIDGETS, 200).await;
    assert_eq!(bench.names(WIDGETS).await, ["a"]);
}

/// Clients of a version need it to remove the finalizers for which the CRD waits.
#[tokio::test(start_paused = true)]
async fn terminating_crd_serves_a_version_again() {
    let bench = defined().await;
    let mut held = widget("held");
    held["metadata"]["finalizers"] = json!(["demo.dev/hold"]);
    bench.post(WIDGETS, &held).await;
    serve(&bench, 0, false).await;
    becomes(&bench, WIDGETS, 404).await;
    let crd = format!("{DEFINITIONS}/widgets.demo.dev");
    bench.delete(&crd).await;
    sleep(Duration::from_secs(5)).await;
    serve(&bench, 0, true).await;
    becomes(&bench, WIDGETS, 200).await;
    let late = bench.post(WIDGETS, &widget("late")).await;
    late.fails(403, "Forbidden");
    let free = json!({"metadata": {"finalizers": Value::Null}});
    bench.merge(&format!("{WIDGETS}/held"), free).await;
    becomes(&bench, &crd, 404).await;
    becomes(&bench, WIDGETS, 404).await;
}

#[tokio::test(start_paused = true)]
async fn terminating_crd_ends_a_version_that_is_not_served() {
    let bench = defined().await;
    let mut held = widget("held");
    held["metadata"]["finalizers"] = json!(["demo.dev/hold"]);
    bench.post(WIDGETS, &held).await;
    bench
        .delete(&format!("{DEFINITIONS}/widgets.demo.dev"))
        .await;
    sleep(Duration::from_secs(5)).await;
    serve(&bench, 0, false).await;
    becomes(&bench, WIDGETS, 404).await;
    becomes(&bench, V2, 200).await;
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_a_crd_that_terminates_without_a_served_version() {
    let bench = defined().await;
    let mut held = widget("held");
    held["metadata"]["finalizers"] = json!(["demo.dev/hold"]);
    bench.post(WIDGETS, &held).await;
    bench.post(WIDGETS, &widget("free")).await;
    for version in [0, 1] {
        serve(&bench, version, false).await;
    }
    let crd = format!("{DEFINITIONS}/widgets.demo.dev");
    bench.delete(&crd).await;
    sleep(Duration::from_secs(5)).await;
    assert_eq!(bench.get(&crd).await.code, StatusCode::OK);
    serve(&bench, 0, true).await;
    becomes(&bench, WIDGETS, 200).await;
    assert_eq!(bench.names(WIDGETS).await, ["held"]);
    let free = json!({"metadata": {"finalizers": Value::Null}});
    bench.merge(&format!("{WIDGETS}/held"), free).await;
    becomes(&bench, &crd, 404).await;
}
