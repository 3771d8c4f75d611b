//! Restricted caches.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use lariat_cache::{Informer, KindOptions, Phase, Selection, SharedCacheFactory};
use lariat_cluster::Cluster;
use serde_json::json;

use crate::bench::{MINUTE, Recorder, cluster, config_maps, eventually};

/// A cluster with ConfigMaps `red` and `blue` in three namespaces, labelled with their colour.
async fn coloured() -> Cluster {
    let cluster = cluster().await;
    for namespace in ["default", "kube-public", "kube-system"] {
        for colour in ["red", "blue"] {
            create(&cluster, namespace, colour, colour).await;
        }
    }
    cluster
}

async fn create(cluster: &Cluster, namespace: &str, name: &str, colour: &str) {
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(), namespace);
    let object = json!({"metadata": {"name": name, "labels": {"colour": colour}}});
    let object = serde_json::from_value(object).expect("it is one");
    api.create(&PostParams::default(), &object)
        .await
        .expect("created");
}

async fn started(cluster: &Cluster, selection: Selection) -> (SharedCacheFactory, Informer) {
    let options = KindOptions::default().selection(selection);
    let factory = SharedCacheFactory::builder(cluster.client())
        .kind_options(config_maps(), options)
        .build();
    let informer = factory.for_kind(config_maps());
    factory.start();
    factory.wait_for_sync(MINUTE).await.expect("synced");
    (factory, informer)
}

fn keys(informer: &Informer) -> Vec<String> {
    informer
        .store()
        .keys()
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn only_what_is_selected_is_cached() {
    let cluster = coloured().await;
    let red = || Selection::all().with_labels("colour=red".parse().unwrap());
    for (selection, expected) in [
        (
            red(),
            vec!["default/red", "kube-public/red", "kube-system/red"],
        ),
        (red().in_namespaces(["default"]), vec!["default/red"]),
        (
            Selection::all().in_namespaces(["kube-public", "default"]),
            vec![
                "default/blue",
                "default/red",
                "kube-public/blue",
                "kube-public/red",
            ],
        ),
        (
            Selection::all().with_fields(
                "metadata.name!=red,metadata.namespace=default"
                    .parse()
                    .unwrap(),
            ),
            vec!["default/blue"],
        ),
    ] {
        let (_factory, informer) = started(&cluster, selection.clone()).await;
        assert_eq!(keys(&informer), expected, "{selection:?}");
        assert_eq!(informer.selection(), selection);
    }
}

#[tokio::test(start_paused = true)]
async fn several_namespaces_are_several_watches_into_one_store() {
    let cluster = coloured().await;
    let selection = Selection::all().in_namespaces(["default", "kube-system", "default"]);
    let (_factory, informer) = started(&cluster, selection).await;
    let recorder = Arc::new(Recorder::default());
    let _subscription = informer.subscribe(Arc::clone(&recorder) as _);
    assert_eq!(cluster.journal().count("watch", "configmaps"), 2);
    create(&cluster, "kube-system", "green", "green").await;
    create(&cluster, "kube-public", "green", "green").await;
    eventually(async || keys(&informer).len(), 5).await;
    // One is listed again, which must not sweep the other away.
    cluster.compact();
    cluster.cut_watches();
    create(&cluster, "default", "green", "green").await;
    eventually(async || keys(&informer).len(), 6).await;
    assert_eq!(recorder.reported().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_selection_changes_while_running_and_publishes_changes() {
    let cluster = coloured().await;
    let selection = Selection::all().in_namespaces(["default"]);
    let (factory, informer) = started(&cluster, selection).await;
    let mut changes = informer.changes();
    let mut seen = BTreeSet::new();
    let mut follow = |changes: &mut lariat_cache::Changes| {
        while let Some(change) = changes.try_next() {
            match change {
                lariat_cache::Change::Added { object, .. } => {
                    assert!(seen.insert(object.key().to_string()))
                }
                lariat_cache::Change::Deleted { last } => assert!(seen.remove(last.key().as_str())),
                other => panic!("{other:?}"),
            }
        }
        seen.iter().cloned().collect::<Vec<_>>()
    };
    assert_eq!(follow(&mut changes), ["default/blue", "default/red"]);

    informer.select(Selection::all().with_labels("colour=red".parse().unwrap()));
    assert_ne!(informer.status().phase, Phase::Synced);
    factory.wait_for_sync(MINUTE).await.unwrap();
    let red = ["default/red", "kube-public/red", "kube-system/red"];
    assert_eq!(follow(&mut changes), red);
    assert_eq!(keys(&informer), red);

    informer.select(Selection::all().in_namespaces(["kube-public"]));
    factory.wait_for_sync(MINUTE).await.unwrap();
    assert_eq!(
        follow(&mut changes),
        ["kube-public/blue", "kube-public/red"]
    );
    informer.select(Selection::all());
    factory.wait_for_sync(MINUTE).await.unwrap();
    assert_eq!(follow(&mut changes).len(), 6);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_the_selection_is_deleted_from_the_cache() {
    let cluster = coloured().await;
    let selection = Selection::all().with_labels("colour=red".parse().unwrap());
    let (_factory, informer) = started(&cluster, selection).await;
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    let paint = async |colour: &str| {
        let patch = Patch::Merge(json!({"metadata": {"labels": {"colour": colour}}}));
        api.patch("red", &PatchParams::default(), &patch)
            .await
            .unwrap();
    };
    paint("blue").await;
    eventually(async || keys(&informer).len(), 2).await;
    paint("red").await;
    eventually(async || keys(&informer).len(), 3).await;
}

/// On real threads: the phases of many namespaces that are filled at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn namespaces_that_are_filled_at_the_same_time_are_filled_together() {
    let cluster = cluster().await;
    for _ in 0..50 {
        let namespaces = (0..8).map(|number| format!("n{number}"));
        let selection = Selection::all().in_namespaces(namespaces);
        let (factory, informer) = started(&cluster, selection).await;
        assert_eq!(informer.status().phase, Phase::Synced);
        factory.stop().await;
    }
}
