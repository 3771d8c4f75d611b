//! Resyncs, and slow subscribers.

use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{Change, KindOptions, SharedCacheFactory};
use lariat_core::Cause;
use tokio::time;

use crate::bench::{MINUTE, Recorder, Writer, cluster, config_maps, eventually, factory};

#[tokio::test(start_paused = true)]
async fn objects_are_published_again_by_schedule_without_a_request() {
    let cluster = cluster().await;
    let writer = Writer::new(cluster.client());
    writer.create("a").await;
    writer.create("b").await;
    let factory = SharedCacheFactory::builder(cluster.client())
        .kind_options(config_maps(), KindOptions::default().resync(MINUTE))
        .build();
    let informer = factory.for_kind(config_maps());
    let recorder = Arc::new(Recorder::default());
    let _subscription = informer.subscribe(Arc::clone(&recorder) as _);
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    let requests = cluster.journal().requests().len();
    time::sleep(Duration::from_millis(3 * 60_000 + 19_000)).await;
    let resyncs = recorder
        .reported()
        .iter()
        .filter(|reported| reported.ends_with(&Cause::Resync.to_string()))
        .count();
    assert_eq!(resyncs, 6, "two objects, three times");
    assert_eq!(cluster.journal().requests().len(), requests);
    factory.stop().await;
    time::sleep(10 * MINUTE).await;
    assert_eq!(
        recorder.reported().len(),
        8,
        "what does not run does not resync"
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_published_again_without_a_resync_period() {
    let cluster = cluster().await;
    Writer::new(cluster.client()).create("a").await;
    for options in [
        KindOptions::default(),
        KindOptions::default().resync(Duration::ZERO),
    ] {
        let factory = SharedCacheFactory::builder(cluster.client())
            .default_options(options)
            .build();
        let informer = factory.for_kind(config_maps());
        let recorder = Arc::new(Recorder::default());
        let _subscription = informer.subscribe(Arc::clone(&recorder) as _);
        factory.start();
        time::sleep(60 * MINUTE).await;
        assert_eq!(recorder.reported().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_sleeps_delays_no_other_and_sees_the_last_state_of_everything() {
    let cluster = cluster().await;
    let factory = factory(cluster.client());
    let informer = factory.for_kind(config_maps());
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    let writer = Writer::new(cluster.client());
    writer.create("stays").await;
    writer.create("goes").await;
    eventually(async || informer.store().len(), 2).await;
    let mut changes = informer.changes();
    let prompt = Arc::new(Recorder::default());
    let _prompt = informer.subscribe(Arc::clone(&prompt) as _);

    for number in 0..100 {
        writer.change("stays", &number.to_string()).await;
        writer.create("passes").await;
        writer.delete("passes").await;
    }
    writer.delete("goes").await;
    writer.create("goes").await;
    eventually(async || prompt.reported().len(), 2 + 302).await;
    assert_eq!(
        changes.unread(),
        2,
        "one place for each object it has to know of"
    );
    let mut read = Vec::new();
    while let Some(change) = changes.try_next() {
        read.push(change);
    }
    // It had seen neither object, so that one was deleted meanwhile is not its business.
    let truth = writer.truth().await;
    let shown: Vec<(String, String)> = read
        .iter()
        .map(|change| match change {
            Change::Added { object, .. } => {
                (object.key().name().to_owned(), object.version().to_string())
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        shown
            .into_iter()
            .collect::<std::collections::BTreeMap<_, _>>(),
        truth
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_reader_has_seen_ends_before_its_successor_comes() {
    let cluster = cluster().await;
    let factory = factory(cluster.client());
    let informer = factory.for_kind(config_maps());
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    let writer = Writer::new(cluster.client());
    let prompt = Arc::new(Recorder::default());
    let _prompt = informer.subscribe(Arc::clone(&prompt) as _);
    let mut changes = informer.changes();
    writer.create("goes").await;
    assert!(matches!(changes.next().await, Change::Added { .. }));
    writer.delete("goes").await;
    writer.create("goes").await;
    writer.change("goes", "again").await;
    eventually(async || prompt.reported().len(), 4).await;
    let kinds: Vec<bool> = [changes.next().await, changes.next().await]
        .iter()
        .map(|change| matches!(change, Change::Deleted { .. }))
        .collect();
    assert_eq!(kinds, [true, false]);
    assert!(
        time::timeout(MINUTE, changes.next()).await.is_err(),
        "that was all"
    );
    writer.change("goes", "now").await;
    let woken = time::timeout(MINUTE, changes.next()).await.unwrap();
    assert!(matches!(woken, Change::Updated { .. }));
}
