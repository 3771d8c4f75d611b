//! Changes of one kind that call a handler of another.
//!
//! Shows a relation (a Pod belongs to the ConfigMap of its team), an index over a cache, and the causes of a call.
//!
//! Run: `cargo run --example relations` (on an embedded cluster, in this process), or with `KUBECONFIG=…` on yours.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use lariat::cluster::Sandbox;
use lariat::cluster::testing::{config_map, pod};
use lariat::prelude::*;
use tokio::time::sleep;

/// The label of Pods with the name of their team; also the name of the index.
const TEAM: &str = "team";

/// Compares the Pods of a team with its quota.
async fn count(cx: Context<ConfigMap>, pods: Cache<Metadata>) -> HandlerResult {
    let team = cx.object()?.and_then(|team| team.data.clone());
    let Some(quota) = team.as_ref().and_then(|data| data.get("quota")) else {
        return Ok(Outcome::done()); // deleted, or not a team
    };
    // Reads the cache; no request is sent.
    let used = pods.count_by_index(TEAM, cx.key().as_str())?;
    println!(
        "  {:<5} uses {used} of {quota} Pods: {}",
        cx.key().name(),
        cx.causes()
    );
    Ok(Outcome::done())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Without a log, to keep the output short.
    tracing_subscriber::fmt().with_writer(std::io::sink).init();
    let sandbox = Sandbox::open().await?;
    let (client, namespace) = (sandbox.client(), sandbox.namespace());
    let builder = SharedControllerFactory::builder(client.clone());
    let factory = builder.default_options(sandbox.options()).build();

    let teams = factory.for_object::<ConfigMap>();
    // Metadata alone: that is all the index reads, and all that is watched.
    let pods = factory.for_object::<Pod>().view::<Metadata>();
    let index = pods.cache();
    index.add_index(TEAM, |pod: &Metadata| {
        let team = pod.labels().get(TEAM);
        let namespace = pod.key().namespace().unwrap_or_default();
        team.map(|team| format!("{namespace}/{team}"))
            .into_iter()
            .collect()
    })?;
    teams.register_handler("count", move |cx| count(cx, index.clone()))?;
    // A changed Pod enqueues the ConfigMap that its label names, both before and after the change. For owner
    // references there is `Relation::controllers()`, for everything else `Relation::map(…)`.
    let only = Predicate::labels_changed();
    teams.watch_related(&pods, Relation::label(TEAM).only(only));
    factory.start(1).await?;

    println!("▸ two teams, and a Pod of red");
    for team in ["red", "blue"] {
        let team = config_map(team, &[("quota", "2")]).namespace(namespace);
        team.create(&client).await?;
    }
    let web = pod("web").namespace(namespace).label(TEAM, "red");
    web.create(&client).await?;
    sleep(Duration::from_millis(500)).await;

    println!("▸ the Pod moves to blue: both teams are counted");
    let patch = serde_json::json!({"metadata": {"labels": {"team": "blue"}}});
    let patch = lariat::kube::api::Patch::Merge(patch);
    web.api(&client)
        .patch("web", &Default::default(), &patch)
        .await?;
    sleep(Duration::from_millis(500)).await;

    println!("▸ the Pod is deleted");
    web.api(&client).delete("web", &Default::default()).await?;
    sleep(Duration::from_millis(500)).await;
    factory.stop().await?;
    Ok(sandbox.close().await?)
}
