//! Changes of one kind reconcile another: Deployments restart when a ConfigMap they use changes.
//!
//! Shown: a relation between kinds, an index for it, and the causes of a call, which name the changed objects.
//!
//! Run: `cargo run -p lariat-operators --example related_kinds` (embedded cluster), with `KUBECONFIG=…` on your own
//! cluster, or with `-- --watch` to change ConfigMaps yourself.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use lariat::cluster::testing::{config_map, deployment};
use lariat_operators::related_kinds::{RELOAD, register};
use lariat_operators::{About, Stage, delete, merge, perform};
use serde_json::json;
use tokio::time::sleep;

const ABOUT: About = About {
    name: "related_kinds",
    what: "Deployments restart when a ConfigMap they use changes",
    flags: &[],
    check: |_| Ok(()),
};

#[tokio::main]
async fn main() -> ExitCode {
    perform(ABOUT, set_up, story).await
}

async fn set_up(stage: &Stage) -> Result<()> {
    stage.suggest_manifest("related_kinds/web.yaml");
    stage.suggest(r#"k patch configmap web-config --patch '{"data": {"colour": "blue"}}'"#);
    register(&stage.operator)
}

async fn story(stage: &Stage) -> Result<()> {
    let config_maps = stage.api::<ConfigMap>();
    stage
        .step("the Deployments web and api use the ConfigMap common, and web also uses web-config");
    for name in ["common", "web-config", "unused"] {
        let made = config_map(name, &[("colour", "red")]);
        made.namespace(&stage.namespace)
            .create(&stage.client)
            .await?;
    }
    for (name, used) in [("web", &["common", "web-config"][..]), ("api", &["common"])] {
        deploy(stage, name, used).await?;
    }

    let blue = json!({"data": {"colour": "blue"}});
    stage.step("web-config changes: web restarts");
    merge(&config_maps, "web-config", blue.clone()).await?;
    stage.until_printed(&["web", "restarts"]).await?;

    stage.step("an unused ConfigMap changes, and a label of common: nothing happens");
    merge(&config_maps, "unused", blue.clone()).await?;
    let label = json!({"metadata": {"labels": {"some": "label"}}});
    merge(&config_maps, "common", label).await?;
    sleep(Duration::from_millis(500)).await;

    stage.step("common changes: both restart");
    merge(&config_maps, "common", blue).await?;
    stage.until_printed(&["web", "restarts"]).await?;
    stage.until_printed(&["api", "restarts"]).await?;

    stage.step("web-config is deleted: that is a change too");
    delete(&config_maps, "web-config").await?;
    stage.until_printed(&["web", "restarts"]).await
}

/// Creates a Deployment with the annotation, and waits until it is managed.
async fn deploy(stage: &Stage, name: &str, config_maps: &[&str]) -> Result<()> {
    let sources = config_maps
        .iter()
        .map(|name| json!({"configMapRef": {"name": name, "optional": true}}));
    let container = json!([{
        "name": "main", "image": "registry.k8s.io/pause:3.10", "envFrom": sources.collect::<Vec<_>>(),
    }]);
    let made = deployment(name, 1)
        .namespace(&stage.namespace)
        .annotation(RELOAD, "true");
    made.set("/spec/template/spec/containers", container)
        .create(&stage.client)
        .await?;
    stage.until_printed(&[name, "is managed"]).await
}
