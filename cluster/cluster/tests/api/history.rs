//! How long and how much of the past is known, and what those are answered who come too late.

use std::time::Duration;

use http::StatusCode;
use lariat_cluster::{Cluster, ClusterBuilder};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::bench::{Bench, CONFIG_MAPS, text, version};

const MINUTE: Duration = Duration::from_secs(60);

fn watch(query: &str) -> String {
    format!("{CONFIG_MAPS}?watch=1&{query}")
}

async fn bench(cluster: ClusterBuilder) -> Bench {
    let cluster = cluster.seed(1).start().await;
    Bench {
        cluster: cluster.expect("a cluster without a socket starts"),
    }
}

/// Returns the message of the error event with which a watch from a version begins.
async fn refused(bench: &Bench, from: u64) -> Value {
    let path = watch(&format!("resourceVersion={from}"));
    let (event, status) = bench.watch(&path).await.event().await;
    assert_eq!((&*event, &status["code"]), ("ERROR", &json!(410)));
    status["message"].clone()
}

#[tokio::test(start_paused = true)]
async fn what_is_older_than_the_history_has_expired() {
    let bench = bench(Cluster::builder()).await;
    let mut open = bench.watch(&watch("timeoutSeconds=100000")).await;
    let first = version(&bench.config_map("a", json!({})).await);
    let last = version(&bench.config_map("b", json!({})).await);
    let page = bench.get(&format!("{CONFIG_MAPS}?limit=1")).await.json();
    let token = text(&page, "/metadata/continue").to_owned();
    // States are compacted up to what was the last change of any resource.
    let secret = json!({"metadata": {"name": "s"}});
    let created = bench
        .post("/api/v1/namespaces/default/secrets", &secret)
        .await;
    assert_eq!(created.code, StatusCode::CREATED);
    let next = format!("{CONFIG_MAPS}?limit=1&continue={token}");
    let then = format!("{CONFIG_MAPS}?resourceVersionMatch=Exact&resourceVersion={first}");
    sleep(4 * MINUTE).await;
    assert_eq!(bench.get(&then).await.code, StatusCode::OK);
    assert_eq!(bench.get(&next).await.code, StatusCode::OK);
    let mut in_time = bench
        .watch(&watch(&format!("resourceVersion={first}")))
        .await;
    assert_eq!(in_time.short().await, "ADDED b");
    // What an open watch has not read would stay.
    drop(in_time);
    sleep(3 * MINUTE).await;
    let status = bench.get(&then).await.fails(410, "Expired");
    let message = "The resourceVersion for the provided list is too old.";
    assert_eq!(text(&status, "/message"), message);
    let status = bench.get(&next).await.fails(410, "Expired");
    assert!(text(&status, "/message").starts_with("The provided continue parameter is too old"));
    assert!(!text(&status, "/metadata/continue").is_empty());
    let message = format!("too old resource version: {first} ({last})");
    assert_eq!(refused(&bench, first).await, message);
    // Who has seen all there was misses nothing, however long ago that is.
    let mut late = bench
        .watch(&watch(&format!("resourceVersion={last}")))
        .await;
    bench.config_map("c", json!({})).await;
    assert_eq!(late.short().await, "ADDED c");
    for name in ["a", "b", "c"] {
        assert_eq!(open.short().await, format!("ADDED {name}"));
    }
    sleep(7 * MINUTE).await;
    let kept = bench.cluster.inspector().resources();
    assert!(kept.iter().all(|each| each.changes == 0), "{kept:?}");
}

#[tokio::test(start_paused = true)]
async fn with_an_age_of_zero_nothing_grows_old() {
    let bench = bench(Cluster::builder().history_age(Duration::ZERO)).await;
    let first = version(&bench.config_map("a", json!({})).await);
    bench.config_map("b", json!({})).await;
    sleep(1000 * MINUTE).await;
    let mut late = bench
        .watch(&watch(&format!("resourceVersion={first}")))
        .await;
    assert_eq!(late.short().await, "ADDED b");
}

#[tokio::test(start_paused = true)]
async fn large_changes_are_few() {
    let bound = 4_000_000;
    let bench = bench(Cluster::builder().history_bytes(bound)).await;
    let large = json!({"metadata": {"name": "a"}, "data": {"large": "x".repeat(900_000)}});
    let created = bench.post(CONFIG_MAPS, &large).await;
    assert_eq!(created.code, StatusCode::CREATED, "{}", created.text);
    let first = version(&created.json());
    let mut open = bench
        .watch(&watch(&format!("resourceVersion={first}")))
        .await;
    for round in 0..20 {
        let patch = json!({"data": {"round": round.to_string()}});
        let path = format!("{CONFIG_MAPS}/a");
        assert_eq!(bench.merge(&path, patch).await.code, StatusCode::OK);
        // Who reads is not cut off by the bound.
        assert_eq!(open.short().await, "MODIFIED a");
    }
    let inspector = bench.cluster.inspector();
    let resources = inspector.resources();
    let kept: usize = resources.iter().map(|each| each.history_bytes).sum();
    assert!((2_700_000..=bound).contains(&kept), "{kept}");
    assert_eq!(inspector.history_bytes(), bound);
    let message = refused(&bench, first).await;
    assert!(
        message
            .as_str()
            .is_some_and(|text| text.contains("too old"))
    );
}
