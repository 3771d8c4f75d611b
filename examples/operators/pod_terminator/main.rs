//! Kills random pods every second: chaos, with a finalizer that ends it.
//!
//! Run: `cargo run -p lariat-operators --example pod_terminator` (on the embedded cluster), or with `KUBECONFIG=…` on
//! your own cluster, where it sees, and kills, pods of its own namespace only. With `-- --seed 7` the same pods are
//! chosen each time. With `-- --watch` create PodTerminators yourself, in the namespace that it prints.

mod crowd;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;
use lariat::cache::KindOptions;
use lariat::cluster::testing::wait_until_gone;
use lariat::kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat::prelude::*;
use lariat::{FactoryBuilder, Selection};
use lariat_operators::pod_terminator::{self, PodTerminator};
use lariat_operators::{About, Flag, Options, RUN, Stage, only_in, perform_with};
use serde_json::{Value, json};
use tokio::time::sleep;

const ABOUT: About = About {
    name: "pod_terminator",
    what: "background tasks of a reconciler, which end before a finalizer is removed",
    flags: &[Flag {
        name: "seed",
        default: "random",
        help: "the seed that decides which pods are killed",
    }],
    check: |options| random(options).map(drop),
};

#[tokio::main]
async fn main() -> ExitCode {
    perform_with(ABOUT, configure, set_up, story).await
}

/// Restricts the caches to the example's own objects.
fn configure(_: &Options, namespace: &str, builder: FactoryBuilder) -> Result<FactoryBuilder> {
    let ours = Selection::all().with_labels(format!("{RUN}={namespace}").parse()?);
    let ours = ControllerOptions::default().cache(KindOptions::default().selection(ours));
    let terminator = Gvk::new("chaos.spotahome.com", "v1alpha1", "PodTerminator");
    Ok(builder
        .kind_options(terminator, ours)
        .kind_options(Gvk::new("", "v1", "Pod"), only_in(namespace)))
}

/// Returns a random generator with the given seed, or a random seed for `random`.
fn random(options: &Options) -> Result<Rng> {
    match &*options.value::<String>("seed")? {
        "random" => Ok(Rng::new()),
        _ => Ok(Rng::with_seed(options.value("seed")?)),
    }
}

async fn set_up(stage: &Stage) -> Result<()> {
    stage.define::<PodTerminator>().await?;
    let random = random(&stage.options)?;
    stage.suggest("k create deployment web --image registry.k8s.io/pause:3.10 --replicas 10");
    stage.suggest_manifest("pod_terminator/half.yaml");
    stage.suggest("k get podterminators,pods");
    pod_terminator::register(&stage.operator, &stage.tasks, random)
}

async fn story(stage: &Stage) -> Result<()> {
    let terminators: Api<PodTerminator> = Api::all(stage.client.clone());
    let name = stage.namespace.replace("pod-terminator", "chaos");
    stage.step("a Deployment with ten pods");
    crowd::ten_pods(stage).await?;

    stage.step("half of them every second, as a dry run");
    let terminator = json!({
        "apiVersion": "chaos.spotahome.com/v1alpha1", "kind": "PodTerminator",
        "metadata": {"name": name, "labels": {RUN: stage.namespace}},
        "spec": {
            "selector": {"app": "web"}, "namespace": stage.namespace,
            "periodSeconds": 1, "terminationPercent": 50, "dryRun": true,
        },
    });
    let terminator = serde_json::from_value(terminator)?;
    terminators
        .create(&PostParams::default(), &terminator)
        .await?;
    stage.until_printed(&["would kill 5 of 10"]).await?;

    stage.step("without dry run; seven must stay, and the Deployment replaces killed pods");
    let before = crowd::pods(stage).await?;
    let spec = json!({"dryRun": false, "minimumInstances": 7});
    change(&terminators, &name, &spec).await?;
    crowd::gone(stage, &before, 3).await?;
    stage.until_printed(&["killed 3 of 10"]).await?;

    stage.step("a dry run again, until the Deployment has replaced the killed pods");
    // New pods may take longer to become ready than a round takes to find them.
    change(&terminators, &name, &json!({"dryRun": true})).await?;
    crowd::all_ready(stage).await?;

    stage.step("a quarter of them, without a minimum: a new spec starts a new killer");
    let before = crowd::pods(stage).await?;
    let spec = json!({"dryRun": false, "terminationPercent": 25, "minimumInstances": 0});
    change(&terminators, &name, &spec).await?;
    crowd::gone(stage, &before, 2).await?;
    stage.until_printed(&["killed 2 of 10"]).await?;

    stage.step("the PodTerminator is deleted; its finalizer keeps it until the killer has ended");
    terminators.delete(&name, &DeleteParams::default()).await?;
    wait_until_gone(&terminators, &name).await?;
    crowd::all_ready(stage).await?;
    let before = crowd::pods(stage).await?;
    sleep(Duration::from_millis(1300)).await;
    let after = crowd::pods(stage).await?;
    let left = before.iter().filter(|uid| after.contains(uid)).count();
    stage.step(format_args!(
        "more than a second later, {left} of {} pods live on",
        before.len()
    ));
    Ok(())
}

async fn change(terminators: &Api<PodTerminator>, name: &str, spec: &Value) -> Result<()> {
    let patch = Patch::Merge(json!({"spec": spec}));
    terminators
        .patch(name, &PatchParams::default(), &patch)
        .await?;
    Ok(())
}
