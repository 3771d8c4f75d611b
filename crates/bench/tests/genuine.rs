//! `lariat-bench run` with a server that it did not start, small.

mod common;

use http::StatusCode;
use kube::client::Body;
use lariat_cluster::Cluster;
use lariat_cluster::faults::{Action, Refusal, Rule};
use serde_json::json;

use common::{complaint, rows, subjects};

/// A server that lariat-bench did not start.
async fn server() -> (Cluster, String) {
    let cluster = Cluster::builder().listen().start().await.expect("starts");
    let url = cluster.url().expect("it listens");
    (cluster, url)
}

/// Creates a pod of any name.
async fn create(cluster: &Cluster, namespace: &str, name: &str) {
    let pod = json!({
        "metadata": {"name": name}, "spec": {"containers": [{"name": "a", "image": "b"}]},
    });
    let request = http::Request::post(format!("/api/v1/namespaces/{namespace}/pods"));
    let request = request.body(Body::from(pod.to_string().into_bytes()));
    let client = cluster.client();
    let answer = client.send(request.expect("it is one")).await;
    let answer = answer.expect("it answers");
    assert_eq!(answer.status(), StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn sync_reads_what_is_on_a_server_and_writes_nothing() {
    let (cluster, url) = server().await;
    // Of one name in two namespaces.
    for namespace in ["default", "kube-system"] {
        create(&cluster, namespace, "web-0").await;
    }
    let mark = cluster.journal().mark();
    let rows = rows(&[
        "sync",
        "--server",
        &url,
        "--runs",
        "1",
        "--handlers",
        "1",
        "--case",
        "typed",
        "--subject",
        "lariat,kube-rs,floor",
    ]);
    assert_eq!(subjects(&rows), ["lariat", "kube-rs", "floor"]);
    assert!(rows.iter().all(|row| row["n"] == 2), "{rows:?}");
    let asked = cluster.journal().select().since(mark).requests();
    let is_read = |verb: &str| matches!(verb, "get" | "list" | "watch");
    assert!(
        asked.iter().all(|request| is_read(&request.verb)),
        "{asked:?}"
    );
}

/// Asserts that pods were made in one namespace and are gone with it, and that no other was touched.
fn assert_cleaned_up(cluster: &Cluster) {
    let journal = cluster.journal();
    assert_eq!(journal.count("create", "namespaces"), 1);
    assert_eq!(journal.count("delete", "namespaces"), 1);
    assert_eq!(
        journal
            .select()
            .namespace("default")
            .resource("pods")
            .count(),
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_are_created_on_a_server_and_deleted_at_the_end() {
    let (cluster, url) = server().await;
    create(&cluster, "kube-system", "of-another").await;
    let rows = rows(&[
        "sync",
        "--server",
        &url,
        "--create",
        "--pods",
        "70",
        "--runs",
        "1",
        "--handlers",
        "1",
        "--case",
        "metadata",
        "--subject",
        "lariat,kube-rs,floor",
    ]);
    assert_eq!(subjects(&rows), ["lariat", "kube-rs", "floor"]);
    assert!(rows.iter().all(|row| row["n"] == 70), "{rows:?}");
    assert_cleaned_up(&cluster);
    assert_eq!(cluster.journal().count("create", "pods"), 71);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_on_a_server_ends_when_all_last_states_were_seen() {
    let (cluster, url) = server().await;
    let rows = rows(&[
        "storm",
        "--server",
        &url,
        "--pods",
        "30",
        "--n",
        "100",
        "--rate",
        "2000",
        "--runs",
        "1",
        "--handlers",
        "1",
        "--case",
        "metadata",
        "--subject",
        "lariat,kube-rs,floor",
    ]);
    assert_eq!(rows.len(), 3);
    for row in rows.iter().filter(|row| row["subject"] == "floor") {
        assert_eq!(row["handler_runs"], 100, "{row}");
    }
    assert_cleaned_up(&cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_timed_from_their_request_on_a_server() {
    let (cluster, url) = server().await;
    let rows = rows(&[
        "latency",
        "--server",
        &url,
        "--pods",
        "40",
        "--n",
        "10",
        "--runs",
        "1",
        "--handlers",
        "1",
        "--case",
        "idle,load",
        "--subject",
        "lariat,kube-rs,floor",
    ]);
    assert_eq!(rows.len(), 6);
    for row in &rows {
        assert!(row["p50_us"].as_f64() > Some(0.0), "{row}");
    }
    assert_cleaned_up(&cluster);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_no_more_changes_ends_the_run() {
    let (cluster, url) = server().await;
    let refused = Rule::new(Action::Refuse(Refusal::too_many_requests())).verb("patch");
    // When its pods are there, each of which is created in three requests.
    cluster.faults().add(refused.resource("pods").skip(60));
    let complaint = complaint(&[
        "storm",
        "--server",
        &url,
        "--pods",
        "30",
        "--n",
        "200",
        "--runs",
        "1",
        "--handlers",
        "1",
        "--case",
        "metadata",
        "--subject",
        "lariat",
    ]);
    assert!(complaint.contains("429"), "{complaint}");
    assert!(complaint.contains("metadata of lariat"), "{complaint}");
    assert_cleaned_up(&cluster);
}
