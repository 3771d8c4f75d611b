//! Cleans up outside of the cluster before an object is removed.
//!
//! A ConfigMap with a key `bucket` has a bucket in a cloud. A finalizer keeps a deleted ConfigMap until its bucket is
//! deleted, also while this program does not run.
//!
//! Run: `cargo run --example finalizer` (on an embedded cluster, in this process), or with `KUBECONFIG=…` on yours.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use lariat::cluster::Sandbox;
use lariat::cluster::testing::{config_map, wait_until_gone};
use lariat::kube::ResourceExt;
use lariat::kube::api::{Api, DeleteParams};
use lariat::operator::Finalizer;
use lariat::prelude::*;
use tokio::time::sleep;

const FINALIZER: &str = "demo.dev/bucket";

/// The buckets in the cloud.
type Cloud = Arc<Mutex<BTreeSet<String>>>;

/// Called for each change, once the finalizer is on the object.
async fn reconcile(cx: Reconcile<ConfigMap>, cloud: Cloud) -> HandlerResult {
    if let Some(bucket) = bucket(cx.object())
        && cloud.lock().expect("no panics").insert(bucket.clone())
    {
        println!(
            "  {bucket} is created; finalizers: {:?}",
            cx.object().finalizers()
        );
    }
    Ok(Outcome::done())
}

/// Called instead for a deleted object, until it succeeds; then the finalizer is removed.
async fn clean_up(cx: Reconcile<ConfigMap>, cloud: Cloud) -> HandlerResult {
    let Some(bucket) = bucket(cx.object()) else {
        return Ok(Outcome::done());
    };
    if cx.attempt() < 3 {
        println!("  {bucket} is not deleted: the cloud is busy");
        return Err("the cloud is busy".into());
    }
    // Cleanup may be repeated, so a bucket that does not exist any more is no error.
    cloud.lock().expect("no panics").remove(bucket);
    println!("  {bucket} is deleted");
    Ok(Outcome::done())
}

fn bucket(map: &ConfigMap) -> Option<&String> {
    map.data.as_ref()?.get("bucket")
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Without a log, to keep the output short.
    tracing_subscriber::fmt().with_writer(std::io::sink).init();
    let sandbox = Sandbox::open().await?;
    let (client, cloud) = (sandbox.client(), Cloud::default());
    let builder = SharedControllerFactory::builder(client.clone());
    let factory = builder.default_options(sandbox.options()).build();
    let operator = Operator::new("buckets", &factory);
    let (creates, cleans) = (cloud.clone(), cloud.clone());
    let finalizer = Finalizer::new(FINALIZER).when(|map| bucket(map).is_some());
    operator
        .reconciler("buckets", &factory.for_object::<ConfigMap>())
        .finalizer(finalizer, move |cx| clean_up(cx, cleans.clone()))
        .register(move |cx| reconcile(cx, creates.clone()))?;
    operator.start(2).await?;

    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    println!("▸ a ConfigMap is created");
    let images = config_map("images", &[("bucket", "shop-images")]);
    images
        .namespace(sandbox.namespace())
        .create(&client)
        .await?;
    sleep(Duration::from_millis(500)).await;
    println!("▸ it is deleted");
    maps.delete("images", &DeleteParams::default()).await?;
    wait_until_gone(&maps, "images").await?;
    println!("▸ it is removed");
    operator.stop().await?;
    Ok(sandbox.close().await?)
}
