//! Simulated Jobs, on paused time.

use std::time::Duration;

use lariat_cluster::Workloads;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::workloads::{JOBS, PODS, bench, condition, settle, template};

fn job(name: &str, spec: &Value, annotations: Value) -> Value {
    let mut job =
        json!({"metadata": {"name": name}, "spec": {"template": template(name, "i", "Never")}});
    job["spec"]["template"]["metadata"]["annotations"] = annotations;
    for (member, value) in spec.as_object().into_iter().flatten() {
        job["spec"][member] = value.clone();
    }
    job
}

#[tokio::test(start_paused = true)]
async fn a_job_is_complete_when_enough_pods_succeeded() {
    let bench = bench(Workloads::default()).await;
    let spec = json!({"completions": 3, "parallelism": 2, "completionMode": "Indexed"});
    bench.make(JOBS, &job("a", &spec, json!({}))).await;
    settle().await;
    let status = bench.status(&format!("{JOBS}/a")).await;
    assert_eq!(status["succeeded"], 3);
    assert_eq!(status["completedIndexes"], "0-2");
    assert_eq!(condition(&status, "Complete")["status"], "True");
    assert_eq!(
        condition(&status, "SuccessCriteriaMet")["reason"],
        "CompletionsReached"
    );
    assert!(status["startTime"].is_string() && status["completionTime"].is_string());
    assert!(status["active"].is_null());
}

#[tokio::test(start_paused = true)]
async fn a_job_fails_beyond_its_backoff_limit() {
    let bench = bench(Workloads::default()).await;
    let fails = json!({"lariat.dev/exit-code": "3"});
    let spec = json!({"backoffLimit": 1, "ttlSecondsAfterFinished": 60});
    bench.make(JOBS, &job("a", &spec, fails)).await;
    settle().await;
    let path = format!("{JOBS}/a");
    let status = bench.status(&path).await;
    assert_eq!(status["failed"], 2);
    assert_eq!(
        condition(&status, "Failed")["reason"],
        "BackoffLimitExceeded"
    );
    let pods = bench.items(PODS).await;
    let ended = &pods[0]["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!(
        (&ended["exitCode"], &ended["reason"]),
        (&json!(3), &json!("Error"))
    );
    sleep(Duration::from_secs(61)).await;
    bench.get(&path).await.fails(404, "NotFound");
    assert!(bench.items(PODS).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_job_that_takes_too_long_or_is_suspended_stops_its_pods() {
    let bench = bench(Workloads::default()).await;
    let long = json!({"lariat.dev/run-for": "1h"});
    bench
        .make(
            JOBS,
            &job("slow", &json!({"activeDeadlineSeconds": 30}), long.clone()),
        )
        .await;
    bench.make(JOBS, &job("later", &json!({}), long)).await;
    settle().await;
    assert_eq!(bench.items(PODS).await.len(), 2);
    bench
        .merge(&format!("{JOBS}/later"), json!({"spec": {"suspend": true}}))
        .await;
    sleep(Duration::from_secs(30)).await;
    let status = bench.status(&format!("{JOBS}/slow")).await;
    assert_eq!(condition(&status, "Failed")["reason"], "DeadlineExceeded");
    let status = bench.status(&format!("{JOBS}/later")).await;
    assert_eq!(condition(&status, "Suspended")["status"], "True");
    assert!(bench.items(PODS).await.is_empty());
}
