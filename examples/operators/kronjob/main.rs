//! KronJobs: Jobs at the times of a cron schedule.
//!
//! Shown: owned objects, decisions by the wall clock as a parameter, requeuing for a point in time, names that make a
//! creation happen once, Events, errors in a condition.
//!
//! Run: `cargo run -p lariat-operators --example kronjob` (embedded cluster), with `KUBECONFIG=…` on your own cluster,
//! or with `-- --watch` to create KronJobs yourself. In the story a minute passes per second; with `--watch` the real
//! wall clock applies.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::batch::v1::Job;
use lariat::cluster::testing::Wait;
use lariat::kube::api::{Api, DeleteParams, ListParams, PostParams};
use lariat::operator::Conditions;
use lariat_operators::kronjob::{Clock, KronJob, KronJobStatus, register};
use lariat_operators::{About, Stage, TIMEOUT, merge, perform};
use serde_json::json;
use tokio::time::sleep;

/// The number of seconds of the operator's clock that pass in one.
const PACE: u32 = 60;

const NAME: &str = "hello";

const ABOUT: About = About {
    name: "kronjob",
    what: "a KronJob starts Jobs on a schedule, and keeps the last few",
    flags: &[],
    check: |_| Ok(()),
};

#[tokio::main]
async fn main() -> ExitCode {
    perform(ABOUT, set_up, story).await
}

async fn set_up(stage: &Stage) -> Result<()> {
    stage.define::<KronJob>().await?;
    stage.suggest_manifest("kronjob/hello.yaml");
    stage.suggest("k get kronjobs,jobs");
    let clock = if stage.options.watch {
        Clock::wall()
    } else {
        Clock::fast(PACE)
    };
    register(&stage.operator, &clock)?;
    Ok(())
}

async fn story(stage: &Stage) -> Result<()> {
    let (kronjobs, jobs) = (stage.api::<KronJob>(), stage.api::<Job>());
    stage.step("the operator's clock is fast: one minute per second");
    stage.step("a KronJob for every minute, which keeps the last Job that succeeded");
    create(&kronjobs).await?;
    until(&kronjobs, |status| status.last_schedule_time.is_some()).await?;
    another(&kronjobs).await?;

    stage.step("it is suspended for three minutes");
    merge(&kronjobs, NAME, json!({"spec": {"suspend": true}})).await?;
    sleep(3 * Duration::from_secs(60) / PACE).await;

    stage.step("it is resumed: only the latest missed Job is started");
    merge(&kronjobs, NAME, json!({"spec": {"suspend": false}})).await?;
    another(&kronjobs).await?;
    stage
        .until_printed(&["beyond the limit of the history"])
        .await?;

    stage.step("an invalid schedule: the condition Ready is false until it is fixed");
    merge(
        &kronjobs,
        NAME,
        json!({"spec": {"schedule": "every minute"}}),
    )
    .await?;
    until(&kronjobs, |status| !is_ready(status)).await?;
    merge(
        &kronjobs,
        NAME,
        json!({"spec": {"schedule": "* * * * MON-SUN"}}),
    )
    .await?;
    until(&kronjobs, is_ready).await?;
    another(&kronjobs).await?;

    stage.step("the KronJob is deleted, and its Jobs with it");
    kronjobs.delete(NAME, &DeleteParams::background()).await?;
    for job in jobs.list(&ListParams::default()).await? {
        let name = job.metadata.name.as_deref().unwrap_or_default();
        // The garbage collector discovers new kinds, such as the owner's, every half minute.
        Wait::new(&jobs, name).timeout(TIMEOUT).gone().await?;
    }
    Ok(())
}

async fn create(kronjobs: &Api<KronJob>) -> Result<()> {
    let command = ["sh", "-c", "date"];
    let spec = json!({
        "schedule": "* * * * *",
        "jobTemplate": {"image": "busybox:stable", "command": command},
        "successfulJobsHistoryLimit": 1,
    });
    let kronjob = KronJob::new(NAME, serde_json::from_value(spec)?);
    kronjobs.create(&PostParams::default(), &kronjob).await?;
    Ok(())
}

/// Waits until another Job was started.
async fn another(kronjobs: &Api<KronJob>) -> Result<()> {
    let last = |status: &KronJobStatus| status.last_schedule_time.clone();
    let before = kronjobs.get(NAME).await?.status.as_ref().and_then(last);
    until(kronjobs, |status| last(status) > before).await
}

/// Waits until the status satisfies a condition; images may have to be pulled first.
async fn until(
    kronjobs: &Api<KronJob>,
    mut wanted: impl FnMut(&KronJobStatus) -> bool,
) -> Result<()> {
    let wait = Wait::new(kronjobs, NAME).timeout(TIMEOUT);
    let wanted = |kronjob: &KronJob| kronjob.status.as_ref().is_some_and(&mut wanted);
    wait.until("its status is as wanted", wanted).await?;
    Ok(())
}

fn is_ready(status: &KronJobStatus) -> bool {
    Conditions::is_true(&status.conditions, "Ready")
}
