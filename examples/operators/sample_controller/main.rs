//! The sample-controller of Kubernetes: Foos, and the Deployments they own.
//!
//! Shown: an object that is derived from another and kept up to date, status, conflicts with other owners, cascading
//! deletion.
//!
//! Run: `cargo run -p lariat-operators --example sample_controller` (embedded cluster), with `KUBECONFIG=…` on your own
//! cluster, or with `-- --watch` to create Foos yourself.

use std::process::ExitCode;

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Event;
use lariat::cluster::testing::{Wait, deployment, eventually, wait_for, wait_until_gone};
use lariat::kube::api::{Api, DeleteParams, ListParams, PostParams};
use lariat_operators::sample_controller::{Foo, FooSpec, register};
use lariat_operators::{About, Stage, TIMEOUT, delete, merge, perform};
use serde_json::json;

const ABOUT: About = About {
    name: "sample_controller",
    what: "a Foo owns a Deployment, keeps it up to date, and reports its available pods",
    flags: &[],
    check: |_| Ok(()),
};

#[tokio::main]
async fn main() -> ExitCode {
    perform(ABOUT, set_up, story).await
}

async fn set_up(stage: &Stage) -> Result<()> {
    stage.define::<Foo>().await?;
    stage.suggest_manifest("sample_controller/shop.yaml");
    stage.suggest("k scale deployment web --replicas 1");
    stage.suggest("k get foos,deployments");
    register(&stage.operator)
}

async fn story(stage: &Stage) -> Result<()> {
    let (foos, deployments) = (stage.api::<Foo>(), stage.api::<Deployment>());
    stage.step("a Foo is created: it gets its Deployment");
    create(&foos, "shop", "web", 2).await?;
    stage.until_printed(&["Synced", "1 created"]).await?;
    available(&foos, "shop", 2).await?;

    stage.step("the Foo is scaled up");
    merge(&foos, "shop", json!({"spec": {"replicas": 3}})).await?;
    stage.until_printed(&["Synced", "1 changed"]).await?;
    available(&foos, "shop", 3).await?;

    stage.step("the Deployment is scaled by hand: the Foo scales it back");
    merge(&deployments, "web", json!({"spec": {"replicas": 1}})).await?;
    stage.until_printed(&["Synced", "1 changed"]).await?;
    available(&foos, "shop", 3).await?;

    stage.step("the Foo is given the name of a foreign Deployment, which is left alone");
    let other = deployment("taken", 0).namespace(&stage.namespace);
    other.create(&stage.client).await?;
    wait_for(&deployments, "taken", is_settled).await?;
    merge(&foos, "shop", json!({"spec": {"deploymentName": "taken"}})).await?;
    stage.until_printed(&["already exists"]).await?;
    refused(stage).await?;

    stage.step(
        "the foreign Deployment is deleted: the Foo takes the name, and its old one is deleted",
    );
    delete(&deployments, "taken").await?;
    stage.until_printed(&["1 created, 1 pruned"]).await?;
    wait_until_gone(&deployments, "web").await?;
    available(&foos, "shop", 3).await?;

    stage.step("the Foo is deleted, and the Deployment with it");
    foos.delete("shop", &DeleteParams::foreground()).await?;
    // The garbage collector discovers new kinds, such as Foo, every half minute.
    let wait = Wait::new(&deployments, "taken").timeout(TIMEOUT);
    Ok(wait.gone().await?)
}

async fn create(foos: &Api<Foo>, name: &str, deployment: &str, replicas: i32) -> Result<()> {
    let spec = FooSpec {
        deployment_name: deployment.to_owned(),
        replicas: Some(replicas),
    };
    foos.create(&PostParams::default(), &Foo::new(name, spec))
        .await?;
    Ok(())
}

/// Waits until a Foo reports this many available pods.
async fn available(foos: &Api<Foo>, name: &str, replicas: i32) -> Result<()> {
    let is_reached = |foo: &Foo| {
        let status = foo.status.as_ref();
        status.is_some_and(|status| status.available_replicas == replicas)
    };
    // Images may have to be pulled first.
    let wait = Wait::new(foos, name).timeout(TIMEOUT);
    wait.until("its pods are available", is_reached).await?;
    Ok(())
}

fn is_settled(deployment: &Deployment) -> bool {
    let status = deployment.status.as_ref();
    status.is_some_and(|status| status.observed_generation.is_some())
}

/// Waits until an Event reports the conflict.
async fn refused(stage: &Stage) -> Result<()> {
    let events: Api<Event> = stage.api();
    let look = async || {
        let events = events.list(&ListParams::default()).await;
        let events = events.map_err(|error| error.to_string())?;
        let is_told = |event: &Event| event.reason.as_deref() == Some("ErrResourceExists");
        events
            .items
            .iter()
            .any(is_told)
            .then_some(())
            .ok_or_else(|| "no Event yet".to_owned())
    };
    Ok(eventually(TIMEOUT, look).await?)
}
