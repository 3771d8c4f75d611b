//! Simulated CronJobs, on paused time.

use std::time::Duration;

use http::StatusCode;
use lariat_cluster::Workloads;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::bench::{Bench, text};
use crate::workloads::bench;

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const CRON_JOBS: &str = "/apis/batch/v1/namespaces/default/cronjobs";

const HOUR: Duration = Duration::from_secs(3600);

/// Waits until an hour has just begun, so that what is due when does not depend on the time of day.
async fn begin_hour(bench: &Bench) {
    let map = bench.config_map("clock", json!({})).await;
    let now = text(&map, "/metadata/creationTimestamp");
    let number =
        |range: std::ops::Range<usize>| now.get(range).and_then(|part| part.parse::<u64>().ok());
    let (minutes, seconds) = (number(14..16), number(17..19));
    let passed = minutes.unwrap_or(0) * 60 + seconds.unwrap_or(0);
    sleep(HOUR - Duration::from_secs(passed) + Duration::from_secs(10)).await;
}

async fn make(bench: &Bench, schedule: &str, spec: Value, run_for: &str) -> String {
    begin_hour(bench).await;
    let mut object = json!({"metadata": {"name": "c"}, "spec": {
        "schedule": schedule,
        "jobTemplate": {
            "metadata": {"labels": {"app": "c"}},
            "spec": {"template": {
                "metadata": {"annotations": {"lariat.dev/run-for": run_for}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
            }},
        },
    }});
    for (member, value) in spec.as_object().into_iter().flatten() {
        object["spec"][member] = value.clone();
    }
    let answer = bench.post(CRON_JOBS, &object).await;
    assert_eq!(answer.code, StatusCode::CREATED, "{}", answer.text);
    format!("{CRON_JOBS}/c")
}

async fn jobs(bench: &Bench) -> Vec<Value> {
    let list = bench.get(JOBS).await.json();
    list["items"].as_array().expect("a list has items").clone()
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_makes_a_job_at_every_time_and_keeps_the_last_three() {
    let bench = bench(Workloads::default()).await;
    let path = make(&bench, "@hourly", json!({}), "1s").await;
    sleep(Duration::from_secs(1)).await;
    assert!(jobs(&bench).await.is_empty(), "nothing is due yet");
    sleep(HOUR).await;
    let first = jobs(&bench).await;
    assert_eq!(first.len(), 1);
    let owner = &first[0]["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["controller"]),
        (&json!("CronJob"), &json!(true))
    );
    assert_eq!(first[0]["metadata"]["labels"]["app"], "c");
    let cron = bench.get(&path).await.json();
    let last = text(&cron, "/status/lastScheduleTime");
    let scheduled =
        &first[0]["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"];
    assert_eq!(scheduled, last);
    assert!(last.ends_with(":00:00Z"), "{last}");
    sleep(HOUR * 5).await;
    let kept = jobs(&bench).await;
    assert_eq!(kept.len(), 3, "{kept:#?}");
    let cron = bench.get(&path).await.json();
    assert!(cron["status"]["active"].is_null());
    assert!(text(&cron, "/status/lastSuccessfulTime") >= text(&cron, "/status/lastScheduleTime"));
}

#[tokio::test(start_paused = true)]
async fn one_job_waits_for_the_other_where_they_may_not_run_together() {
    let bench = bench(Workloads::default()).await;
    let spec = json!({"concurrencyPolicy": "Forbid"});
    // Longer than it takes to the third full hour, whatever the minute is now.
    let path = make(&bench, "0 * * * *", spec, "170m").await;
    sleep(HOUR * 2).await;
    assert_eq!(jobs(&bench).await.len(), 1);
    let cron = bench.get(&path).await.json();
    let active = cron["status"]["active"].as_array();
    assert_eq!(active.map(Vec::len), Some(1));
    sleep(HOUR * 2).await;
    assert_eq!(jobs(&bench).await.len(), 2, "the first is over by now");
}

#[tokio::test(start_paused = true)]
async fn a_job_takes_the_place_of_the_one_before_it() {
    let bench = bench(Workloads::default()).await;
    let spec = json!({"concurrencyPolicy": "Replace"});
    make(&bench, "0 * * * *", spec, "100h").await;
    sleep(HOUR).await;
    let first = jobs(&bench).await;
    sleep(HOUR).await;
    let second = jobs(&bench).await;
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_ne!(first[0]["metadata"]["name"], second[0]["metadata"]["name"]);
}

#[tokio::test(start_paused = true)]
async fn a_suspended_cron_job_does_nothing_and_catches_up_once() {
    let bench = bench(Workloads::default()).await;
    let spec = json!({"suspend": true, "startingDeadlineSeconds": 36000});
    let path = make(&bench, "0 * * * *", spec, "1s").await;
    sleep(HOUR * 5).await;
    assert!(jobs(&bench).await.is_empty());
    bench
        .merge(&path, json!({"spec": {"suspend": false}}))
        .await;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(
        jobs(&bench).await.len(),
        1,
        "only the last missed time counts"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_too_late_is_left_out() {
    let bench = bench(Workloads::default()).await;
    let spec = json!({"suspend": true, "startingDeadlineSeconds": 1});
    let path = make(&bench, "0 0 1 1 *", spec, "1s").await;
    sleep(HOUR * 24 * 500).await;
    bench
        .merge(&path, json!({"spec": {"suspend": false}}))
        .await;
    sleep(Duration::from_secs(10)).await;
    assert!(jobs(&bench).await.is_empty());
}
