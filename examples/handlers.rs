//! How a call of a handler can end, and what happens then.
//!
//! Six handlers of one kind. Each has its own retries and options; none waits for another.
//!
//! Run: `cargo run --example handlers` (on an embedded cluster, in this process), or with `KUBECONFIG=…` on yours.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use lariat::cluster::Sandbox;
use lariat::cluster::testing::secret;
use lariat::kube::api::{Patch, PatchParams};
use lariat::prelude::*;
use lariat::{RetryAfter, Terminal};
use serde_json::json;
use tokio::time::sleep;

/// Succeeds, and asks for another call.
async fn poll(cx: Context<Secret>) -> HandlerResult {
    say(&cx, "done, again after a second");
    Ok(Outcome::requeue_after(Duration::from_secs(1)))
}

/// Fails: it is called again after 5 ms, then after twice as long each time.
async fn flaky(cx: Context<Secret>) -> HandlerResult {
    if cx.attempt() < 4 {
        say(&cx, "an error, retried after a growing delay");
        return Err("the server is busy".into());
    }
    say(&cx, "done");
    Ok(Outcome::done())
}

/// Fails with a delay, such as that of a Retry-After header.
async fn limited(cx: Context<Secret>) -> HandlerResult {
    if cx.attempt() < 2 {
        say(&cx, "RetryAfter, retried after half a second");
        return Err(RetryAfter::new(Duration::from_millis(500)).into());
    }
    say(&cx, "done");
    Ok(Outcome::done())
}

/// Fails for good: it is called again when the object changes.
async fn invalid(cx: Context<Secret>) -> HandlerResult {
    say(&cx, "Terminal, not retried");
    Err(Terminal::because("the Secret has no key \"password\"").into())
}

/// Hangs: the timeout among its options drops the call, which counts as an error.
async fn slow(cx: Context<Secret>) -> HandlerResult {
    if cx.attempt() == 1 {
        say(&cx, "hangs until the timeout");
        std::future::pending::<()>().await;
    }
    say(&cx, "done");
    Ok(Outcome::done())
}

/// Is called for the changes that its predicate selects.
async fn labels(cx: Context<Secret>) -> HandlerResult {
    say(&cx, "done, called if labels change");
    Ok(Outcome::done())
}

fn say(cx: &Context<Secret>, what: &str) {
    let (handler, attempt, causes) = (cx.handler(), cx.attempt(), cx.causes());
    println!("  {handler:<8} attempt {attempt}  {what:<41} {causes}");
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Without a log, to keep the output short.
    tracing_subscriber::fmt().with_writer(std::io::sink).init();
    let sandbox = Sandbox::open().await?;
    let client = sandbox.client();
    let builder = SharedControllerFactory::builder(client.clone());
    let factory = builder.default_options(sandbox.options()).build();
    let secrets = factory.for_object::<Secret>();
    secrets.register_handler("poll", poll)?;
    secrets.register_handler("flaky", flaky)?;
    secrets.register_handler("limited", limited)?;
    secrets.register_handler("invalid", invalid)?;
    let options = HandlerOptions::default().timeout(Duration::from_millis(200));
    secrets.register_handler("slow", options.handler(slow))?;
    let options = HandlerOptions::default().only(Predicate::labels_changed());
    secrets.register_handler("labels", options.handler(labels))?;
    factory.start(2).await?;
    let login = secret("login", &[]).namespace(sandbox.namespace());
    println!("▸ a Secret is created");
    login.create(&client).await?;
    sleep(Duration::from_millis(1500)).await;
    println!("▸ the Secret changes, its labels do not");
    let patch = Patch::Merge(json!({"stringData": {"user": "me"}}));
    let (api, params) = (login.api(&client), PatchParams::default());
    api.patch("login", &params, &patch).await?;
    sleep(Duration::from_millis(1500)).await;
    factory.stop().await?;
    Ok(sandbox.close().await?)
}
