//! Autoscalers: pods in another namespace, as many as are desired.
//!
//! Shown: objects related by labels, across namespaces; one change per call, from a cache that shows one's own writes;
//! a finalizer where owner references cannot lead; Events.
//!
//! Run: `cargo run --example autoscaler` (embedded cluster), with `KUBECONFIG=…` on a cluster of yours, or with
//! `-- --watch` to make Autoscalers yourself.

use std::process::ExitCode;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use lariat::cluster::testing::{wait_for, wait_until_gone};
use lariat::kube::api::{Api, DeleteParams, PostParams};
use lariat_examples::autoscaler::{Autoscaler, AutoscalerSpec, register};
use lariat_examples::{About, Stage, merge, perform};
use serde_json::json;

const ABOUT: About = About {
    name: "autoscaler",
    what: "an Autoscaler keeps as many pods as it says, in whatever namespace it says",
    flags: &[],
    check: |_| Ok(()),
};

#[tokio::main]
async fn main() -> ExitCode {
    perform(ABOUT, set_up, story).await
}

async fn set_up(stage: &Stage) -> Result<()> {
    stage.define::<Autoscaler>().await?;
    stage.suggest_manifest("autoscaler/web.yaml");
    stage.suggest("k get autoscalers,pods");
    stage.suggest(
        r#"k patch autoscaler web --type merge --patch '{"spec": {"desiredReplicas": 1}}'"#,
    );
    register(&stage.operator)?;
    Ok(())
}

async fn story(stage: &Stage) -> Result<()> {
    let autoscalers = stage.api::<Autoscaler>();
    let blue = stage.another_namespace("blue").await?;
    let green = stage.another_namespace("green").await?;

    stage
        .step("an Autoscaler desires three pods in another namespace: they are created one by one");
    let spec = AutoscalerSpec {
        target_namespace: blue.clone(),
        desired_replicas: 3,
        image: "registry.k8s.io/pause:3.10".to_owned(),
    };
    autoscalers
        .create(&PostParams::default(), &Autoscaler::new("web", spec))
        .await?;
    ready(&autoscalers, 3).await?;

    stage.step("somebody deletes one of them: it is replaced");
    let pods: Api<Pod> = Api::namespaced(stage.client.clone(), &blue);
    pods.delete("web-1", &DeleteParams::default()).await?;
    stage.told(&["created pod"]).await?;
    ready(&autoscalers, 3).await?;

    stage.step("one is enough");
    merge(&autoscalers, "web", json!({"spec": {"desiredReplicas": 1}})).await?;
    ready(&autoscalers, 1).await?;

    stage.step("and in yet another namespace");
    merge(
        &autoscalers,
        "web",
        json!({"spec": {"targetNamespace": green}}),
    )
    .await?;
    let pods: Api<Pod> = Api::namespaced(stage.client.clone(), &green);
    wait_for(&pods, "web-0", |_| true).await?;
    ready(&autoscalers, 1).await?;

    stage.step("the Autoscaler is deleted: it stays until its pods are gone");
    autoscalers.delete("web", &DeleteParams::default()).await?;
    wait_until_gone(&autoscalers, "web").await?;
    Ok(())
}

/// Waits until an Autoscaler has as many pods as are desired.
async fn ready(autoscalers: &Api<Autoscaler>, replicas: u32) -> Result<()> {
    wait_for(autoscalers, "web", |web| is_ready(web, replicas)).await?;
    Ok(())
}

fn is_ready(autoscaler: &Autoscaler, replicas: u32) -> bool {
    let status = autoscaler.status.as_ref();
    status.is_some_and(|status| status.ready && status.available_replicas == replicas)
}
