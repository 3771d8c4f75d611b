//! A process that is killed while it writes, and a disk that is full. Both happen to children, which run this program
//! again.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lariat_sql::{Query, QueryError, SqlError};
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, Folder, names};

/// Names the file of a child; the tests of children have nothing to do without it.
const KILLED: &str = "LARIAT_TEST_KILLED";
const FULL: &str = "LARIAT_TEST_FULL";

fn file_of(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from)
}

/// Runs a test of this program in a shell, which may restrict it first.
fn child(before: &str, test: &str, variable: &str, file: &Path) -> Command {
    let program = std::env::current_exe().expect("it runs");
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("{before} exec \"$0\" \"$@\"")])
        .arg(program)
        .args(["--exact", test, "--nocapture"])
        .env(variable, file)
        .stdout(Stdio::null());
    command
}

#[tokio::test]
async fn a_child_writes_until_it_is_killed() {
    let Some(file) = file_of(KILLED) else { return };
    let bench = Bench::new().await;
    let _process = bench.start(Some(&file)).await;
    for number in 0_u64.. {
        let data = json!({"size": number.to_string(), "color": "x".repeat(2000)});
        bench
            .create(&format!("n{}", number % 500), data.clone())
            .await;
        if number % 3 == 0 {
            bench.delete(&format!("n{}", number % 500)).await;
        }
        if number % 500 == 499 {
            for name in (0..500).filter(|name| name % 3 != 0) {
                let _ = bench
                    .maps()
                    .delete(&format!("n{name}"), &kube::api::DeleteParams::default())
                    .await;
            }
        }
    }
}

#[tokio::test]
async fn a_file_of_a_killed_process_is_read_and_answers_are_right() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    bench.create("kept", json!({"size": "1"})).await;
    let version = bench.create("n1", json!({"size": "2"})).await;
    for run in 1..4_u64 {
        let mut child = child(
            "",
            "crash::a_child_writes_until_it_is_killed",
            KILLED,
            &file,
        )
        .spawn()
        .expect("started");
        // It has written for some time, which differs from run to run.
        let log = folder.0.join("cache.db-wal");
        let written = || std::fs::metadata(&log).map_or(0, |log| log.len());
        while written() < run * 300_000 {
            assert!(
                child.try_wait().expect("it runs").is_none(),
                "it writes until it is killed"
            );
            time::sleep(Duration::from_millis(5)).await;
        }
        child.kill().expect("killed");
        child.wait().expect("it has ended");
        let process = bench.start(Some(&file)).await;
        assert_eq!(
            names(&process.at(Query::new(), &version).await),
            ["kept", "n1"]
        );
        process.stop().await;
    }
}

#[tokio::test]
async fn a_child_fills_its_disk() {
    let Some(file) = file_of(FULL) else { return };
    let bench = Bench::new().await;
    let process = bench
        .start_with(Some(&file), |builder| {
            builder.wait_timeout(Duration::from_secs(1))
        })
        .await;
    let first = bench.create("first", json!({"size": "1"})).await;
    process.at(Query::new(), &first).await;
    let mut last = first.clone();
    for number in 0..60 {
        let data = json!({"color": "x".repeat(100_000)});
        last = bench.create(&format!("n{number}"), data).await;
    }
    while process.maps.status().last_error.is_none() {
        time::sleep(Duration::from_millis(5)).await;
    }
    // It answers what was written last, and says that it is behind.
    let answer = process.at(Query::new(), &first).await;
    assert!(names(&answer).contains(&"first"));
    let query = Query::new().at_least(last.parse().expect("a version"));
    let error = process
        .maps
        .query(&query)
        .await
        .expect_err("it is not written");
    assert!(
        matches!(error, SqlError::Query(QueryError::Behind { .. })),
        "{error}"
    );
}

#[tokio::test]
async fn a_full_disk_is_reported_and_the_last_state_is_answered() {
    let folder = Folder::new();
    let file = folder.0.join("cache.db");
    // Files are limited to two MB; larger writes fail.
    let before = "trap '' XFSZ; ulimit -f 4096;";
    let mut child = child(before, "crash::a_child_fills_its_disk", FULL, &file);
    let ended = child.status().expect("started");
    assert!(ended.success(), "{ended}");
}
