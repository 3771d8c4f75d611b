//! Autoscalers that count pods, and compute how many there should be.
//!
//! Shown: objects related by a label, by its old and its new value; a status that is applied only if it differs;
//! requeuing after a while.
//!
//! Run: `cargo run -p lariat-operators --example cpu_autoscaler` (embedded cluster), with `KUBECONFIG=…` on your own
//! cluster, or with `-- --watch` to create Autoscalers and pods yourself.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use lariat::Operator;
use lariat::cluster::testing::Wait;
use lariat::kube::api::PostParams;
use lariat_operators::cpu_autoscaler::{AUTOSCALER, Autoscaler, register};
use lariat_operators::{About, Stage, delete, merge, perform};
use serde_json::json;

const ABOUT: About = About {
    name: "cpu_autoscaler",
    what: "an Autoscaler counts the pods it selects, and computes how many there should be",
    flags: &[],
    check: |_| Ok(()),
};

#[tokio::main]
async fn main() -> ExitCode {
    perform(ABOUT, set_up, story).await
}

async fn set_up(stage: &Stage) -> Result<()> {
    stage.define::<Autoscaler>().await?;
    stage.suggest_manifest("cpu_autoscaler/web.yaml");
    stage.suggest(format_args!(
        "k run web-0 --image registry.k8s.io/pause:3.10 --labels tier=web,{AUTOSCALER}=web"
    ));
    stage.suggest("k get autoscalers");
    // Its own operator, on the same factory, with the name under which the original applied the status.
    register(&Operator::new("autoscaler", &stage.factory))?;
    Ok(())
}

async fn story(stage: &Stage) -> Result<()> {
    let pods = stage.api::<Pod>();
    stage.step("two Autoscalers without pods");
    create(
        stage,
        "web",
        json!({"selector": {"tier": "web"}, "minReplicas": 2, "maxReplicas": 3}),
    )
    .await?;
    create(
        stage,
        "batch",
        json!({"selector": {"tier": "batch"}, "maxReplicas": 5}),
    )
    .await?;
    shows(stage, "web", 0, 2).await?;
    shows(stage, "batch", 0, 1).await?;

    stage.step("four pods of the first: one more than its maximum");
    for number in 0..4 {
        create_pod(stage, &format!("web-{number}"), "web").await?;
    }
    shows(stage, "web", 4, 3).await?;

    stage.step("a pod is relabelled for the second: both are reconciled");
    let labels = json!({"metadata": {"labels": {AUTOSCALER: "batch", "tier": "batch"}}});
    merge(&pods, "web-0", labels).await?;
    shows(stage, "web", 3, 3).await?;
    shows(stage, "batch", 1, 1).await?;

    stage.step("two pods of the first are deleted: one less than its minimum");
    for name in ["web-1", "web-2"] {
        delete(&pods, name).await?;
    }
    shows(stage, "web", 1, 2).await
}

async fn create(stage: &Stage, name: &str, spec: serde_json::Value) -> Result<()> {
    let autoscaler = Autoscaler::new(name, serde_json::from_value(spec)?);
    stage
        .api()
        .create(&PostParams::default(), &autoscaler)
        .await?;
    Ok(())
}

async fn create_pod(stage: &Stage, name: &str, tier: &str) -> Result<()> {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {AUTOSCALER: tier, "tier": tier}},
        "spec": {"containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]},
    }))?;
    stage.api().create(&PostParams::default(), &pod).await?;
    Ok(())
}

/// Waits until an Autoscaler shows these numbers of pods; images may have to be pulled first.
async fn shows(stage: &Stage, name: &str, current: u32, desired: u32) -> Result<()> {
    let is_shown = |autoscaler: &Autoscaler| {
        let status = autoscaler.status.as_ref();
        status.is_some_and(|status| {
            (status.current_replicas, status.desired_replicas) == (current, desired)
        })
    };
    let wait = Wait::new(&stage.api::<Autoscaler>(), name).timeout(Duration::from_secs(120));
    wait.until("its status is as wanted", is_shown).await?;
    Ok(())
}
