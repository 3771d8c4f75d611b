//! The identities that handlers write with.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use lariat_cache::ClientIdentity;
use lariat_controller::{Context, HandlerOptions, HandlerResult, Outcome};
use serde_json::json;

use crate::bench::{Bench, settle};

async fn writes(cx: Context<ConfigMap>) -> HandlerResult {
    let api: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
    let name = cx.handler().to_owned();
    let patch = Patch::Merge(json!({"metadata": {"annotations": {name: "was here"}}}));
    api.patch(cx.key().name(), &PatchParams::default(), &patch)
        .await?;
    Ok(Outcome::done())
}

#[tokio::test(start_paused = true)]
async fn handlers_of_one_watch_write_each_under_their_own_name() {
    let bench = Bench::new().await;
    let agent = |name: &str| ClientIdentity::default().user_agent(name);
    bench
        .config_maps
        .register_handler(
            "own",
            HandlerOptions::default()
                .identity(agent("own/1"))
                .handler(writes),
        )
        .unwrap();
    let ours = bench.config_maps.with_identity(agent("ours/1")).unwrap();
    ours.register_handler("handle's", writes).unwrap();
    bench
        .config_maps
        .register_handler("unbound", writes)
        .unwrap();
    bench.create("a").await;
    bench.start().await;
    settle().await;
    let journal = bench.cluster.journal();
    let requests = journal.requests();
    let patches = requests.iter().filter(|request| request.verb == "patch");
    let mut agents: Vec<_> = patches.map(|request| request.user_agent.clone()).collect();
    agents.sort();
    agents.dedup();
    assert_eq!(agents.len(), 3, "{agents:?}");
    assert!(agents.iter().any(|agent| agent == "own/1"), "{agents:?}");
    assert!(agents.iter().any(|agent| agent == "ours/1"), "{agents:?}");
    assert_eq!(journal.count("watch", "configmaps"), 1);
    assert!(ours.is_same(&bench.config_maps));
    let refused = bench.config_maps.with_identity(agent("two\nlines"));
    assert!(refused.is_err());
}
