//! Kinds that become unused, and kinds that vanish.

use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{Metadata, MissingKind, Phase, SharedCacheFactory};
use lariat_core::Gvk;
use tokio::time::{self, Instant};

use crate::bench::{
    MINUTE, Recorder, Writer, cluster, config_maps, eventually, factory, listing, no_client,
};
use crate::script::{Answer, BodyEnd, Script, list, quiet, status};

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
async fn the_objects_of_a_kind_that_is_gone_for_good_are_deleted_and_come_back_with_it() {
    let start = Instant::now();
    let seconds = Duration::from_secs;
    let script = Script::new(move |ask| match (ask.watch, start.elapsed()) {
        // For a short time, as while an API server starts; then for long.
        (_, now) if now > seconds(60) && now < seconds(80) => status(404, "NotFound"),
        (_, now) if now > seconds(200) && now < seconds(300) => status(404, "NotFound"),
        (false, _) => list(10, "", &["a", "b"]),
        (true, now) if now < seconds(60) => Answer::Slow(Vec::new(), seconds(1)),
        (true, _) => quiet(),
    });
    let factory = SharedCacheFactory::builder(no_client())
        .missing_kind(MissingKind::Wait)
        .default_options(
            lariat_cache::KindOptions::default().initial_list(lariat_cache::InitialList::List),
        )
        .build();
    let informer = factory.for_source(config_maps(), Arc::new(Ending404(script)));
    let recorder = Arc::new(Recorder::default());
    let _subscription = informer.subscribe(Arc::clone(&recorder) as _);
    factory.start();
    time::sleep(seconds(100)).await;
    assert_eq!(
        recorder.reported().len(),
        2,
        "a short absence deletes nothing"
    );
    assert_eq!(informer.status().phase, Phase::Synced);
    time::sleep(seconds(120)).await;
    assert_eq!(informer.status().phase, Phase::Missing);
    assert_eq!(recorder.reported().len(), 2);
    time::sleep(seconds(30)).await;
    assert_eq!(
        recorder.reported()[2..],
        ["a deleted at 10", "b deleted at 10"]
    );
    time::sleep(seconds(60)).await;
    assert_eq!(recorder.known().len(), 2);
    assert_eq!(informer.status().phase, Phase::Synced);
}

#[tokio::test(start_paused = true)]
async fn an_absence_before_a_stop_is_no_part_of_one_after_the_next_start() {
    let start = Instant::now();
    let seconds = Duration::from_secs;
    let script = Script::new(move |ask| match (ask.watch, start.elapsed()) {
        (_, now) if now > seconds(60) && now < seconds(75) => status(404, "NotFound"),
        // An API server that starts does not know its custom resources for a moment.
        (_, now) if now > seconds(3600) && now < seconds(3603) => status(404, "NotFound"),
        (false, _) => list(10, "", &["a", "b"]),
        (true, _) => Answer::Slow(Vec::new(), seconds(1)),
    });
    let factory = SharedCacheFactory::builder(no_client())
        .missing_kind(MissingKind::Wait)
        .default_options(
            lariat_cache::KindOptions::default().initial_list(lariat_cache::InitialList::List),
        )
        .build();
    let informer = factory.for_source(config_maps(), Arc::new(Ending404(script)));
    let recorder = Arc::new(Recorder::default());
    let _subscription = informer.subscribe(Arc::clone(&recorder) as _);
    factory.start();
    time::sleep(seconds(72)).await;
    assert_eq!(informer.status().phase, Phase::Missing);
    factory.stop().await;
    time::sleep_until(start + seconds(3601)).await;
    factory.start();
    time::sleep(seconds(1)).await;
    assert_eq!(informer.status().phase, Phase::Missing);
    time::sleep(seconds(10)).await;
    assert_eq!(informer.status().phase, Phase::Synced);
    assert_eq!(recorder.reported(), ["a added at 10", "b added at 10"]);
}

/// Ends its watches when the script begins to answer 404.
struct Ending404(Script);

impl lariat_cache::Source for Ending404 {
    fn get<'a>(
        &'a self,
        request: &'a lariat_cache::SourceRequest,
    ) -> futures::future::BoxFuture<
        'a,
        Result<http::Response<lariat_cache::SourceBody>, lariat_cache::SourceError>,
    > {
        use http_body_util::BodyExt;
        let answer = self.0.get(request);
        Box::pin(async move {
            let response = answer.await?;
            if !request.watch || !response.status().is_success() {
                return Ok(response);
            }
            // Watches last ten seconds here.
            let end = futures::StreamExt::boxed(futures::stream::once(async {
                time::sleep(Duration::from_secs(10)).await;
                Ok(http_body::Frame::data(bytes::Bytes::new()))
            }));
            Ok(http::Response::new(
                http_body_util::StreamBody::new(end).boxed_unsync(),
            ))
        })
    }
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
