//! What this process writes is in its caches immediately.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat_cache::{KindOptions, Selection, SharedCacheFactory};
use lariat_cluster::Cluster;
use lariat_cluster::faults::{Action, After, Rule};
use lariat_core::{Gvk, ObjectKey};
use serde_json::json;
use tokio::time::Instant;

use crate::bench::{MINUTE, Recorder, cluster, config_maps, eventually};

/// A cluster whose watches fall silent after their beginning.
pub(crate) async fn mute_cluster() -> Cluster {
    let cluster = cluster().await;
    cluster
        .faults()
        .add(Rule::new(Action::HangWatch(After::Events(1))).verb("watch"));
    cluster
}

pub(crate) async fn started(
    cluster: &Cluster,
    selection: Selection,
) -> (SharedCacheFactory, lariat_cache::Cache<ConfigMap>) {
    let options = KindOptions::default().selection(selection);
    let factory = SharedCacheFactory::builder(cluster.client())
        .default_options(options)
        .build();
    let cache = factory.for_kind(config_maps()).cache::<ConfigMap>();
    factory.start();
    factory.wait_for_sync(MINUTE).await.expect("synced");
    (factory, cache)
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

pub(crate) fn labelled(name: &str, finalizers: &[&str]) -> ConfigMap {
    let metadata = json!({"name": name, "labels": {"app": "x"}, "finalizers": finalizers});
    serde_json::from_value(json!({"metadata": metadata})).expect("it is one")
}

#[tokio::test(start_paused = true)]
async fn creations_changes_and_deletions_are_read_back_without_a_watch() {
    let cluster = mute_cluster().await;
    let (factory, cache) = started(&cluster, Selection::all()).await;
    let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
    let value = || {
        cache
            .get(&key("a"))
            .unwrap()
            .map(|object| object.data.clone())
    };

    let created = api
        .create(&PostParams::default(), &labelled("a", &[]))
        .await
        .unwrap();
    assert_eq!(value(), Some(None));
    let mut changed = created.clone();
    changed.data = Some([("k".to_owned(), "1".to_owned())].into());
    api.replace("a", &PostParams::default(), &changed)
        .await
        .unwrap();
    assert_eq!(value(), Some(changed.data.clone()));
    let patch = Patch::Merge(json!({"data": {"k": "2"}}));
    api.patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(value().unwrap().unwrap()["k"], "2");
    let dry_run = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    api.patch("a", &dry_run, &Patch::Merge(json!({"data": {"k": "3"}})))
        .await
        .unwrap();
    assert_eq!(
        value().unwrap().unwrap()["k"],
        "2",
        "a dry run wrote nothing"
    );
    let dry_run = DeleteParams {
        dry_run: true,
        ..DeleteParams::default()
    };
    api.delete("a", &dry_run).await.unwrap();
    assert!(value().is_some(), "a dry run deleted nothing");
    let query = lariat_cache::Query::all().labels("app=x".parse().unwrap());
    assert_eq!(cache.count(&query), 1);
    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(value(), None);
    assert_eq!(cache.count(&query), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_was_stopped_shows_what_is_written_and_a_start_compares_it() {
    let cluster = cluster().await;
    let (factory, cache) = started(&cluster, Selection::all()).await;
    let recorder = Arc::new(Recorder::default());
    let subscription = factory
        .for_kind(config_maps())
        .subscribe(Arc::clone(&recorder) as Arc<dyn lariat_cache::Subscriber>);
    let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
    let (post, delete) = (PostParams::default(), DeleteParams::default());
    api.create(&post, &labelled("a", &[])).await.unwrap();
    let before = recorder.reported().len();
    factory.stop().await;
    for name in ["b", "c", "d"] {
        api.create(&post, &labelled(name, &[])).await.unwrap();
    }
    api.delete("a", &delete).await.unwrap();
    api.delete("d", &delete).await.unwrap();
    assert!(cache.readable().await);
    let is_there = ["a", "b", "c", "d"].map(|name| cache.get(&key(name)).unwrap().is_some());
    assert_eq!(is_there, [false, true, true, false]);
    // A write of another client, which the cache does not see.
    let outside: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    outside.delete("c", &delete).await.unwrap();
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    let is_there = ["a", "b", "c", "d"].map(|name| cache.get(&key(name)).unwrap().is_some());
    assert_eq!(is_there, [false, true, false, false]);
    assert_eq!(
        recorder.reported().len(),
        before + 6,
        "each change is published once"
    );
    drop(subscription);
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_was_never_filled_shows_nothing_that_is_written() {
    let cluster = cluster().await;
    let factory = SharedCacheFactory::new(cluster.client());
    let cache = factory.for_kind(config_maps()).cache::<ConfigMap>();
    let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
    api.create(&PostParams::default(), &labelled("a", &[]))
        .await
        .unwrap();
    assert_eq!(cache.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_object_with_finalizers_is_gone_with_the_last_of_them() {
    let cluster = mute_cluster().await;
    let (factory, cache) = started(&cluster, Selection::all()).await;
    let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
    api.create(&PostParams::default(), &labelled("a", &["demo.dev/hold"]))
        .await
        .unwrap();
    api.delete("a", &DeleteParams::default()).await.unwrap();
    let held = cache
        .get(&key("a"))
        .unwrap()
        .expect("it waits for its finalizer");
    assert!(held.metadata.deletion_timestamp.is_some());
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(cache.get(&key("a")).unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn the_watch_that_reports_it_again_changes_nothing() {
    let cluster = cluster().await;
    let (factory, cache) = started(&cluster, Selection::all()).await;
    let recorder = Arc::new(Recorder::default());
    let informer = factory.for_kind(config_maps());
    let _subscription = informer.subscribe(Arc::clone(&recorder) as _);
    let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
    api.create(&PostParams::default(), &labelled("a", &[]))
        .await
        .unwrap();
    for number in 0..5 {
        let patch = Patch::Merge(json!({"data": {"k": number.to_string()}}));
        api.patch("a", &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
    api.delete("a", &DeleteParams::default()).await.unwrap();
    api.create(&PostParams::default(), &labelled("b", &[]))
        .await
        .unwrap();
    tokio::time::sleep(MINUTE).await;
    assert_eq!(recorder.reported().len(), 8, "{:?}", recorder.reported());
    assert_eq!(cache.len(), 1);
}

/// The connection drops packets, which is noticed minutes later.
///
/// The next watch reports all states of before.
#[tokio::test(start_paused = true)]
async fn what_was_deleted_while_a_watch_was_silent_does_not_come_back_with_the_next() {
    let cluster = cluster().await;
    // The first bookmark comes before: without it a watch may be silent for up to ten minutes.
    let beginning = Duration::from_secs(5);
    let silence = Rule::new(Action::HangWatch(After::Time(beginning))).verb("watch");
    let silence = cluster.faults().add(silence);
    let (factory, cache) = started(&cluster, Selection::all()).await;
    cluster.faults().remove(silence);
    tokio::time::sleep(2 * beginning).await;
    let recorder = Arc::new(Recorder::default());
    let informer = factory.for_kind(config_maps());
    let _subscription = informer.subscribe(Arc::clone(&recorder) as _);
    let watches = informer.status().watches;
    let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
    let params = PostParams::default();
    api.create(&params, &labelled("a", &[])).await.unwrap();
    api.delete("a", &DeleteParams::default()).await.unwrap();
    let deleted = Instant::now();
    eventually(async || informer.status().watches > watches, true).await;
    assert!(deleted.elapsed() > MINUTE, "{:?}", deleted.elapsed());
    tokio::time::sleep(MINUTE).await;
    assert_eq!(recorder.reported().len(), 2, "{:?}", recorder.reported());
    assert!(cache.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_not_selected_is_not_cached_by_being_written() {
    let cluster = cluster().await;
    let others = Selection::all().with_labels("app=y".parse().unwrap());
    let unknowable = Selection::all().with_fields("metadata.name=a".parse().unwrap());
    for selection in [
        others,
        unknowable,
        Selection::all().in_namespaces(["kube-public"]),
    ] {
        let (factory, cache) = started(&cluster, selection).await;
        let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
        api.create(&PostParams::default(), &labelled("b", &[]))
            .await
            .unwrap();
        assert!(cache.is_empty());
        api.delete("b", &DeleteParams::default()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn others_writes_still_arrive_after_ours() {
    let cluster = cluster().await;
    let (factory, cache) = started(&cluster, Selection::all()).await;
    let ours: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
    let theirs: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    ours.create(&PostParams::default(), &labelled("a", &[]))
        .await
        .unwrap();
    let patch = Patch::Merge(json!({"data": {"k": "theirs"}}));
    theirs
        .patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    eventually(
        async || {
            cache
                .get(&key("a"))
                .unwrap()
                .unwrap()
                .data
                .clone()
                .map(|data| data["k"].clone())
        },
        Some("theirs".to_owned()),
    )
    .await;
    ours.delete("a", &DeleteParams::default()).await.unwrap();
    theirs
        .create(&PostParams::default(), &labelled("a", &[]))
        .await
        .unwrap();
    eventually(async || cache.len(), 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_terminates_is_shown_until_it_is_gone() {
    use k8s_openapi::api::core::v1::Namespace;
    let cluster = cluster().await;
    let factory = SharedCacheFactory::new(cluster.client());
    let namespaces = factory
        .for_kind(Gvk::new("", "v1", "Namespace"))
        .cache::<Namespace>();
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    let api: Api<Namespace> = Api::all(factory.clients().client());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "busy"}})).unwrap();
    api.create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    // Something holds it.
    let held: Api<ConfigMap> = Api::namespaced(cluster.client(), "busy");
    held.create(&PostParams::default(), &labelled("a", &["demo.dev/hold"]))
        .await
        .unwrap();
    api.delete("busy", &DeleteParams::default()).await.unwrap();
    let shown = || namespaces.get(&ObjectKey::cluster("busy")).unwrap();
    assert!(
        shown()
            .expect("it is terminating")
            .metadata
            .deletion_timestamp
            .is_some()
    );
    tokio::time::sleep(MINUTE).await;
    assert!(shown().is_some());
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    held.patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    eventually(async || shown().is_some(), false).await;
}
