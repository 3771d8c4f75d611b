//! When CRDs are established, and what is said of one that goes, on paused time.

use std::time::Duration;

use http::StatusCode;
use lariat_cluster::{Cluster, Time};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::bench::{Bench, DEFINITIONS, text};
use crate::kinds::{WIDGETS, definition, widget};

async fn bench() -> Bench {
    let time = Time::fast().establishing(Duration::from_secs(3));
    let cluster = Cluster::builder().seed(1).time(time).start().await;
    Bench {
        cluster: cluster.expect("a cluster without a socket starts"),
    }
}

async fn condition(bench: &Bench, kind: &str) -> Value {
    let path = format!("{DEFINITIONS}/widgets.demo.dev");
    let definition = bench.get(&path).await.json();
    let conditions = definition["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let found = conditions.find(|each| each["type"] == kind);
    found.cloned().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_established_after_its_delay() {
    let bench = bench().await;
    let widgets = definition("widgets", "Widget", "Namespaced");
    bench.post(DEFINITIONS, &widgets).await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(condition(&bench, "NamesAccepted").await["status"], "True");
    assert_eq!(
        condition(&bench, "Established").await["reason"],
        "Installing"
    );
    assert_eq!(bench.get(WIDGETS).await.code, StatusCode::NOT_FOUND);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(condition(&bench, "Established").await["status"], "True");
    assert_eq!(bench.get(WIDGETS).await.code, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_goes_before_its_time_is_never_established() {
    let bench = bench().await;
    let widgets = definition("widgets", "Widget", "Namespaced");
    bench.post(DEFINITIONS, &widgets).await;
    sleep(Duration::from_secs(2)).await;
    let path = format!("{DEFINITIONS}/widgets.demo.dev");
    bench.delete(&path).await;
    sleep(Duration::from_secs(1)).await;
    bench.get(&path).await.fails(404, "NotFound");
    // The next of the same name waits for its own time.
    bench.post(DEFINITIONS, &widgets).await;
    sleep(Duration::from_secs(2)).await;
    assert_eq!(bench.get(WIDGETS).await.code, StatusCode::NOT_FOUND);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(bench.get(WIDGETS).await.code, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_definition_says_at_once_that_it_goes() {
    let bench = bench().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    let mut held = widget("held");
    held["metadata"]["finalizers"] = serde_json::json!(["demo.dev/hold"]);
    bench.post(WIDGETS, &held).await;
    let path = format!("{DEFINITIONS}/widgets.demo.dev");
    let marked = bench.delete(&path).await.json();
    let conditions = marked["status"]["conditions"].as_array();
    let last = conditions.and_then(|all| all.last()).cloned();
    let pending = last.expect("there are conditions");
    assert_eq!(text(&pending, "/type"), "Terminating");
    assert_eq!(text(&pending, "/reason"), "InstanceDeletionPending");
    sleep(Duration::from_secs(1)).await;
    let progress = condition(&bench, "Terminating").await;
    assert_eq!(text(&progress, "/reason"), "InstanceDeletionInProgress");
    assert_eq!(
        progress["lastTransitionTime"],
        pending["lastTransitionTime"]
    );
    let release = serde_json::json!({"metadata": {"finalizers": null}});
    bench.merge(&format!("{WIDGETS}/held"), release).await;
    sleep(Duration::from_secs(1)).await;
    bench.get(&path).await.fails(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn an_established_definition_is_served_under_the_names_it_gets() {
    let bench = Bench::new().await;
    bench
        .define(&definition("widgets", "Widget", "Namespaced"))
        .await;
    bench
        .define(&definition("gadgets", "Gadget", "Namespaced"))
        .await;
    let path = format!("{DEFINITIONS}/widgets.demo.dev");
    let served = async || {
        let document = bench.get("/apis/demo.dev/v1").await.json();
        let resources = document["resources"].as_array().cloned();
        let mut resources = resources.unwrap_or_default().into_iter();
        let widgets = resources.find(|each| each["name"] == "widgets");
        widgets.unwrap_or_default()
    };
    let rename = async |short: &str| {
        let names = serde_json::json!({"spec": {"names": {"shortNames": [short]}}});
        assert_eq!(bench.merge(&path, names).await.code, StatusCode::OK);
        sleep(Duration::from_secs(1)).await;
        bench.get(&path).await.json()["status"].clone()
    };
    let status = rename("wd").await;
    assert_eq!(status["acceptedNames"]["shortNames"][0], "wd");
    assert_eq!(served().await["shortNames"][0], "wd");
    let status = rename("gadgets").await;
    assert_eq!(status["acceptedNames"]["shortNames"][0], "wd");
    let accepted = condition(&bench, "NamesAccepted").await;
    assert_eq!(accepted["reason"], "ShortNamesConflict");
    assert_eq!(condition(&bench, "Established").await["status"], "True");
    assert_eq!(served().await["shortNames"][0], "wd");
    rename("w").await;
    assert_eq!(
        condition(&bench, "NamesAccepted").await["reason"],
        "NoConflicts"
    );
}

#[tokio::test(start_paused = true)]
async fn approval_condition_follows_the_annotation_of_a_protected_group() {
    let bench = Bench::new().await;
    let mut gates = definition("gates", "Gate", "Namespaced");
    gates["metadata"] = json!({
        "name": "gates.demo.k8s.io", "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
    });
    gates["spec"]["group"] = json!("demo.k8s.io");
    bench.define(&gates).await;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gates.demo.k8s.io";
    let conditions = async || {
        let crd = bench.get(path).await.json();
        let conditions = crd["status"]["conditions"].as_array().unwrap().clone();
        let text = |condition: &Value| {
            let text = |member: &str| condition[member].as_str().unwrap_or_default().to_owned();
            format!("{} {} {}", text("type"), text("status"), text("message"))
        };
        conditions.iter().map(text).collect::<Vec<String>>()
    };
    let rest = [
        "NamesAccepted True no conflicts found",
        "Established True the initial names have been accepted",
    ];
    let approval = "KubernetesAPIApprovalPolicyConformant";
    let first = format!("{approval} False not approved: \"unapproved, a test\"");
    assert_eq!(conditions().await, [&first, rest[0], rest[1]]);
    let link = "https://x.example/1";
    let annotations = json!({"annotations": {"api-approved.kubernetes.io": link}});
    bench.merge(path, json!({"metadata": annotations})).await;
    let second = format!("{approval} True approved in {link}");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(conditions().await, [&second, rest[0], rest[1]]);
}
