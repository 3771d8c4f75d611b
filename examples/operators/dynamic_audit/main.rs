//! One handler for all kinds: a line for every change in a namespace.
//!
//! Shown: kinds the program does not know, metadata only, deletions, and a kind that appears and disappears at run
//! time.
//!
//! Run: `cargo run -p lariat-operators --example dynamic_audit` (embedded cluster), with `KUBECONFIG=…` on your own
//! cluster, or with `-- --watch` to change things yourself.

use std::process::ExitCode;

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lariat::cluster::testing::{config_map, deployment, eventually};
use lariat::controller::KindsRegistration;
use lariat::kube::api::{Api, ApiResource, DynamicObject, PostParams};
use lariat::kube::{CustomResource, CustomResourceExt, ResourceExt};
use lariat_operators::dynamic_audit::{AuditEntry, What, register};
use lariat_operators::{
    About, Options, Paint, Stage, TIMEOUT, delete, merge, perform_with, print_action,
};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

const ABOUT: About = About {
    name: "dynamic_audit",
    what: "a line for every change in a namespace, of any kind",
    flags: &[],
    check: |_| Ok(()),
};

/// A kind the audit does not know.
#[derive(CustomResource, Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[kube(group = "demo.dev", version = "v1", kind = "Gadget", namespaced)]
pub struct GadgetSpec {
    size: i32,
}

#[tokio::main]
async fn main() -> ExitCode {
    let audit = Mutex::new(None);
    let set_up = async |stage: &Stage| {
        stage.suggest("k create configmap settings --from-literal colour=red");
        stage.suggest("k delete configmap settings");
        *audit.lock() = Some(register(&stage.operator, &stage.namespace, line)?);
        Ok(())
    };
    let configure = |_: &Options, _: &str, builder| Ok(builder);
    perform_with(ABOUT, configure, set_up, async |stage: &Stage| {
        let registration = audit.lock().take();
        match registration {
            Some(audit) => story(stage, &audit).await,
            None => Ok(()),
        }
    })
    .await
}

fn line(entry: &AuditEntry) {
    let (colour, what) = match entry.what {
        What::Appeared => (Paint::Green, "appears"),
        What::Changed => (Paint::Yellow, "changes"),
        What::Gone => (Paint::Red, "is deleted"),
    };
    print_action(
        entry.gvk.kind(),
        entry.key.name(),
        colour,
        format_args!("{what}: {}", entry.how),
    );
}

async fn story(stage: &Stage, audit: &KindsRegistration) -> Result<()> {
    watched(stage, audit).await?;
    stage.step("a ConfigMap is created, changed and deleted");
    let config_maps = stage.api::<ConfigMap>();
    let made = config_map("settings", &[("colour", "red")]);
    made.namespace(&stage.namespace)
        .create(&stage.client)
        .await?;
    stage.until_printed(&["ConfigMap settings appears"]).await?;
    merge(
        &config_maps,
        "settings",
        json!({"data": {"colour": "blue"}}),
    )
    .await?;
    stage.until_printed(&["ConfigMap settings changes"]).await?;
    delete(&config_maps, "settings").await?;
    stage
        .until_printed(&["ConfigMap settings is deleted"])
        .await?;

    stage.step("a Deployment is created, with its ReplicaSet and pods, and deleted");
    let made = deployment("web", 1).namespace(&stage.namespace);
    let image = "/spec/template/spec/containers/0/image";
    made.set(image, "registry.k8s.io/pause:3.10")
        .create(&stage.client)
        .await?;
    for kind in ["Deployment", "ReplicaSet", "Pod"] {
        stage.until_printed(&[kind, "appears"]).await?;
    }
    delete(&stage.api::<Deployment>(), "web").await?;
    for kind in ["Deployment", "ReplicaSet", "Pod"] {
        stage.until_printed(&[kind, "is deleted"]).await?;
    }

    stage.step("a CRD is installed while the audit runs: its objects are audited as well");
    let (definition, resource) = gadgets(&stage.namespace);
    let name = definition.name_any();
    stage.define_as(definition, resource.clone()).await?;
    knows(audit, &resource.group).await?;
    watched(stage, audit).await?;
    let spec = GadgetSpec { size: 1 };
    let gadget = DynamicObject::new("lever", &resource).data(json!({"spec": spec}));
    let gadgets: Api<DynamicObject> =
        Api::namespaced_with(stage.client.clone(), &stage.namespace, &resource);
    gadgets.create(&PostParams::default(), &gadget).await?;
    stage.until_printed(&["Gadget lever appears"]).await?;

    stage.step("the CRD is deleted, and its objects with it");
    let definitions: Api<CustomResourceDefinition> = Api::all(stage.client.clone());
    delete(&definitions, &name).await?;
    stage.until_printed(&["Gadget lever is deleted"]).await
}

/// Returns the CRD in a group of the run's own, because the story deletes it.
fn gadgets(namespace: &str) -> (CustomResourceDefinition, ApiResource) {
    let (mut definition, mut resource) = (Gadget::crd(), Gadget::api_resource());
    let group = format!("{namespace}.{}", resource.group);
    definition.metadata.name = Some(format!("{}.{group}", resource.plural));
    definition.spec.group.clone_from(&group);
    resource.api_version = format!("{group}/{}", resource.version);
    resource.group = group;
    (definition, resource)
}

/// Prints what the audit costs.
async fn watched(stage: &Stage, audit: &KindsRegistration) -> Result<()> {
    let watches = async || {
        let status = stage.factory.status();
        let watches = status.iter().filter(|kind| kind.cache.watches > 0).count();
        let kinds = audit.kinds().len();
        if kinds > 0 && watches >= kinds {
            Ok((kinds, watches))
        } else {
            Err(format!("{watches} watches for {kinds} kinds"))
        }
    };
    let (kinds, watches) = eventually(TIMEOUT, watches).await?;
    stage.step(format_args!(
        "audited are {kinds} kinds through {watches} watches of metadata"
    ));
    Ok(())
}

/// Waits until the audit has discovered the kind of a group.
async fn knows(audit: &KindsRegistration, group: &str) -> Result<()> {
    let is_so = async || {
        let known = audit.kinds().iter().any(|gvk| gvk.group() == group);
        known
            .then_some(())
            .ok_or("the audit has not discovered it yet")
    };
    Ok(eventually(TIMEOUT, is_so).await?)
}
