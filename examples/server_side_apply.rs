//! Applies a set of objects: creates the missing ones, corrects others, and deletes those no longer desired.
//!
//! A ConfigMap with a list of names gets a Secret for each of them.
//!
//! Run: `cargo run --example server_side_apply` (on an embedded cluster), or with `KUBECONFIG=…` on yours.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use lariat::cluster::Sandbox;
use lariat::cluster::testing::config_map;
use lariat::kube::ResourceExt;
use lariat::kube::api::{Api, DeleteParams, Patch, PatchParams};
use lariat::prelude::*;
use serde_json::json;
use tokio::time::sleep;

async fn reconcile(cx: Reconcile<ConfigMap>) -> HandlerResult {
    let data = cx.object().data.as_ref();
    let Some(names) = data.and_then(|data| data.get("names")) else {
        return Ok(Outcome::done());
    };
    let mut desired = Desired::new();
    for name in names.split_whitespace() {
        // Fields that are left out belong to others.
        desired = desired.with_value(json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": name}, "stringData": {"user": name},
        }));
    }
    // Sends a request for each object that differs from the cached one.
    let applied = cx.apply(desired).await?;
    println!("  {applied}: {}", cx.causes());
    Ok(Outcome::done())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Without a log, to keep the output short.
    tracing_subscriber::fmt().with_writer(std::io::sink).init();
    let sandbox = Sandbox::open().await?;
    let client = sandbox.client();
    let builder = SharedControllerFactory::builder(client.clone());
    let factory = builder.default_options(sandbox.options()).build();
    let operator = Operator::new("users", &factory);
    operator
        .reconciler("users", &factory.for_object::<ConfigMap>())
        // A changed Secret calls the reconciler for its owner.
        .owns(&factory.for_object::<Secret>())
        .register(reconcile)?;
    operator.start(2).await?;

    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let (params, users) = (
        PatchParams::default(),
        config_map("users", &[("names", "ann ben")]),
    );
    println!("▸ two names");
    users.namespace(sandbox.namespace()).create(&client).await?;
    print(&secrets).await?;
    println!("▸ ben is renamed: one Secret is created, one is deleted");
    let names = Patch::Merge(json!({"data": {"names": "ann cid"}}));
    maps.patch("users", &params, &names).await?;
    print(&secrets).await?;
    println!("▸ a Secret is deleted by hand");
    secrets.delete("cid", &DeleteParams::default()).await?;
    print(&secrets).await?;
    println!("▸ a field is changed by hand, and a label is added");
    let change = json!({"metadata": {"labels": {"by": "hand"}}, "stringData": {"user": "eve"}});
    secrets.patch("ann", &params, &Patch::Merge(change)).await?;
    print(&secrets).await?;
    operator.stop().await?;
    Ok(sandbox.close().await?)
}

/// Lets the operator work, and prints the Secrets.
async fn print(secrets: &Api<Secret>) -> anyhow::Result<()> {
    sleep(Duration::from_millis(700)).await;
    for secret in secrets.list(&Default::default()).await? {
        let data = secret.data.clone().unwrap_or_default();
        let user = String::from_utf8_lossy(&data["user"].0);
        println!(
            "    Secret {}: user={user} {:?}",
            secret.name_any(),
            secret.labels().get("by")
        );
    }
    Ok(())
}
