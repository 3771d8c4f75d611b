//! A kind of your own: derived from a struct, installed at the start, validated by the API server.
//!
//! The dependencies are `kube` (feature `derive`), `schemars` and `serde`.
//!
//! Run: `cargo run --example custom_resource` (on an embedded cluster), or with `KUBECONFIG=…` on yours.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lariat::cluster::Sandbox;
use lariat::kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat::kube::{CustomResource, CustomResourceExt};
use lariat::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::sleep;

/// A backup of a database. The comments become the descriptions of `kubectl explain backup`.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "demo.dev", version = "v1", kind = "Backup", namespaced)]
#[kube(printcolumn(name = "Every", type_ = "integer", json_path = ".spec.everyHours"))]
// A rule over several fields, in CEL.
#[kube(validation = Rule::new("self.spec.keep * self.spec.everyHours <= 720").message("a month at most"))]
#[serde(rename_all = "camelCase")]
struct BackupSpec {
    /// The name of the database.
    #[schemars(length(min = 1, max = 63))]
    database: String,
    /// The hours between two backups.
    #[serde(default = "a_day")]
    #[schemars(range(min = 1))]
    every_hours: u32,
    /// How many backups are kept.
    keep: u32,
}

fn a_day() -> u32 {
    24
}

async fn reconcile(cx: Reconcile<Backup>) -> HandlerResult {
    let (name, spec) = (cx.key().name(), &cx.object().spec);
    let (database, hours, keep) = (&spec.database, spec.every_hours, spec.keep);
    println!("  {name}: {database} every {hours} h, {keep} are kept");
    Ok(Outcome::done())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Without a log, to keep the output short.
    tracing_subscriber::fmt().with_writer(std::io::sink).init();
    let sandbox = Sandbox::open().await?;
    let builder = SharedControllerFactory::builder(sandbox.client());
    let factory = builder.default_options(sandbox.options()).build();
    let operator = Operator::new("backups", &factory);
    // Server-side apply; a later release updates the CRD.
    operator.installs(Backup::crd());
    operator
        .reconciler("backups", &factory.for_object::<Backup>())
        .register(reconcile)?;
    operator.start(2).await?;

    let backups: Api<Backup> = Api::default_namespaced(sandbox.client());
    println!("▸ a Backup: the API server adds defaults");
    let object = json!({
        "apiVersion": "demo.dev/v1", "kind": "Backup",
        "metadata": {"name": "shop"}, "spec": {"database": "orders", "keep": 7},
    });
    let (params, patch) = (PatchParams::apply("you"), Patch::Apply(object));
    backups.patch("shop", &params, &patch).await?;
    sleep(Duration::from_millis(500)).await;

    println!("▸ Backups that the API server refuses");
    for (database, keep) in [("", 7), ("orders", 31)] {
        let spec = json!({"database": database, "everyHours": 24, "keep": keep});
        let backup = Backup::new("wrong", serde_json::from_value(spec)?);
        if let Err(error) = backups.create(&PostParams::default(), &backup).await {
            println!("  {}", lariat::describe(&error));
        }
    }

    operator.stop().await?;
    // A CRD belongs to the whole cluster; its objects go with it.
    let crds: Api<CustomResourceDefinition> = Api::all(sandbox.client());
    crds.delete(Backup::crd_name(), &DeleteParams::default())
        .await?;
    Ok(sandbox.close().await?)
}
