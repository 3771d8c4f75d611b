//! Existing kube-rs code on a shared informer.

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::watcher::Event;
use std::sync::Arc;

use crate::bench::{MINUTE, Writer, cluster, config_maps, eventually, factory};

#[tokio::test(start_paused = true)]
async fn the_events_are_those_of_a_watcher() {
    let cluster = cluster().await;
    let writer = Writer::new(cluster.client());
    writer.create("a").await;
    writer.create("b").await;
    let factory = factory(cluster.client());
    let informer = factory.for_kind(config_maps());
    let mut events = std::pin::pin!(informer.watcher_events::<ConfigMap>());
    factory.start();
    let mut next = async || {
        let event = tokio::time::timeout(MINUTE, events.next()).await;
        let name = |object: ConfigMap| object.metadata.name.unwrap();
        match event.expect("there is one").unwrap().unwrap() {
            Event::Init => "init".to_owned(),
            Event::InitApply(object) => format!("init {}", name(object)),
            Event::InitDone => "done".to_owned(),
            Event::Apply(object) => format!("apply {}", name(object)),
            Event::Delete(object) => format!("delete {}", name(object)),
        }
    };
    for expected in ["init", "init a", "init b", "done"] {
        assert_eq!(next().await, expected);
    }
    writer.change("a", "1").await;
    assert_eq!(next().await, "apply a");
    writer.delete("b").await;
    assert_eq!(next().await, "delete b");
    assert_eq!(cluster.journal().count("watch", "configmaps"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_of_kube_rs_is_fed_and_streams_can_be_combined() {
    let cluster = cluster().await;
    let writer = Writer::new(cluster.client());
    writer.create("a").await;
    let factory = factory(cluster.client());
    let informer = factory.for_kind(config_maps());
    factory.start();
    let (store, feed) = reflector::store::<ConfigMap>();
    let feeding = informer.feed(feed);
    let looking = async {
        store.wait_until_ready().await.unwrap();
        writer.create("b").await;
        writer.delete("a").await;
        let names = async || {
            let mut names: Vec<String> = store
                .state()
                .iter()
                .map(|object| object.metadata.name.clone().unwrap())
                .collect();
            names.sort();
            names
        };
        eventually(names, vec!["b".to_owned()]).await;
        assert!(store.get(&ObjectRef::new("b").within("default")).is_some());
    };
    tokio::select! {
        () = feeding => panic!("it goes on"),
        () = looking => {}
    }
    let mut applied = std::pin::pin!(informer.watcher_events::<ConfigMap>().applied_objects());
    let first = applied.next().await.unwrap().unwrap();
    assert_eq!(first.metadata.name.as_deref(), Some("b"));
    let _: Arc<ConfigMap> = Arc::new(first);
}
