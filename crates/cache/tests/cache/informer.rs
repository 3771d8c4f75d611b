//! Informers on the embedded cluster.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DynamicObject;
use lariat_cache::{Informer, Metadata, SharedCacheFactory};
use lariat_cluster::Cluster;
use lariat_core::ObjectKey;
use tokio::time;

use crate::bench::{MINUTE, Recorder, Writer, cached, cluster, config_maps, eventually, factory};

async fn started(cluster: &Cluster) -> (SharedCacheFactory, Informer, Writer) {
    let factory = factory(cluster.client());
    let informer = factory.for_kind(config_maps());
    informer.need::<ConfigMap>();
    factory.start();
    factory.wait_for_sync(MINUTE).await.expect("synced");
    (factory, informer, Writer::new(cluster.client()))
}

#[tokio::test(start_paused = true)]
async fn every_view_shows_the_same_object() {
    let cluster = cluster().await;
    let (_factory, informer, writer) = started(&cluster).await;
    writer.create("a").await;
    writer.change("a", "1").await;
    eventually(async || cached(&informer), writer.truth().await).await;

    let key = ObjectKey::namespaced("default", "a");
    let typed = informer.cache::<ConfigMap>();
    let object = typed.get(&key).unwrap().unwrap();
    assert_eq!(object.data.as_ref().unwrap()["value"], "1");
    let dynamic = typed.view::<DynamicObject>().get(&key).unwrap().unwrap();
    assert_eq!(dynamic.types.as_ref().unwrap().kind, "ConfigMap");
    assert_eq!(dynamic.data["data"]["value"], "1");
    let metadata = typed.view::<Metadata>().get(&key).unwrap().unwrap();
    assert_eq!(metadata.key(), &key);
    assert!(
        typed
            .get(&ObjectKey::namespaced("default", "none"))
            .unwrap()
            .is_none()
    );

    let again = typed.get(&key).unwrap().unwrap();
    assert!(Arc::ptr_eq(&object, &again), "one decode for all readers");
    assert_eq!(cluster.journal().count("watch", "configmaps"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_decode_is_an_error_among_the_others() {
    let cluster = cluster().await;
    let (_factory, informer, writer) = started(&cluster).await;
    for name in ["a", "b", "c"] {
        writer.create(name).await;
    }
    writer.change("b", "x").await;
    eventually(async || cached(&informer), writer.truth().await).await;

    #[derive(Debug, serde::Deserialize)]
    struct NoData {
        #[serde(default)]
        _data: (),
        metadata: kube::core::ObjectMeta,
    }
    #[derive(Debug, serde::Deserialize)]
    struct Strict {
        data: Option<()>,
    }
    let lenient = informer.cache::<NoData>().list();
    assert_eq!(
        lenient
            .filter(|object| object.as_ref().unwrap().metadata.name.is_some())
            .count(),
        3
    );
    let strict: Vec<bool> = informer
        .cache::<Strict>()
        .list()
        .map(|o| o.is_ok())
        .collect();
    assert_eq!(strict, [true, false, true]);
    let key = ObjectKey::namespaced("default", "b");
    let error = informer.cache::<Strict>().get(&key).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("v1 ConfigMap default/b cannot be decoded"),
        "{error}"
    );
    assert_eq!(
        informer
            .cache::<Strict>()
            .get(&ObjectKey::namespaced("default", "a"))
            .unwrap()
            .unwrap()
            .data,
        None
    );
}

#[tokio::test(start_paused = true)]
async fn a_late_subscriber_gets_what_exists_and_then_changes() {
    let cluster = cluster().await;
    let (_factory, informer, writer) = started(&cluster).await;
    let first = Arc::new(Recorder::default());
    let _first = informer.subscribe(Arc::clone(&first) as _);
    writer.create("a").await;
    writer.create("b").await;
    writer.delete("b").await;
    eventually(async || first.reported().len(), 3).await;

    let late = Arc::new(Recorder::default());
    let subscription = informer.subscribe(Arc::clone(&late) as _);
    assert_eq!(
        late.reported().len(),
        1,
        "what exists is published before subscribing returns"
    );
    writer.change("a", "1").await;
    eventually(async || late.reported().len(), 2).await;
    assert_eq!(first.known(), late.known());

    drop(subscription);
    writer.change("a", "2").await;
    eventually(async || first.reported().len(), 5).await;
    assert_eq!(late.reported().len(), 2);
}

/// Random faults a correct server may show: the cache ends equal to the server, and a
/// subscriber has seen the last state of every object.
#[tokio::test(start_paused = true)]
async fn the_cache_follows_the_server_through_cuts_and_expiry() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let cluster = Cluster::builder()
            .history(8)
            .start()
            .await
            .expect("started");
        let (_factory, informer, writer) = started(&cluster).await;
        let recorder = Arc::new(Recorder::default());
        let _subscription = informer.subscribe(Arc::clone(&recorder) as _);
        for step in 0..200 {
            let name = format!("o{}", random.u8(..8));
            match (writer.truth().await.contains_key(&name), random.u8(..10)) {
                (_, 0) => cluster.cut_watches(),
                (_, 1) => cluster.end_watches(),
                (_, 2) => cluster.compact(),
                (_, 3) => time::sleep(Duration::from_millis(random.u64(..2_000))).await,
                (false, _) => writer.create(&name).await,
                (true, 4 | 5) => writer.delete(&name).await,
                (true, _) => writer.change(&name, &step.to_string()).await,
            }
        }
        println!("seed {seed}: {:?}", informer.status());
        eventually(async || cached(&informer), writer.truth().await).await;
        assert_eq!(recorder.known(), writer.truth().await, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stopped_factory_starts_again_and_catches_up() {
    let cluster = cluster().await;
    let (factory, informer, writer) = started(&cluster).await;
    let recorder = Arc::new(Recorder::default());
    let _subscription = informer.subscribe(Arc::clone(&recorder) as _);
    writer.create("a").await;
    writer.create("b").await;
    eventually(async || recorder.reported().len(), 2).await;

    factory.stop().await;
    writer.delete("a").await;
    writer.change("b", "1").await;
    writer.create("c").await;
    time::sleep(10 * MINUTE).await;
    assert_eq!(recorder.reported().len(), 2, "nothing runs");
    assert_eq!(
        cached(&informer).len(),
        2,
        "what is cached can still be read"
    );

    factory.start();
    eventually(async || recorder.known(), writer.truth().await).await;
    assert_eq!(recorder.reported().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn the_bytes_of_a_kind_are_counted_and_freed() {
    let cluster = cluster().await;
    let (_factory, informer, writer) = started(&cluster).await;
    writer.create("a").await;
    eventually(async || informer.status().objects, 1).await;
    let before = informer.status().bytes;
    assert!(before > 0);
    writer.delete("a").await;
    eventually(async || informer.status().objects, 0).await;
    assert_eq!(informer.status().bytes, 0);
}
