//! Four handlers on two kinds: one watch, one cache and one work queue for each kind.
//!
//! Three handlers share the Pods; one of them fails and is called again. Lines end with the causes of the call.
//!
//! Run: `cargo run --example quickstart` (on an embedded cluster, in this process), or with `KUBECONFIG=…` on yours.

use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Secret};
use lariat::cache::View;
use lariat::cluster::Sandbox;
use lariat::cluster::testing::{pod, secret};
use lariat::kube::api::{Patch, PatchParams};
use lariat::prelude::*;
use serde_json::json;
use tokio::time::sleep;

/// Reads Pods as typed objects.
async fn phase(cx: Context<Pod>) -> HandlerResult {
    let phase = cx.object()?.and_then(|pod| pod.status.clone()?.phase);
    say(&cx, phase.as_deref().unwrap_or("is deleted"));
    Ok(Outcome::done())
}

/// Reads the same Pods, from the same cache, as dynamic objects.
async fn labels(cx: Context<DynamicObject>) -> HandlerResult {
    let labels = cx.object()?.and_then(|pod| pod.metadata.labels.clone());
    say(&cx, &format!("{} labels", labels.unwrap_or_default().len()));
    Ok(Outcome::done())
}

/// How many more calls find the registry busy.
static BUSY: AtomicI32 = AtomicI32::new(0);

/// Fails while the registry is busy, and is retried alone, after 5 and 10 ms.
async fn register(cx: Context<Pod>) -> HandlerResult {
    if BUSY.fetch_sub(1, Ordering::Relaxed) > 0 {
        say(&cx, "✗ fails");
        return Err("the registry is busy".into());
    }
    say(&cx, "✓ succeeds");
    Ok(Outcome::done())
}

/// Takes a while. All changes that come meanwhile lead to one more call.
async fn rotate(cx: Context<Secret>) -> HandlerResult {
    say(&cx, "takes 100 ms");
    sleep(Duration::from_millis(100)).await;
    Ok(Outcome::done())
}

fn say<K: View>(cx: &Context<K>, what: &str) {
    let (name, handler) = (cx.key().name(), cx.handler());
    println!("  {name:<6} {handler:<9} {what:<13} {}", cx.causes());
}

/// Lets the handlers run, and prints the next step.
async fn step(what: &str) {
    sleep(Duration::from_millis(500)).await;
    println!("▸ {what}");
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::sink).init(); // no log, for a short output
    let sandbox = Sandbox::open().await?;
    let (client, namespace) = (sandbox.client(), sandbox.namespace());
    let builder = SharedControllerFactory::builder(client.clone());
    let factory = builder.default_options(sandbox.options()).build();
    let pods = factory.for_object::<Pod>();
    pods.register_handler("phase", phase)?;
    pods.register_handler("register", register)?;
    let same_pods = factory.for_kind(Gvk::new("", "v1", "Pod"));
    same_pods.register_handler("labels", labels)?;
    let secrets = factory.for_object::<Secret>();
    secrets.register_handler("rotate", rotate)?;
    factory.start(5).await?; // five workers for each kind
    step("a Pod is created").await;
    let web = pod("web").namespace(namespace).label("app", "web");
    web.create(&client).await?;
    step("a Secret is created, and changes nine times").await;
    let token = secret("token", &[]).namespace(namespace);
    token.create(&client).await?;
    let (api, params) = (token.api(&client), PatchParams::default());
    for version in 1..10 {
        let patch = Patch::Merge(json!({"stringData": {"version": version.to_string()}}));
        api.patch("token", &params, &patch).await?;
    }
    step("code enqueues the Pod, and one handler fails twice").await;
    BUSY.store(2, Ordering::Relaxed);
    let key = ObjectKey::namespaced(namespace, "web");
    pods.enqueue_with(&key, &Enqueue::now().because("an API request"))?;
    step("the Pod is deleted").await;
    web.api(&client).delete("web", &Default::default()).await?;
    step("one watch, one cache and one queue for each kind").await;
    println!("{}", factory.status());
    factory.stop().await?;
    Ok(sandbox.close().await?)
}
