//! What is counted of a kind.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_cache::{Metadata, Query, Reconnect};
use lariat_core::ObjectKey;
use tokio::time;

use crate::bench::{MINUTE, Writer, cluster, config_maps, factory};
use crate::script::{Answer, Ask, BodyEnd, Scripted, event, list, quiet, status};

/// Why requests followed others, with how often, on a server that does this to the first watches.
async fn reasons(
    watches: usize,
    does: impl Fn() -> Answer + Send + Sync + 'static,
) -> Vec<(&'static str, u64)> {
    let bench = Scripted::start(move |ask: &Ask| {
        if !ask.watch {
            return list(10, "", &[]);
        }
        if ask.number < watches {
            does()
        } else {
            quiet()
        }
    });
    time::sleep(20 * MINUTE).await;
    assert!(bench.script.watches() > watches);
    let status = bench.status();
    let counts = Reconnect::ALL.map(|each| (each.as_str(), status.reconnects(each)));
    // A watch on which nothing happens is given up after five to ten minutes.
    let quiet = ("silent", (bench.script.watches() - watches - 1) as u64);
    let happened = counts.into_iter().filter(|(_, count)| *count > 0);
    happened.filter(|each| *each != quiet).collect()
}

#[tokio::test(start_paused = true)]
async fn requests_that_follow_others_are_counted_by_what_ended_these() {
    let cut = |end| {
        let versions = AtomicU64::new(11);
        let next = move || versions.fetch_add(1, Ordering::Relaxed);
        move || Answer::Pieces(vec![event("MODIFIED", "a", next())], end)
    };
    assert_eq!(reasons(3, cut(BodyEnd::Clean)).await, [("closed", 3)]);
    assert_eq!(reasons(3, cut(BodyEnd::Cut)).await, [("failed", 3)]);
    let at_once = || Answer::Pieces(Vec::new(), BodyEnd::Clean);
    assert_eq!(reasons(2, at_once).await, [("closed", 2)]);
    let expired = || status(410, "Expired");
    assert_eq!(reasons(2, expired).await, [("expired", 2)]);
    let refused = || status(500, "InternalError");
    assert_eq!(reasons(2, refused).await, [("refused", 2)]);
    assert_eq!(reasons(2, || Answer::Nothing).await, [("failed", 2)]);
    let nonsense = || Answer::Pieces(vec!["nonsense\n".to_owned()], BodyEnd::Clean);
    assert_eq!(reasons(1, nonsense).await, [("failed", 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_falls_silent_and_an_answer_that_never_comes_count_alike() {
    let bench = Scripted::start(|ask| match (ask.watch, ask.number) {
        (false, _) => list(10, "", &["a"]),
        (true, 0) => Answer::Never,
        (true, _) => quiet(),
    });
    time::sleep(15 * MINUTE).await;
    let status = bench.status();
    assert_eq!(
        status.reconnects(Reconnect::Silent),
        bench.script.watches() as u64 - 1
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_and_the_beginning_of_a_watch_are_loads_alike() {
    let cluster = cluster().await;
    let streaming = factory(cluster.client());
    let informer = streaming.for_kind(config_maps());
    streaming.start();
    streaming.wait_for_sync(MINUTE).await.unwrap();
    let streamed = informer.status();
    assert_eq!((streamed.loads, streamed.lists), (1, 0));

    let bench = Scripted::start(|ask| match (ask.watch, ask.number) {
        (false, 1) => status(500, "InternalError"),
        (false, _) => list(10, "", &["a"]),
        (true, 0) => status(410, "Expired"),
        (true, _) => quiet(),
    });
    time::sleep(MINUTE).await;
    let status = bench.status();
    assert_eq!((status.loads, status.lists), (2, 3), "one was refused");
}

#[tokio::test(start_paused = true)]
async fn what_is_decoded_is_counted_and_what_is_shared_is_not() {
    let cluster = cluster().await;
    let writer = Writer::new(cluster.client());
    for name in ["a", "b", "c"] {
        writer.create(name).await;
    }
    let factory = factory(cluster.client());
    let informer = factory.for_kind(config_maps());
    let typed = informer.cache::<ConfigMap>();
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    let decodes = || informer.status().decodes;
    assert_eq!(decodes(), 0, "filling decodes nothing");

    let key = ObjectKey::namespaced("default", "a");
    let first = typed.get(&key).unwrap();
    let second = typed.get(&key).unwrap();
    assert_eq!(decodes(), 1, "both have the same");
    assert_eq!(informer.cache::<Metadata>().list().count(), 3);
    assert_eq!(decodes(), 1, "metadata is there already");
    assert_eq!(typed.list().count(), 3);
    assert_eq!(decodes(), 3, "one of them was in use");
    drop((first, second));
    assert_eq!(typed.select(&Query::default()).count(), 3);
    assert_eq!(decodes(), 6, "they were not in use any more");

    typed.add_index("name", |_| vec!["all".to_owned()]).unwrap();
    assert_eq!(decodes(), 9);
    assert_eq!(typed.by_index("name", "all").unwrap().count(), 3);
    assert_eq!(decodes(), 12);
    writer.change("a", "1").await;
    time::sleep(Duration::from_secs(1)).await;
    assert_eq!(decodes(), 13, "the index looks at the new state");
}

#[tokio::test(start_paused = true)]
async fn an_index_does_not_keep_its_store() {
    let cluster = cluster().await;
    let factory = factory(cluster.client());
    let informer = factory.for_kind(config_maps());
    let cache = informer.cache::<ConfigMap>();
    cache.add_index("none", |_| Vec::new()).unwrap();
    let store = Arc::downgrade(informer.store());
    drop((cache, informer, factory));
    assert!(store.upgrade().is_none());
}

#[tokio::test(start_paused = true)]
async fn what_does_not_decode_is_not_counted() {
    let cluster = cluster().await;
    Writer::new(cluster.client()).create("a").await;
    let factory = factory(cluster.client());
    let informer = factory.for_kind(config_maps());
    let cache = informer.cache::<u8>();
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    assert!(cache.list().all(|each| each.is_err()));
    assert_eq!(informer.status().decodes, 0);
}
