//! A whole operator: Websites in two versions, with webhooks, a finalizer, conditions, Events, leader election, metrics
//! and probes.
//!
//! Shown: dependents in steps, pods that are replaced when a Secret changes, defaults and denials by typed handlers
//! that read the shared caches, conversion through a hub.
//!
//! Run: `cargo run -p lariat-operators --example website` (embedded cluster), with `KUBECONFIG=…` on your own cluster,
//! or with `-- --watch` to create Websites yourself. The API server calls the webhooks over loopback, so it has to run
//! on the same machine.

mod kubelet;

use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use lariat::cluster::testing::Wait;
use lariat::kube::api::{Api, DeleteParams, PostParams};
use lariat::kube::{CustomResourceExt, Error};
use lariat::prelude::*;
use lariat::webhook::{Certificates, Endpoint, WebhookServer};
use lariat::{FactoryBuilder, Lease};
use lariat_operators::website::kind::{INDEX, REST, definition, v1, v1alpha1};
use lariat_operators::website::{READY, register, serve, until_called, webhooks};
use lariat_operators::{
    About, Flag, Options, Paint, Stage, TIMEOUT, delete, merge, only_in, perform_with, print_action,
};
use serde_json::json;

use kubelet::ensure_pods_run;

const ABOUT: About = About {
    name: "website",
    what: "a Website owns pages, pods and a Service; webhooks check, complete and convert it",
    flags: &[Flag {
        name: "listen",
        default: "127.0.0.1:0",
        help: "the address of metrics, probes and console; port 0 is any",
    }],
    check: |options| options.value::<SocketAddr>("listen").map(drop),
};

#[tokio::main]
async fn main() -> ExitCode {
    perform_with(ABOUT, configure, set_up, story).await
}

/// Of several replicas one reconciles; all of them answer webhooks.
fn configure(_: &Options, namespace: &str, builder: FactoryBuilder) -> Result<FactoryBuilder> {
    let lease = Lease::new("website").namespace(namespace);
    Ok(builder
        .default_options(only_in(namespace))
        .leader_election(lease))
}

async fn set_up(stage: &Stage) -> Result<()> {
    stage
        .define_as(definition()?, v1::Website::api_resource())
        .await?;
    register(&stage.operator)?;
    serve_all(stage).await?;
    ensure_pods_run(stage).await?;
    stage.suggest_manifest("website/site.yaml");
    stage.suggest("k patch secret shop --patch '{\"stringData\": {\"GREETING\": \"hi\"}}'");
    stage.suggest("k get websites.v1alpha1.website.demo.dev shop --output yaml");
    stage.suggest("k get websites,deployments,services");
    Ok(())
}

/// Serves webhooks for the example's namespace, and metrics, probes and the console.
async fn serve_all(stage: &Stage) -> Result<()> {
    let name = format!("{}.demo.dev", stage.namespace);
    let namespace = (
        "kubernetes.io/metadata.name".to_owned(),
        stage.namespace.clone(),
    );
    let ours = LabelSelector {
        match_labels: Some([namespace].into()),
        ..LabelSelector::default()
    };
    let secret = ObjectKey::namespaced(&stage.namespace, "website-webhooks");
    let certificates = Certificates::secret(&secret);
    let webhooks = webhooks(&name, &stage.factory, Some(&ours))
        .endpoint(Endpoint::local())
        .declare(&stage.operator, &certificates);
    let metrics = webhooks.metrics();
    let server = webhooks.serve("127.0.0.1:0", certificates).await?;
    server.applied().await;
    let console = stage.options.value::<String>("listen")?;
    let console = serve(&stage.factory, &console, &server, metrics);
    let (hooks, client, ending) = (server.address(), stage.client.clone(), stage.ending.clone());
    stage.tasks.spawn(async move {
        // Until the operator has stopped: its last writes are reviewed too.
        ending.cancelled().await;
        take_down(&server, client, &name).await;
    });
    let console = console?.address();
    stage.step(format_args!(
        "webhooks are at https://{hooks}, probes at http://{console}/readyz?verbose, metrics beside"
    ));
    Ok(())
}

/// Stops the webhooks. Their configurations are no namespace's, so they are deleted by themselves.
async fn take_down(server: &WebhookServer, client: Client, name: &str) {
    server.shutdown().await;
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client);
    for deleted in [
        delete(&validating, name).await,
        delete(&mutating, name).await,
    ] {
        if let Err(error) = deleted {
            print_action("Webhooks", name, Paint::Red, format!("stay: {error:#}"));
        }
    }
}

async fn story(stage: &Stage) -> Result<()> {
    let (new, old) = (stage.api::<v1::Website>(), stage.api::<v1alpha1::Website>());
    until_called(&old).await?;
    comes_up(stage, &old, &new).await?;
    is_changed(stage, &old, &new).await?;

    stage.step("the Website is deleted: first its Service, then its pods, then its pages");
    new.delete("shop", &DeleteParams::default()).await?;
    gone(&new, "shop").await
}

async fn comes_up(
    stage: &Stage,
    old: &Api<v1alpha1::Website>,
    new: &Api<v1::Website>,
) -> Result<()> {
    stage.step("a Website is created in the old version; its Secret is missing, so its pods wait");
    let spec = json!({"html": "<h1>Shop</h1>", "secret": "shop"});
    let site = json!({"metadata": {"name": "shop"}, "spec": spec});
    old.create(&PostParams::default(), &site_of(site)?).await?;
    stage
        .until_printed(&["waits: there is no Secret shop"])
        .await?;
    let site = new.get("shop").await?;
    let host = site.spec.host.context("no host was set")?;
    ensure!(site.spec.pages.contains_key(INDEX), "the page is missing");
    print_action(
        "Website",
        "shop",
        Paint::Cyan,
        format!("is in v1 too, at {host}"),
    );

    stage.step("the Secret is created: pods start, and the Service follows once they are ready");
    let secret: Secret = serde_json::from_value(
        json!({"metadata": {"name": "shop"}, "stringData": {"GREETING": "hello"}}),
    )?;
    let secrets = stage.api::<Secret>();
    secrets.create(&PostParams::default(), &secret).await?;
    stage.until_printed(&["is ready"]).await?;

    stage.step("the Secret changes: the pods are replaced, since they read it at their start only");
    let changed = json!({"stringData": {"GREETING": "hi"}});
    merge(&secrets, "shop", changed).await?;
    stage.until_printed(&["applied", "1 changed"]).await?;
    ready(new, "shop").await
}

async fn is_changed(
    stage: &Stage,
    old: &Api<v1alpha1::Website>,
    new: &Api<v1::Website>,
) -> Result<()> {
    stage.step("a page is added, and a pod; the old version keeps what it has no field for");
    let more = json!({"spec": {"pages": {"about.html": "<h1>About</h1>"}, "replicas": 2}});
    merge(new, "shop", more).await?;
    stage.until_printed(&["applied", "changed"]).await?;
    ready(new, "shop").await?;
    let site = old.get("shop").await?;
    let rest = site
        .metadata
        .annotations
        .and_then(|mut all| all.remove(REST));
    let rest = rest.context("the other page is lost")?;
    print_action(
        "Website",
        "shop",
        Paint::Cyan,
        format!("has in v1alpha1 {REST}: {rest}"),
    );

    stage.step("another Website cannot have the same host, and needs an index.html");
    let host = new.get("shop").await?.spec.host;
    let spec = json!({"host": host, "pages": {"about.html": ""}});
    let copy = json!({"metadata": {"name": "copy"}, "spec": spec});
    match new.create(&PostParams::default(), &site_of(copy)?).await {
        Err(Error::Api(status)) if status.message.contains("is the host of") => {
            print_action("Website", "copy", Paint::Red, &status.message);
            Ok(())
        }
        other => bail!("it is not refused for its host: {other:?}"),
    }
}

fn site_of<K: serde::de::DeserializeOwned>(site: serde_json::Value) -> Result<K> {
    Ok(serde_json::from_value(site)?)
}

/// Waits until all objects of a Website are ready. Images may have to be pulled first.
async fn ready(sites: &Api<v1::Website>, name: &str) -> Result<()> {
    let is_ready = |site: &v1::Website| {
        let status = site.status.as_ref();
        let conditions = status.map(|status| &*status.conditions).unwrap_or_default();
        let generation = site.metadata.generation;
        let mut conditions = conditions.iter();
        conditions.any(|condition| {
            let is_current = condition.observed_generation == generation;
            condition.type_ == READY && condition.status == "True" && is_current
        })
    };
    let wait = Wait::new(sites, name).timeout(TIMEOUT);
    wait.until("it is ready", is_ready).await?;
    Ok(())
}

async fn gone(sites: &Api<v1::Website>, name: &str) -> Result<()> {
    Ok(Wait::new(sites, name).timeout(TIMEOUT).gone().await?)
}
