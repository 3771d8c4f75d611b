//! Kinds that become unused, and kinds that come later.

use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{Metadata, Phase, SharedCacheFactory};
use lariat_core::Gvk;
use tokio::time::{self, Instant};

use crate::bench::{
    MINUTE, Recorder, Writer, cluster, config_maps, eventually, factory, listing, no_client,
};
use crate::script::{Answer, BodyEnd, Script, list, status};
use crate::unserved::Ending404;

#[tokio::test(start_paused = true)]
async fn the_watch_of_a_kind_ends_and_its_memory_is_freed_a_while_after_its_last_user() {
    let cluster = cluster().await;
    Writer::new(cluster.client()).create("a").await;
    let factory = factory(cluster.client());
    let informer = factory.for_kind(config_maps());
    let store = Arc::downgrade(informer.store());
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();

    // Each of these is a use.
    let cache = informer.cache::<Metadata>();
    let subscription = informer.subscribe(Arc::new(Recorder::default()) as _);
    let changes = informer.changes();
    drop(informer);
    time::sleep(10 * MINUTE).await;
    drop(subscription);
    time::sleep(10 * MINUTE).await;
    drop(changes);
    time::sleep(10 * MINUTE).await;
    assert_eq!(factory.status().len(), 1);
    assert!(store.upgrade().is_some());

    drop(cache);
    time::sleep(Duration::from_secs(59)).await;
    assert_eq!(factory.status().len(), 1, "there is a time of grace");
    time::sleep(Duration::from_secs(2)).await;
    assert!(factory.status().is_empty());
    eventually(async || store.upgrade().is_none(), true).await;
}

#[tokio::test(start_paused = true)]
async fn a_use_within_the_grace_period_finds_the_same_watch_and_a_later_one_a_new_one() {
    let cluster = cluster().await;
    let factory = factory(cluster.client());
    let informer = factory.for_kind(config_maps());
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    drop(informer);
    time::sleep(Duration::from_secs(30)).await;
    let again = factory.for_kind(config_maps());
    time::sleep(3 * MINUTE).await;
    assert_eq!(cluster.journal().count("watch", "configmaps"), 1);
    assert!(factory.existing(&config_maps()).is_some());
    drop(again);
    time::sleep(2 * MINUTE).await;
    assert!(factory.existing(&config_maps()).is_none());
    assert!(factory.status().is_empty(), "to look does not open it");
    let late = factory.for_kind(config_maps());
    factory.wait_for_sync(MINUTE).await.unwrap();
    assert_eq!(cluster.journal().count("watch", "configmaps"), 2);
    assert_eq!(late.status().phase, Phase::Synced);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_comes_and_goes_and_comes_is_followed() {
    let factory = listing(no_client());
    let start = Instant::now();
    let script = Script::new(move |ask| {
        if start.elapsed() < MINUTE {
            status(404, "NotFound")
        } else if ask.watch {
            Answer::Pieces(Vec::new(), BodyEnd::Silence)
        } else {
            list(10, "", &["a"])
        }
    });
    let informer = factory.for_source(Gvk::new("demo.dev", "v1", "Widget"), Arc::new(script));
    factory.start();
    time::sleep(Duration::from_secs(30)).await;
    assert_eq!(informer.status().phase, Phase::Missing);
    time::sleep(MINUTE).await;
    assert_eq!(informer.status().phase, Phase::Synced);
}

#[tokio::test(start_paused = true)]
async fn a_proxy_that_does_not_find_the_api_server_deletes_nothing() {
    let start = Instant::now();
    let script = Script::new(move |ask| match ask.watch {
        _ if start.elapsed() > MINUTE && start.elapsed() < 10 * MINUTE => {
            Answer::Whole(404, Vec::new(), "default backend - 404".to_owned())
        }
        false => list(10, "", &["a"]),
        true => Answer::Slow(Vec::new(), MINUTE),
    });
    let factory = listing(no_client());
    let informer = factory.for_source(config_maps(), Arc::new(Ending404(script)));
    factory.start();
    time::sleep(9 * MINUTE).await;
    assert_eq!(informer.store().len(), 1);
    let error = informer.status().last_error.unwrap();
    assert!(
        error.contains("404 Not Found: default backend - 404"),
        "{error}"
    );
    time::sleep(5 * MINUTE).await;
    assert_eq!(informer.status().phase, Phase::Synced);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_became_idle_before_a_restart_ends_after_it() {
    let cluster = cluster().await;
    let factory = factory(cluster.client());
    let informer = factory.for_kind(config_maps());
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    drop(informer);
    time::sleep(Duration::from_secs(1)).await;
    factory.stop().await;
    factory.start();
    time::sleep(2 * MINUTE).await;
    assert!(factory.status().is_empty());
}

#[tokio::test(start_paused = true)]
async fn endless_times_are_taken_for_never() {
    let cluster = cluster().await;
    let options = lariat_cache::KindOptions::default().resync(Duration::MAX);
    let factory = SharedCacheFactory::builder(cluster.client())
        .idle_grace(Duration::MAX)
        .default_options(options)
        .build();
    let informer = factory.for_kind(config_maps());
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    drop(informer);
    time::sleep(60 * MINUTE).await;
    assert_eq!(factory.status()[0].phase, Phase::Synced);
}

#[tokio::test(start_paused = true)]
async fn a_factory_that_is_dropped_is_freed_with_everything_it_gave_out() {
    let cluster = cluster().await;
    let before = std::sync::Arc::new(());
    let token = Arc::clone(&before);
    let mut service = cluster.service();
    let counted = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let _token = &token;
        tower_service::Service::call(&mut service, request)
    });
    let factory = SharedCacheFactory::new(kube::Client::new(counted, "default"));
    let informer = factory.for_kind(config_maps());
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    let _ = factory.clients().client();
    drop((informer, factory));
    eventually(async || Arc::strong_count(&before), 1).await;
}
