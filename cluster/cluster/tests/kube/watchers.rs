//! kube-rs' watcher, reflector and waits.

use std::pin::pin;

use futures::{Stream, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, reflector};
use lariat_cluster::Cluster;
use lariat_cluster::testing::{TestCluster, config_map, crd, pod};
use serde_json::json;
use tokio::time::timeout;

use crate::bench::{self, TIMEOUT, widget, with_widgets};

/// Takes events until there are so many, and writes them as texts.
async fn take(
    events: &mut (impl Stream<Item = watcher::Result<Event<DynamicObject>>> + Unpin),
    count: usize,
) -> Vec<String> {
    let text = |event: Event<DynamicObject>| match event {
        Event::Init => "init".to_owned(),
        Event::InitApply(object) => format!("init apply {}", bench::name(&object)),
        Event::InitDone => "init done".to_owned(),
        Event::Apply(object) => format!("apply {}", bench::name(&object)),
        Event::Delete(object) => format!("delete {}", bench::name(&object)),
    };
    let taken = events.take(count).map_ok(text).try_collect();
    let taken = timeout(TIMEOUT, taken).await.expect("they come");
    taken.expect("no error comes")
}

async fn check_watcher(config: watcher::Config, verb: &str) -> kube::Result<()> {
    let (cluster, client) = with_widgets().await;
    let widgets = widget("a").api(&client);
    for name in ["b", "a"] {
        widget(name).create(&client).await?;
    }
    let mut events = pin!(watcher(widgets.clone(), config));
    let first = take(&mut events, 4).await;
    assert_eq!(first, ["init", "init apply a", "init apply b", "init done"]);
    let patch = Patch::Merge(json!({"spec": {"size": 2}}));
    widgets.patch("a", &PatchParams::default(), &patch).await?;
    widgets.delete("b", &DeleteParams::default()).await?;
    assert_eq!(take(&mut events, 2).await, ["apply a", "delete b"]);

    // A lost connection is no reason to list again; lost history is one.
    cluster.cut_watches();
    widget("c").create(&client).await?;
    let mut events = pin!(events.filter(|event| std::future::ready(event.is_ok())));
    assert_eq!(take(&mut events, 1).await, ["apply c"]);
    let begun = cluster.journal().count(verb, "widgets");
    widgets.delete("c", &DeleteParams::default()).await?;
    assert_eq!(take(&mut events, 1).await, ["delete c"]);
    expire(&cluster);
    widget("d").create(&client).await?;
    let again = take(&mut events, 4).await;
    assert_eq!(again, ["init", "init apply a", "init apply d", "init done"]);
    assert!(cluster.journal().count(verb, "widgets") > begun);
    Ok(())
}

fn watcher(
    api: Api<DynamicObject>,
    config: watcher::Config,
) -> impl Stream<Item = watcher::Result<Event<DynamicObject>>> {
    kube::runtime::watcher(api, config)
}

/// Lets every watch come back to a history that is gone.
fn expire(cluster: &TestCluster) {
    let skip = lariat_cluster::faults::Action::SkipVersions(10);
    cluster.faults().add(
        lariat_cluster::faults::Rule::new(skip)
            .verb("create")
            .times(1),
    );
    let expire = lariat_cluster::faults::Action::Expire;
    cluster.faults().add(
        lariat_cluster::faults::Rule::new(expire)
            .verb("watch")
            .times(1),
    );
    cluster.end_watches();
}

#[tokio::test(start_paused = true)]
async fn watcher_lists_and_watches() {
    check_watcher(watcher::Config::default(), "list")
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn watcher_streams_lists() {
    check_watcher(watcher::Config::default().streaming_lists(), "watch")
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn reflector_follows_what_is_stored() {
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    config_map("a", &[("key", "1")])
        .create(&client)
        .await
        .unwrap();
    let config_maps: Api<ConfigMap> = Api::default_namespaced(client);
    let (store, writer) = reflector::store();
    let events = kube::runtime::watcher(config_maps.clone(), watcher::Config::default());
    let mut applied = pin!(reflector(writer, events).applied_objects());
    applied.next().await.unwrap().unwrap();
    let patch = Patch::Merge(json!({"data": {"key": "2"}}));
    config_maps
        .patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    applied.next().await.unwrap().unwrap();
    let found = store
        .get(&reflector::ObjectRef::new("a").within("default"))
        .unwrap();
    assert_eq!(found.data.as_ref().unwrap()["key"], "2");
    assert_eq!(store.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn await_condition_sees_creation_establishment_and_deletion() {
    let cluster = Cluster::for_test().await;
    let client = cluster.client();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let web = pod("web").to::<Pod>();
    let options = PostParams::default();
    let (created, made) = tokio::join!(
        await_condition(pods.clone(), "web", |pod: Option<&Pod>| pod.is_some()),
        pods.create(&options, &web),
    );
    let uid = made.unwrap().metadata.uid.unwrap();
    assert_eq!(created.unwrap().unwrap().metadata.uid.as_ref(), Some(&uid));
    let removal = DeleteParams::default();
    let (gone, deleted) = tokio::join!(
        await_condition(pods.clone(), "web", conditions::is_deleted(&uid)),
        pods.delete("web", &removal),
    );
    deleted.unwrap();
    gone.unwrap();
    crd("demo.dev", "v1", "Gadget")
        .create(&client)
        .await
        .unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(client);
    let established = conditions::is_crd_established();
    await_condition(definitions, "gadgets.demo.dev", established)
        .await
        .unwrap();
}
