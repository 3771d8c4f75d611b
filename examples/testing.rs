//! Tests of a controller: a cluster for each test, faults on request, and time that does not pass.
//!
//! The functions below are tests as they stand in a crate's `tests` folder, with `#[tokio::test(start_paused = true)]`
//! above each. tokio's feature `test-util` pauses the clock: a wait ends as soon as nothing is left to do before.
//!
//! Run: `cargo run --example testing`. These tests need the embedded cluster; those without faults run on any.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use lariat::cluster::Cluster;
use lariat::cluster::faults::{Action, Refusal, Rule};
use lariat::cluster::testing::{TestCluster, config_map, wait_for, wait_until_gone};
use lariat::kube::api::{Api, DeleteParams};
use lariat::prelude::*;
use serde_json::json;
use tokio::time::Instant;

/// What is tested: each ConfigMap is copied into a Secret.
async fn copy(cx: Reconcile<ConfigMap>) -> HandlerResult {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": cx.key().name()}, "stringData": cx.object().data,
    });
    cx.apply(Desired::new().with_value(secret)).await?;
    Ok(Outcome::done())
}

async fn start() -> Result<(TestCluster, Operator, Api<Secret>)> {
    let cluster = Cluster::for_test().await;
    let factory = SharedControllerFactory::builder(cluster.client()).build();
    let operator = Operator::new("copy", &factory);
    let (maps, secrets) = (factory.for_object(), factory.for_object::<Secret>());
    let reconciler = operator.reconciler("copy", &maps).owns(&secrets);
    reconciler.register(copy)?;
    operator.start(2).await?;
    let secrets = Api::namespaced(cluster.client(), "default");
    Ok((cluster, operator, secrets))
}

async fn a_config_map_is_copied_and_the_copy_is_deleted_with_it() -> Result<()> {
    let (cluster, operator, secrets) = start().await?;
    let map = config_map("sky", &[("colour", "blue")]);
    map.create(&cluster.client()).await?;
    let copy = wait_for(&secrets, "sky", |secret| secret.data.is_some()).await?;
    assert_eq!(copy.data.unwrap_or_default()["colour"].0, b"blue");
    let maps = map.api(&cluster.client());
    maps.delete("sky", &DeleteParams::default()).await?;
    wait_until_gone(&secrets, "sky").await?;
    cluster.journal().assert_one_watch("secrets");
    Ok(operator.stop().await?)
}

async fn a_refused_request_is_retried() -> Result<()> {
    let (cluster, operator, secrets) = start().await?;
    // The first three writes of Secrets are answered 429, to be tried again after a minute.
    let busy = Refusal::too_many_requests().retry_after(Duration::from_secs(60));
    let rule = Rule::new(Action::Refuse(busy)).verb("patch");
    cluster.faults().add(rule.resource("secrets").times(3));
    let began = Instant::now();
    config_map("sky", &[]).create(&cluster.client()).await?;
    let wait = cluster.wait(&secrets, "sky").timeout(Duration::MAX);
    wait.until("it exists", |_| true).await?;
    assert!(began.elapsed() >= Duration::from_secs(120));
    Ok(operator.stop().await?)
}

async fn a_change_during_an_outage_is_not_lost() -> Result<()> {
    let (cluster, operator, secrets) = start().await?;
    cluster.cut_watches();
    config_map("sky", &[]).create(&cluster.client()).await?;
    // The history is forgotten, so the operator has to list again.
    cluster.compact();
    wait_for(&secrets, "sky", |_| true).await?;
    Ok(operator.stop().await?)
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<()> {
    // Without a log, to keep the output short.
    tracing_subscriber::fmt().with_writer(std::io::sink).init();
    let began = Instant::now();
    a_config_map_is_copied_and_the_copy_is_deleted_with_it().await?;
    a_refused_request_is_retried().await?;
    a_change_during_an_outage_is_not_lost().await?;
    println!(
        "3 tests passed; the paused clock says {:.0?}",
        began.elapsed()
    );
    Ok(())
}
