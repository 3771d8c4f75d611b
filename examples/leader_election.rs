//! One leader among replicas: only the leader's handlers run, and only the leader's handlers can write.
//!
//! Here three replicas share a process. Yours are processes: each adds `leader_election` to its factory, and ends with
//! the error of `run` if it loses the lease. `failover` is an example with processes that are killed.
//!
//! Run: `cargo run --example leader_election` (on an embedded cluster), or with `KUBECONFIG=…` on yours.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use lariat::cache::Change;
use lariat::cluster::Sandbox;
use lariat::cluster::testing::{config_map, wait_for};
use lariat::kube::api::{Api, Patch, PatchParams};
use lariat::prelude::*;
use lariat::{CancellationToken, Lease};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Adds one to the counter every half second, with the name of the replica.
async fn count(cx: Context<ConfigMap>, replica: &str) -> HandlerResult {
    let data = cx.object()?.and_then(|counter| counter.data.clone());
    let Some(count) = data.and_then(|data| data.get("count")?.parse::<u32>().ok()) else {
        return Ok(Outcome::done());
    };
    let next = json!({"data": {"count": (count + 1).to_string(), "by": replica}});
    // This client refuses to write once another replica may lead.
    let counters: Api<ConfigMap> = Api::default_namespaced(cx.client());
    let (params, patch) = (PatchParams::default(), Patch::Merge(next));
    counters.patch("counter", &params, &patch).await?;
    println!("  {replica} counts to {}", count + 1);
    Ok(Outcome::requeue_after(Duration::from_millis(500)))
}

/// Creates the factory of a replica.
fn replica(name: &'static str, sandbox: &Sandbox) -> anyhow::Result<SharedControllerFactory> {
    // By default 15, 10 and 2 seconds.
    let lease = Lease::new("counter")
        .identity(name)
        .duration(Duration::from_secs(3))
        .renew_deadline(Duration::from_secs(2))
        .retry_period(Duration::from_millis(400));
    let factory = SharedControllerFactory::builder(sandbox.client())
        .default_options(sandbox.options())
        .leader_election(lease)
        .build();
    // Not for changes, which are its own.
    let added = Predicate::new(|change| matches!(change, Change::Added { .. }));
    let options = HandlerOptions::default().only(added);
    let maps = factory.for_object::<ConfigMap>();
    maps.register_handler("count", options.handler(move |cx| count(cx, name)))?;
    Ok(factory)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Without a log, to keep the output short.
    tracing_subscriber::fmt().with_writer(std::io::sink).init();
    let sandbox = Sandbox::open().await?;
    let client = sandbox.client();
    let counter = config_map("counter", &[("count", "0")]).namespace(sandbox.namespace());
    counter.create(&client).await?;

    let (mut tasks, mut stops) = (JoinSet::new(), BTreeMap::new());
    for name in ["red", "green", "blue"] {
        let (factory, stop) = (replica(name, &sandbox)?, CancellationToken::new());
        stops.insert(name.to_owned(), stop.clone());
        tasks.spawn(async move { factory.run(1, stop.cancelled_owned()).await });
    }
    let counters: Api<ConfigMap> = Api::default_namespaced(client);
    let (mut last, mut began) = (String::new(), Instant::now());
    for _ in 0..3 {
        let by = |map: &ConfigMap| map.data.as_ref()?.get("by").cloned();
        let is_next = |map: &ConfigMap| by(map).is_some_and(|by| by != last);
        let leader = by(&wait_for(&counters, "counter", is_next).await?).unwrap_or_default();
        println!("▸ {leader} leads after {:.1?}", began.elapsed());
        tokio::time::sleep(Duration::from_secs(1)).await;
        // A stopped leader lets its handlers finish and releases the lease.
        println!("▸ {leader} is stopped");
        began = Instant::now();
        if let Some(stop) = stops.remove(&leader) {
            stop.cancel();
        }
        last = leader;
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(sandbox.close().await?)
}
