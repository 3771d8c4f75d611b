//! `lariat-bench run` of the benchmarks that read from a server, small; and its options.

use std::process::{Command, Output};

use http::StatusCode;
use kube::client::Body;
use lariat_cluster::Cluster;
use serde_json::{Value, json};

fn bench(arguments: &[&str]) -> Output {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_lariat-bench"));
    bench.env_remove("KUBECONFIG").args(arguments);
    bench.output().expect("it starts")
}

/// Returns what a run prints that succeeds.
fn printed(arguments: &[&str]) -> String {
    let output = bench(&[&["run"], arguments].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).expect("it is text")
}

/// Returns the rows of a run.
fn rows(arguments: &[&str]) -> Vec<Value> {
    let printed = printed(&[arguments, &["--json"]].concat());
    let rows = printed.lines().map(serde_json::from_str);
    rows.collect::<Result<_, _>>().expect("each line is a row")
}

/// Returns what a run complains about.
fn complaint(arguments: &[&str]) -> String {
    let output = bench(&[&["run"], arguments].concat());
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8(output.stderr).expect("it is text")
}

fn subjects(rows: &[Value]) -> Vec<&str> {
    let subjects = rows.iter().map(|row| row["subject"].as_str());
    subjects.map(|name| name.expect("it is named")).collect()
}

/// A server that lariat-bench did not start.
async fn server() -> (Cluster, String) {
    let cluster = Cluster::builder().listen().start().await.expect("starts");
    let url = cluster.url().expect("it listens");
    (cluster, url)
}

#[test]
fn the_floor_is_measured_beside_the_others() {
    let sync = ["sync", "--n", "100", "--runs", "1", "--handlers", "1"];
    let rows = rows(&[&sync[..], &["--case", "metadata"]].concat());
    assert_eq!(
        subjects(&rows),
        ["lariat", "kube-rs", "floor", "floor-scan"]
    );
    for row in &rows {
        assert_eq!(row["n"], 100, "{row}");
        assert!(row["cpu_s"].as_f64() > Some(0.0), "{row}");
    }
}

#[test]
fn the_floor_of_lists_and_of_both_protocols_is_measured() {
    let floors = "floor-lists,floor-http1,floor-http2,floor-one-thread";
    let rows = rows(&[
        "sync",
        "--n",
        "600",
        "--runs",
        "1",
        "--handlers",
        "1,10",
        "--case",
        "typed",
        "--subject",
        floors,
    ]);
    // With ten handlers there is no floor: it has none.
    assert_eq!(subjects(&rows).join(","), floors);
}

#[test]
fn subjects_take_turns_and_each_row_has_the_range_of_its_runs() {
    let interleaved = [
        "storm",
        "--pods",
        "50",
        "--n",
        "120",
        "--runs",
        "2",
        "--handlers",
        "1",
        "--case",
        "typed",
        "--subject",
        "lariat,floor",
        "--interleave",
    ];
    let rows = rows(&interleaved);
    let turn = ["lariat", "floor"];
    assert_eq!(subjects(&rows), [turn, turn].concat());
    for row in &rows {
        let (runs, merged) = (row["handler_runs"].as_u64().unwrap(), &row["merged"]);
        if row["subject"] == "lariat" {
            assert_eq!(merged.as_u64().unwrap() + runs, 120, "{row}");
        } else {
            // Every line of the watch.
            assert_eq!((runs, merged), (120, &Value::Null), "{row}");
        }
    }
}

#[test]
fn a_table_has_medians_with_their_range() {
    let table = printed(&[
        "queue",
        "--case",
        "distinct-1x1",
        "--n",
        "2000",
        "--runs",
        "2",
    ]);
    let lariat = table.lines().find(|line| line.contains(" lariat "));
    let lariat = lariat.expect("it is measured");
    assert!(lariat.contains('[') && lariat.contains('–'), "{lariat}");
}

#[test]
fn delays_are_paced() {
    let paced = [
        "queue",
        "--case",
        "delayed-paced",
        "--n",
        "500",
        "--runs",
        "1",
    ];
    let rows = rows(&[&paced[..], &["--rate", "5000"]].concat());
    assert_eq!(subjects(&rows), ["lariat", "kube-rs"]);
    for row in &rows {
        assert_eq!(row["rate"], 5000, "{row}");
        assert!(row["p99_us"].as_f64() >= row["p50_us"].as_f64(), "{row}");
    }
}

#[test]
fn lines_of_changes_are_timed_when_they_arrive() {
    let rows = rows(&[
        "latency",
        "--pods",
        "60",
        "--n",
        "20",
        "--runs",
        "1",
        "--handlers",
        "1",
        "--case",
        "idle,load",
        "--rate",
        "600",
        "--subject",
        "lariat,floor,floor-scan",
    ]);
    assert_eq!(rows.len(), 6);
    for row in &rows {
        assert!(row["p50_us"].as_f64() > Some(0.0), "{row}");
        assert!(row["p99_us"].as_f64() >= row["p50_us"].as_f64(), "{row}");
    }
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
    create(&cluster, "kube-system", "of-somebody-else").await;
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

#[test]
fn bad_options_are_named() {
    let cases: [(&[&str], &str); 15] = [
        (
            &["sync", "--subject", "flor"],
            "--subject: \"flor\" is none of",
        ),
        (
            &["relist", "--subject", "floor"],
            "--subject: \"floor\" is none of",
        ),
        (&["sync", "--server"], "--server needs a value"),
        (
            &["sync", "--server", "localhost"],
            "--server \"localhost\" is no URL",
        ),
        (
            &["sync", "--server", "https://localhost:1"],
            "--kubeconfig FILE, or KUBECONFIG",
        ),
        (
            &["sync", "--kubeconfig", "/not/there"],
            "/not/there: there is no such kubeconfig",
        ),
        (
            &["relist", "--server", "http://localhost:1"],
            "--server is for sync, storm and latency",
        ),
        (&["sync", "--create"], "--create needs a server"),
        (
            &["sync", "--server", "http://localhost:1", "--n", "5"],
            "needs --create",
        ),
        (
            &["sync", "--n", "5", "--pods", "5"],
            "--pods and --n are the same",
        ),
        (&["queue", "--pods", "5"], "--pods is for"),
        (&["sync", "--rate", "5"], "--rate is for"),
        (
            &["storm", "--rate", "0"],
            "--rate: \"0\" is no number above 0",
        ),
        (&["queue", "--runs"], "--runs needs a value"),
        (
            &["storm", "--interlave"],
            "--interlave: there is no such option",
        ),
    ];
    for (arguments, expected) in cases {
        let complaint = complaint(arguments);
        assert!(complaint.contains(expected), "{arguments:?}: {complaint}");
    }
}

#[test]
fn a_kubeconfig_that_cannot_be_read_keeps_its_secrets() {
    let file = std::env::temp_dir().join(format!("lariat-bench-{}.yaml", std::process::id()));
    std::fs::write(&file, "users: [{name: a, user: {token: s3cret").unwrap();
    let complaint = complaint(&["sync", "--kubeconfig", file.to_str().unwrap()]);
    std::fs::remove_file(&file).unwrap();
    assert!(complaint.contains("cannot be used"), "{complaint}");
    assert!(!complaint.contains("s3cret"), "{complaint}");
}
