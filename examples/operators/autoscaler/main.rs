//! Autoscalers: a desired number of pods in another namespace.
//!
//! Shown: objects related by labels, across namespaces; one change per call, with a cache that contains the operator's
//! own writes; a finalizer where owner references are not possible; Events.
//!
//! Run: `cargo run -p lariat-operators --example autoscaler` (embedded cluster), with `KUBECONFIG=…` on your own
//! cluster, or with `-- --watch` to create Autoscalers yourself.

use std::process::ExitCode;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use lariat::cluster::testing::{wait_for, wait_until_gone};
use lariat::kube::api::{Api, DeleteParams, PostParams};
use lariat::{FactoryBuilder, Gvk};
use lariat_operators::autoscaler::{Autoscaler, AutoscalerSpec, register};
use lariat_operators::{About, Options, Stage, merge, only_in, perform_with};
use serde_json::json;

const ABOUT: About = About {
    name: "autoscaler",
    what: "an Autoscaler keeps a desired number of pods in a target namespace",
    flags: &[],
    check: |_| Ok(()),
};

#[tokio::main]
async fn main() -> ExitCode {
    perform_with(ABOUT, configure, set_up, story).await
}

/// Autoscalers of other namespaces are left alone; pods are in any namespace.
fn configure(_: &Options, namespace: &str, builder: FactoryBuilder) -> Result<FactoryBuilder> {
    let autoscalers = Gvk::new("test.skuber.io", "v1", "Autoscaler");
    Ok(builder.kind_options(autoscalers, only_in(namespace)))
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

    stage.step("an Autoscaler with three pods in another namespace: they are created one by one");
    let spec = AutoscalerSpec {
        target_namespace: blue.clone(),
        desired_replicas: 3,
        image: "registry.k8s.io/pause:3.10".to_owned(),
    };
    autoscalers
        .create(&PostParams::default(), &Autoscaler::new("web", spec))
        .await?;
    ready(&autoscalers, 3).await?;

    stage.step("one of them is deleted: it is replaced");
    let pods: Api<Pod> = Api::namespaced(stage.client.clone(), &blue);
    pods.delete("web-1", &DeleteParams::default()).await?;
    stage.until_printed(&["created pod"]).await?;
    ready(&autoscalers, 3).await?;

    stage.step("it is scaled down to one");
    merge(&autoscalers, "web", json!({"spec": {"desiredReplicas": 1}})).await?;
    ready(&autoscalers, 1).await?;

    stage.step("its target namespace is changed");
    merge(
        &autoscalers,
        "web",
        json!({"spec": {"targetNamespace": green}}),
    )
    .await?;
    let pods: Api<Pod> = Api::namespaced(stage.client.clone(), &green);
    wait_for(&pods, "web-0", |_| true).await?;
    ready(&autoscalers, 1).await?;

    stage.step("the Autoscaler is deleted: its finalizer keeps it until its pods are deleted");
    autoscalers.delete("web", &DeleteParams::default()).await?;
    wait_until_gone(&autoscalers, "web").await?;
    Ok(())
}

/// Waits until an Autoscaler has the desired number of pods.
async fn ready(autoscalers: &Api<Autoscaler>, replicas: u32) -> Result<()> {
    wait_for(autoscalers, "web", |web| is_ready(web, replicas)).await?;
    Ok(())
}

fn is_ready(autoscaler: &Autoscaler, replicas: u32) -> bool {
    let status = autoscaler.status.as_ref();
    status.is_some_and(|status| status.ready && status.available_replicas == replicas)
}
