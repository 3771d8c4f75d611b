//! What Jobs look like, how long they are kept, and the status.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::api::DeleteParams;
use kube::{CustomResourceExt, ResourceExt};
use lariat::cluster::testing::wait_until_gone;
use lariat::cluster::{Cluster, Workloads};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::bench::{Bench, kronjob, settle};
use super::{HOUR, MINUTE};
use crate::kronjob::{ConcurrencyPolicy, KronJob, SCHEDULED_AT};

#[tokio::test(start_paused = true)]
async fn a_job_is_as_the_template_says_and_belongs_to_its_kronjob() {
    let bench = Bench::running().await;
    let mut wanted = kronjob("*/5 * * * *");
    wanted.spec.job_template.command = vec!["date".to_owned()];
    let owner = bench.create(wanted).await;
    sleep(5 * MINUTE).await;
    let job = serde_json::to_value(&bench.jobs().await[0]).unwrap();
    assert_eq!(
        job["metadata"]["annotations"][SCHEDULED_AT],
        bench.at(5).to_string()
    );
    let reference = &job["metadata"]["ownerReferences"][0];
    assert_eq!(reference["uid"], owner.uid().unwrap());
    assert_eq!(
        (&reference["controller"], &reference["kind"]),
        (&json!(true), &json!("KronJob"))
    );
    assert_eq!(job["spec"]["backoffLimit"], 2);
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["restartPolicy"], "OnFailure");
    let container = &pod["containers"][0];
    assert_eq!(
        (&container["image"], &container["command"]),
        (&json!("busybox:stable"), &json!(["date"]))
    );
    assert_eq!(container["args"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn three_successes_and_one_failure_are_kept() {
    let bench = Bench::running().await;
    bench.create(kronjob("* * * * *")).await;
    for minute in 1..=10 {
        sleep(MINUTE).await;
        let end = if minute % 2 == 0 {
            "Failed"
        } else {
            "Complete"
        };
        bench.finish(minute, end).await;
        settle().await;
    }
    assert_eq!(bench.ticks().await, [5, 7, 9, 10]);
    assert_eq!(bench.cluster.journal().count("delete", "jobs"), 6);
    let status = bench.status().await;
    assert_eq!(status.active, []);
    let last = bench.minute(
        &status
            .last_successful_time
            .expect("the original never wrote it"),
    );
    assert_eq!(last, 9);
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_zero_keeps_nothing_and_starts_nothing_twice() {
    let bench = Bench::running().await;
    let mut wanted = kronjob("*/5 * * * *");
    wanted.spec.successful_jobs_history_limit = 0;
    bench.create(wanted).await;
    sleep(5 * MINUTE).await;
    bench.finish(5, "Complete").await;
    sleep(4 * MINUTE).await;
    assert_eq!(bench.ticks().await, [0; 0]);
    assert_eq!(bench.cluster.journal().count("create", "jobs"), 1);
}

#[tokio::test(start_paused = true)]
async fn jobs_that_are_over_expire_on_time_those_that_failed_too() {
    let schema = serde_json::to_string(&KronJob::crd()).unwrap();
    assert!(
        schema.contains("completedJobsExpirySeconds"),
        "the original's CRD lacked it"
    );
    for end in ["Complete", "Failed"] {
        let bench = Bench::running().await;
        let mut wanted = kronjob("0 * * * *");
        wanted.spec.completed_jobs_expiry_seconds = Some(120);
        bench.create(wanted).await;
        sleep(HOUR).await;
        bench.finish(60, end).await;
        sleep(MINUTE).await;
        assert_eq!(bench.ticks().await, [60], "{end}");
        sleep(MINUTE + Duration::from_secs(2)).await;
        assert_eq!(
            bench.ticks().await,
            [0; 0],
            "{end}: nothing else happens within the hour"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_tries_again_after_a_failed_pod_is_not_over() {
    let bench = Bench::running().await;
    let mut wanted = kronjob("*/5 * * * *");
    wanted.spec.failed_jobs_history_limit = 0;
    bench.create(wanted).await;
    sleep(5 * MINUTE).await;
    bench.job_status(5, json!({"active": 1, "failed": 1})).await;
    settle().await;
    assert_eq!(
        bench.ticks().await,
        [5],
        "the original went by the counters, and deleted it"
    );
    assert_eq!(bench.status().await.active.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_jobs_of_a_deleted_kronjob_are_deleted_with_it() {
    let bench = Bench::running().await;
    bench.create(kronjob("*/5 * * * *")).await;
    sleep(10 * MINUTE).await;
    bench
        .kronjobs
        .delete("hello", &DeleteParams::default())
        .await
        .unwrap();
    for job in bench.jobs().await {
        wait_until_gone(&bench.jobs, &job.name_any()).await.unwrap();
    }
    sleep(10 * MINUTE).await;
    assert_eq!(bench.cluster.journal().count("create", "jobs"), 2);
    assert_eq!(bench.ticks().await, [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn jobs_run_where_pods_run() {
    let pods = Workloads::default().run_time(Duration::from_secs(90));
    let cluster = Cluster::builder().simulate_workloads(pods).for_test().await;
    let bench = Bench::on(cluster).await;
    bench.start().await;
    let mut wanted = kronjob("* * * * *");
    wanted.spec.concurrency_policy = ConcurrencyPolicy::Forbid;
    bench.create(wanted).await;
    sleep(8 * MINUTE).await;
    let succeeded = |job: &Job| {
        job.status
            .as_ref()
            .is_some_and(|status| status.succeeded == Some(1))
    };
    let jobs = bench.jobs().await;
    assert_eq!(
        jobs.iter().filter(|job| succeeded(job)).count(),
        3,
        "as many as are kept"
    );
    let created = bench.cluster.journal().count("create", "jobs");
    assert_eq!(
        created, 5,
        "each takes a minute and a half, and the next one is the latest that was missed meanwhile"
    );
}
