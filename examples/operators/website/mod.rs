//! Website, a whole operator: serves pages by a ConfigMap, a Deployment and a Service.
//!
//! A Website owns a ConfigMap with its pages, a Deployment and a Service, which are applied in that order, each once
//! what comes before is ready, and deleted in the opposite one. The environment of the pods is a Secret of the user's:
//! pods read it at their start only, so they are replaced when it changes.
//!
//! [`kind`](mod@kind) has the two versions and their conversion, [`webhooks`](fn@webhooks) the webhooks, and this file
//! the reconciler.

pub mod kind;
mod objects;
#[cfg(test)]
mod tests;
mod webhooks;

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use lariat::cluster::testing::eventually;
use lariat::console::{Console, ConsoleServer, HealthCheck, Serve};
use lariat::kube::ResourceExt;
use lariat::kube::api::{Api, PostParams};
use lariat::operator::{Applied, ConditionUpdate, Finalizer, Rule, Step};
use lariat::prelude::*;
use lariat::webhook::{WebhookMetrics, WebhookServer};
use serde_json::json;

use crate::{Paint, TIMEOUT, print_action};
use kind::v1::Website;
use kind::{WebsiteStatus, v1alpha1};

pub use webhooks::webhooks;

/// The finalizer, which keeps the order of deletion.
pub const FINALIZER: &str = "website.demo.dev/objects";
/// The condition.
pub const READY: &str = "Ready";
/// When a deletion is looked at again if no change of an object has led to it.
const AGAIN: Duration = Duration::from_secs(10);

/// The index of Websites by their Secret.
const BY_SECRET: &str = "secret";
/// The index of Websites by their host.
const BY_HOST: &str = "host";

/// Registers the reconciler of Websites.
///
/// # Errors
///
/// Websites have a handler of this name, or an index, already.
pub fn register(operator: &Operator) -> Result<()> {
    let factory = operator.factory();
    let websites = factory.for_object::<Website>();
    let (deployments, services) = (
        factory.for_object::<Deployment>(),
        factory.for_object::<Service>(),
    );
    let (pages, secrets) = (
        factory.for_object::<ConfigMap>(),
        factory.for_object::<Secret>(),
    );
    let cache = websites.cache();
    cache.add_index(BY_HOST, |site: &Website| {
        site.spec.host.iter().cloned().collect()
    })?;
    cache.add_index(BY_SECRET, |site: &Website| {
        secret_of(site).iter().map(ObjectKey::to_string).collect()
    })?;
    let users = Relation::map(move |secret: &Metadata| {
        let found = cache.by_index(BY_SECRET, secret.key().as_str());
        let sites = found.into_iter().flatten().flatten();
        sites.map(|site| key(&site)).collect()
    });
    // Each kind has its own watch: a Secret created before its Website may be seen after it.
    let environment = operator.api::<Secret>().with_fallback();
    operator
        .reconciler("websites", &websites)
        // Not for its own writes of the status.
        .options(HandlerOptions::default().only(Predicate::generation_changed()))
        .owns(&pages)
        .owns(&deployments)
        .owns(&services)
        .watches(&secrets, users)
        .finalizer(Finalizer::new(FINALIZER), clean_up)
        .report_errors(READY)
        // For `operator.cluster_role()`; watching all kinds is known.
        .applies(&pages)
        .applies(&deployments)
        .applies(&services)
        .needs(Rule::of(&secrets).verbs(["get"]))
        .needs(Rule::events())
        .register(move |cx| reconcile(cx, environment.clone()))?;
    Ok(())
}

/// Serves metrics, probes and the console, in which the webhooks count; port 0 means any free port.
///
/// # Errors
///
/// The address is in use, or not of this machine.
pub fn serve(
    factory: &SharedControllerFactory,
    address: &str,
    webhooks: &WebhookServer,
    metrics: WebhookMetrics,
) -> Result<ConsoleServer> {
    let health = webhooks.health();
    let console = Console::on(address)
        .check(HealthCheck::new("webhooks", move || health.check()))
        .metrics(move |registry| metrics.register(registry));
    Ok(factory.serve(console)?)
}

/// Waits until the API server calls the webhooks: it learns of them by a watch.
///
/// # Errors
///
/// It does not within two minutes.
pub async fn until_called(sites: &Api<v1alpha1::Website>) -> Result<()> {
    let probe = json!({"metadata": {"name": "probe"}, "spec": {"html": ""}});
    let probe: v1alpha1::Website = serde_json::from_value(probe)?;
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let look = async || {
        let probed = sites
            .create(&dry, &probe)
            .await
            .map_err(|error| error.to_string())?;
        probed.spec.host.ok_or_else(|| "no host was set".to_owned())
    };
    eventually(TIMEOUT, look).await?;
    Ok(())
}

async fn reconcile(cx: Reconcile<Website>, environment: CachedApi<Secret>) -> HandlerResult {
    let site = cx.object();
    let wanted = secret_of(site);
    let secret = match &wanted {
        Some(key) => environment.get_opt(key).await?,
        None => None,
    };
    let missing = wanted.filter(|_| secret.is_none());
    let waits = missing
        .as_ref()
        .map(|key| format!("there is no Secret {}", key.name()));
    let checksum = secret.as_deref().map(objects::checksum);
    let pods = Step::new("pods")
        .after("pages")
        .only_when(waits.is_none(), waits.as_deref().unwrap_or_default())
        .with(&objects::deployment(site, checksum.as_deref()));
    // The objects of a step that waits are left as they are: what was served goes on being served.
    let desired = Desired::new()
        .step(Step::new("pages").with(&objects::pages(site)))
        .step(pods)
        .step(
            Step::new("address")
                .after("pods")
                .with(&objects::service(site)),
        );
    let applied = cx.apply(desired).await?;
    if !applied.is_unchanged() {
        cx.event(Event::normal("Applied", applied.to_string()));
        print_action(
            "Website",
            cx.key().name(),
            Paint::Green,
            format!("applied: {applied}"),
        );
    }
    report(&cx, &applied, waits).await?;
    Ok(Outcome::done())
}

/// Writes the status, and an Event when the Website becomes ready or begins to wait for its Secret.
async fn report(
    cx: &Reconcile<Website>,
    applied: &Applied,
    waits: Option<String>,
) -> Result<(), HandlerError> {
    let condition = match &waits {
        Some(reason) => ConditionUpdate::is_false(READY, "SecretMissing").message(reason),
        None => applied.condition(READY),
    };
    let deployment = applied.read::<Deployment>(cx.key())?;
    let status = deployment.as_ref().and_then(|found| found.status.as_ref());
    let ready_replicas = status.and_then(|status| status.ready_replicas);
    let is_ready = waits.is_none() && applied.is_ready();
    let host = cx.object().spec.host.as_ref();
    cx.update_status(|status: &mut WebsiteStatus| {
        // Not of a Deployment that was left as it is.
        if deployment.is_some() {
            status.ready_replicas = ready_replicas.unwrap_or_default();
        }
        if is_ready {
            status.url = host.map(|host| format!("http://{host}"));
        }
    })
    .await?;
    let name = cx.key().name();
    let is_news = cx.set_condition(&condition).await?;
    match waits {
        Some(reason) if is_news => {
            print_action("Website", name, Paint::Yellow, format!("waits: {reason}"));
            cx.event(Event::warning("SecretMissing", reason));
        }
        None if is_news && is_ready => {
            print_action("Website", name, Paint::Green, "is ready");
            cx.event(Event::normal("Ready", "the pages are served"));
        }
        _ => {}
    }
    Ok(())
}

/// Deletes the objects, the Service first: the garbage collector would delete them in no order.
async fn clean_up(cx: Reconcile<Website>) -> HandlerResult {
    let applied = cx.apply(Desired::new()).await?;
    if !applied.is_unchanged() {
        print_action(
            "Website",
            cx.key().name(),
            Paint::Yellow,
            format!("cleans up: {applied}"),
        );
    }
    if applied.is_gone() {
        Ok(Outcome::done())
    } else {
        Ok(Outcome::requeue_after(AGAIN))
    }
}

fn key(site: &Website) -> ObjectKey {
    ObjectKey::namespaced(&site.namespace().unwrap_or_default(), &site.name_any())
}

/// Returns the Secret of a Website, whether it exists or not.
fn secret_of(site: &Website) -> Option<ObjectKey> {
    let secret = site.spec.secret_ref.as_ref()?;
    Some(ObjectKey::namespaced(
        &site.namespace().unwrap_or_default(),
        &secret.name,
    ))
}
