//! The end of namespaces, and of Events.

use std::time::Duration;

use http::StatusCode;
use lariat_cluster::{Cluster, Time};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::bench::{Bench, CONFIG_MAPS, text};

const SHOP: &str = "/api/v1/namespaces/shop";
const IN_SHOP: &str = "/api/v1/namespaces/shop/configmaps";

async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

async fn shop(time: Time) -> Bench {
    let cluster = Cluster::builder().time(time).start().await;
    let cluster = cluster.expect("a cluster without a socket starts");
    let bench = Bench { cluster };
    let namespace = json!({"metadata": {"name": "shop"}});
    assert_eq!(
        bench.post("/api/v1/namespaces", &namespace).await.code,
        StatusCode::CREATED
    );
    bench
}

async fn put_in(bench: &Bench, name: &str, finalizers: Value) {
    let object = json!({"metadata": {"name": name, "finalizers": finalizers}});
    assert_eq!(bench.post(IN_SHOP, &object).await.code, StatusCode::CREATED);
}

fn condition<'a>(namespace: &'a Value, kind: &str) -> &'a Value {
    let conditions = namespace["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let found = conditions.find(|each| each["type"] == kind);
    found.unwrap_or_else(|| panic!("no condition {kind} in {namespace:#}"))
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_stuck_says_what_holds_it() {
    let bench = shop(Time::fast()).await;
    put_in(&bench, "free", json!([])).await;
    put_in(&bench, "a", json!(["demo.dev/x"])).await;
    put_in(&bench, "b", json!(["demo.dev/x", "demo.dev/y"])).await;
    bench.delete(SHOP).await;
    settle().await;
    let namespace = bench.get(SHOP).await.json();
    let content = condition(&namespace, "NamespaceContentRemaining");
    assert_eq!(content["status"], "True");
    assert_eq!(content["reason"], "SomeResourcesRemain");
    assert_eq!(
        content["message"],
        "Some resources are remaining: configmaps. has 2 resource instances"
    );
    let finalizers = condition(&namespace, "NamespaceFinalizersRemaining");
    assert_eq!(
        finalizers["message"],
        "Some content in the namespace has finalizers remaining: demo.dev/x in 2 resource \
         instances, demo.dev/y in 1 resource instances"
    );
    for well in [
        "NamespaceDeletionDiscoveryFailure",
        "NamespaceDeletionGroupVersionParsingFailure",
        "NamespaceDeletionContentFailure",
    ] {
        assert_eq!(condition(&namespace, well)["status"], "False");
    }
    let free = json!({"metadata": {"finalizers": null}});
    bench.merge(&format!("{IN_SHOP}/a"), free.clone()).await;
    sleep(Duration::from_secs(2)).await;
    let namespace = bench.get(SHOP).await.json();
    assert!(
        text(
            condition(&namespace, "NamespaceContentRemaining"),
            "/message"
        )
        .contains("has 1 ")
    );
    bench.merge(&format!("{IN_SHOP}/b"), free).await;
    settle().await;
    bench.get(SHOP).await.fails(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn watchers_see_a_namespace_terminate_show_its_conditions_and_go() {
    let bench = shop(Time::fast()).await;
    put_in(&bench, "a", json!([])).await;
    let mut watch = bench
        .watch("/api/v1/namespaces?watch=1&fieldSelector=metadata.name=shop")
        .await;
    assert_eq!(watch.short().await, "ADDED shop");
    bench.delete(SHOP).await;
    let (_, marked) = watch.event().await;
    assert_eq!(marked["status"], json!({"phase": "Terminating"}));
    assert!(marked["metadata"]["deletionGracePeriodSeconds"].is_null());
    let (_, namespace) = watch.event().await;
    assert_eq!(
        namespace["status"]["conditions"].as_array().unwrap().len(),
        5
    );
    assert_eq!(watch.short().await, "DELETED shop");
}

#[tokio::test(start_paused = true)]
async fn real_time_leaves_the_contents_for_five_seconds() {
    let bench = shop(Time::real()).await;
    put_in(&bench, "a", json!([])).await;
    bench.delete(SHOP).await;
    sleep(Duration::from_millis(4900)).await;
    assert_eq!(bench.names(IN_SHOP).await, ["a"]);
    sleep(Duration::from_millis(200)).await;
    bench.get(SHOP).await.fails(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_waits_until_it_is_empty() {
    let bench = shop(Time::fast()).await;
    let control = bench.cluster.control();
    control.pause_namespace_deletion();
    put_in(&bench, "a", json!([])).await;
    bench.delete(SHOP).await;
    settle().await;
    assert_eq!(
        bench.get(SHOP).await.json()["status"]["phase"],
        "Terminating"
    );
    assert_eq!(bench.names(IN_SHOP).await, ["a"]);
    control.resume_namespace_deletion();
    settle().await;
    bench.get(SHOP).await.fails(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn pods_go_before_the_rest_of_a_namespace() {
    let bench = shop(Time::fast()).await;
    put_in(&bench, "a", json!([])).await;
    let spec = json!({"nodeName": "n", "containers": [{"name": "c", "image": "i"}]});
    let pod = json!({"metadata": {"name": "p"}, "spec": spec});
    bench.post(&format!("{SHOP}/pods"), &pod).await;
    bench.delete(SHOP).await;
    settle().await;
    assert_eq!(bench.names(IN_SHOP).await, ["a"]);
    bench
        .delete(&format!("{SHOP}/pods/p?gracePeriodSeconds=0"))
        .await;
    settle().await;
    bench.get(SHOP).await.fails(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn a_large_namespace_is_emptied_in_pieces() {
    let bench = shop(Time::fast()).await;
    for number in 0..1300 {
        put_in(&bench, &format!("c{number}"), json!([])).await;
    }
    bench.delete(SHOP).await;
    settle().await;
    bench.get(SHOP).await.fails(404, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn events_go_an_hour_after_their_last_change() {
    let bench = Bench::new().await;
    let events = "/api/v1/namespaces/default/events";
    for name in ["a", "b"] {
        let event = json!({
            "metadata": {"name": name}, "reason": "R", "type": "Normal",
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
            "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:05Z",
        });
        let created = bench.post(events, &event).await;
        assert_eq!(created.code, StatusCode::CREATED, "{}", created.text);
    }
    bench.config_map("c", json!({})).await;
    let mut watch = bench
        .watch(&format!("{events}?watch=1&timeoutSeconds=90000"))
        .await;
    watch.shorts(2).await;
    sleep(Duration::from_secs(1800)).await;
    bench
        .merge(&format!("{events}/a"), json!({"count": 2}))
        .await;
    assert_eq!(watch.short().await, "MODIFIED a");
    sleep(Duration::from_secs(1801)).await;
    assert_eq!(bench.names(events).await, ["a"]);
    assert_eq!(watch.short().await, "DELETED b");
    sleep(Duration::from_secs(1800)).await;
    assert_eq!(watch.short().await, "DELETED a");
    assert_eq!(
        bench.names(CONFIG_MAPS).await,
        ["c"],
        "nothing else expires"
    );
}

#[tokio::test(start_paused = true)]
async fn every_namespace_has_its_defaults_if_that_is_wanted() {
    let cluster = Cluster::builder()
        .namespace_defaults(true)
        .start()
        .await
        .unwrap();
    let bench = Bench { cluster };
    let namespace = json!({"metadata": {"name": "shop"}});
    bench.post("/api/v1/namespaces", &namespace).await;
    settle().await;
    let accounts = format!("{SHOP}/serviceaccounts");
    assert_eq!(bench.names(&accounts).await, ["default"]);
    assert_eq!(bench.names(IN_SHOP).await, ["kube-root-ca.crt"]);
    assert_eq!(bench.names(CONFIG_MAPS).await, ["kube-root-ca.crt"]);
    bench.delete(&format!("{accounts}/default")).await;
    settle().await;
    assert_eq!(bench.names(&accounts).await, ["default"]);
    bench.delete(SHOP).await;
    settle().await;
    bench.get(SHOP).await.fails(404, "NotFound");
}
