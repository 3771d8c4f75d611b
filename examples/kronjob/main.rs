//! KronJobs: Jobs at the times of a cron schedule.
//!
//! Shown: owned objects, deciding by the time of day with a clock that is a parameter, requeueing for a moment, names
//! that make a creation happen once, Events, errors in a condition.
//!
//! Run: `cargo run --example kronjob` (embedded cluster), with `KUBECONFIG=…` on a cluster of yours, or with `-- --watch`
//! to make KronJobs yourself. The story plays a minute per second; with `--watch` the clock is the one on the wall.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::batch::v1::Job;
use lariat::cluster::testing::{Wait, wait_until_gone};
use lariat::kube::api::{Api, DeleteParams, ListParams, PostParams};
use lariat_examples::kronjob::{Clock, KronJob, KronJobStatus, register};
use lariat_examples::{About, Stage, merge, perform};
use serde_json::{Value, json};

/// How many seconds of the operator's clock pass in one.
const PACE: u32 = 60;

const ABOUT: About = About {
    name: "kronjob",
    what: "a KronJob starts a Job at every time of its schedule, and keeps the last few",
    flags: &[],
};

#[tokio::main]
async fn main() -> ExitCode {
    perform(ABOUT, set_up, story).await
}

async fn set_up(stage: &Stage) -> Result<()> {
    stage.define::<KronJob>().await?;
    let clock = match stage.options.watch {
        true => Clock::wall(),
        false => Clock::fast(PACE),
    };
    register(&stage.operator, &clock)?;
    Ok(())
}

async fn story(stage: &Stage) -> Result<()> {
    let (kronjobs, jobs) = (stage.api::<KronJob>(), stage.api::<Job>());
    stage.step("the operator's clock goes fast: a minute of it is a second here");
    stage.step(
        "a KronJob for every minute: the last success is kept, and Jobs go an hour after their end",
    );
    let hello = json!({"schedule": "* * * * *", "successfulJobsHistoryLimit": 1, "completedJobsExpirySeconds": 3600});
    create(&kronjobs, "hello", hello, "true").await?;
    until(&kronjobs, "hello", |status| {
        status.last_successful_time.is_some()
    })
    .await?;
    let first = scheduled(&kronjobs, "hello").await?;
    until(&kronjobs, "hello", |status| {
        status.last_schedule_time > first
    })
    .await?;

    stage.step("it is suspended");
    merge(&kronjobs, "hello", json!({"spec": {"suspend": true}})).await?;

    stage.step("another whose Jobs take too long: each is replaced by the next");
    let slow = json!({"schedule": "*/2 * * * *", "concurrencyPolicy": "Replace"});
    create(&kronjobs, "slow", slow, "sleep 3600").await?;
    until(&kronjobs, "slow", |status| {
        status.last_schedule_time.is_some()
    })
    .await?;
    let first = scheduled(&kronjobs, "slow").await?;
    until(&kronjobs, "slow", |status| {
        status.last_schedule_time > first
    })
    .await?;

    stage.step("a schedule that cannot be read: it is said once, and tried again when it changes");
    merge(
        &kronjobs,
        "slow",
        json!({"spec": {"schedule": "every other minute"}}),
    )
    .await?;
    until(&kronjobs, "slow", |status| !is_ready(status)).await?;
    merge(
        &kronjobs,
        "slow",
        json!({"spec": {"schedule": "0 0 1 JAN *"}}),
    )
    .await?;
    until(&kronjobs, "slow", is_ready).await?;

    stage.step("both are deleted, and their Jobs with them");
    for name in ["hello", "slow"] {
        kronjobs.delete(name, &DeleteParams::background()).await?;
    }
    for job in jobs.list(&ListParams::default()).await? {
        wait_until_gone(&jobs, job.metadata.name.as_deref().unwrap_or_default()).await?;
    }
    Ok(())
}

async fn create(kronjobs: &Api<KronJob>, name: &str, mut spec: Value, script: &str) -> Result<()> {
    spec["jobTemplate"] = json!({"image": "busybox:stable", "command": ["sh", "-c", script]});
    let kronjob = KronJob::new(name, serde_json::from_value(spec)?);
    kronjobs.create(&PostParams::default(), &kronjob).await?;
    Ok(())
}

/// Waits until the status of a KronJob is as wanted; images may have to be pulled first.
async fn until(
    kronjobs: &Api<KronJob>,
    name: &str,
    mut wanted: impl FnMut(&KronJobStatus) -> bool,
) -> Result<()> {
    let wait = Wait::new(kronjobs, name).timeout(Duration::from_secs(120));
    let wanted = |kronjob: &KronJob| kronjob.status.as_ref().is_some_and(&mut wanted);
    wait.until("its status is as wanted", wanted).await?;
    Ok(())
}

async fn scheduled(
    kronjobs: &Api<KronJob>,
    name: &str,
) -> Result<Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>> {
    let status = kronjobs.get(name).await?.status;
    Ok(status.and_then(|status| status.last_schedule_time))
}

fn is_ready(status: &KronJobStatus) -> bool {
    let mut ready = status
        .conditions
        .iter()
        .filter(|each| each.type_ == "Ready");
    ready.any(|each| each.status == "True")
}
