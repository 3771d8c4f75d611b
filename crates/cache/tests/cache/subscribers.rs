//! Subscribers that panic, leave and bring others in the middle of a call.

use std::sync::Arc;

use lariat_cache::{Change, Informer, Subscriber, Subscription};
use parking_lot::Mutex;

use crate::bench::{MINUTE, Recorder, Writer, cluster, config_maps, eventually, factory};

/// Does something on its first call.
struct Once<F> {
    act: Mutex<Option<F>>,
}

impl<F: FnOnce() + Send> Once<F> {
    fn new(act: F) -> Arc<Self> {
        Arc::new(Self {
            act: Mutex::new(Some(act)),
        })
    }
}

impl<F: FnOnce() + Send + 'static> Subscriber for Once<F> {
    fn changed(&self, _: &[Change]) {
        let act = self.act.lock().take();
        if let Some(act) = act {
            act();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_panics_silences_no_other() {
    let cluster = cluster().await;
    let factory = factory(cluster.client());
    let informer = factory.for_kind(config_maps());
    let _bad = informer.subscribe(Once::new(|| panic!("not today")));
    let recorder = Arc::new(Recorder::default());
    let _good = informer.subscribe(Arc::clone(&recorder) as _);
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    let writer = Writer::new(cluster.client());
    writer.create("a").await;
    writer.change("a", "1").await;
    eventually(async || recorder.reported().len(), 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_may_subscribe_another_and_end_its_own_subscription() {
    let cluster = cluster().await;
    let factory = factory(cluster.client());
    let informer: Informer = factory.for_kind(config_maps());
    let recorder = Arc::new(Recorder::default());
    let own: Arc<Mutex<Option<Subscription>>> = Arc::default();
    let other: Arc<Mutex<Option<Subscription>>> = Arc::default();
    let act = {
        let (informer, recorder) = (informer.clone(), Arc::clone(&recorder));
        let (own, other) = (Arc::clone(&own), Arc::clone(&other));
        move || {
            *other.lock() = Some(informer.subscribe(recorder));
            own.lock().take();
        }
    };
    *own.lock() = Some(informer.subscribe(Once::new(act)));
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    let writer = Writer::new(cluster.client());
    writer.create("a").await;
    writer.create("b").await;
    // The recorder fails on an object that is published twice.
    eventually(async || recorder.known(), writer.truth().await).await;
    assert!(own.lock().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_was_ended_during_a_call_gets_no_further_change() {
    let cluster = cluster().await;
    let factory = factory(cluster.client());
    let informer = factory.for_kind(config_maps());
    let second: Arc<Mutex<Option<Subscription>>> = Arc::default();
    let ends = Arc::clone(&second);
    let _first = informer.subscribe(Once::new(move || drop(ends.lock().take())));
    let recorder = Arc::new(Recorder::default());
    *second.lock() = Some(informer.subscribe(Arc::clone(&recorder) as _));
    factory.start();
    factory.wait_for_sync(MINUTE).await.unwrap();
    let writer = Writer::new(cluster.client());
    writer.create("a").await;
    eventually(
        async || !informer.store().is_empty() && second.lock().is_none(),
        true,
    )
    .await;
    assert!(recorder.reported().is_empty());
}

#[tokio::test(start_paused = true)]
async fn two_subscriptions_of_one_subscriber_are_independent() {
    struct Counter(std::sync::atomic::AtomicUsize);
    impl lariat_cache::Subscriber for Counter {
        fn changed(&self, changes: &[lariat_cache::Change]) {
            self.0
                .fetch_add(changes.len(), std::sync::atomic::Ordering::Relaxed);
        }
    }
    let cluster = crate::bench::cluster().await;
    let factory = crate::bench::factory(cluster.client());
    let informer = factory.for_kind(crate::bench::config_maps());
    factory.start();
    factory.wait_for_sync(crate::bench::MINUTE).await.unwrap();
    let counter = Arc::new(Counter(0.into()));
    let first = informer.subscribe(Arc::clone(&counter) as _);
    let _second = informer.subscribe(Arc::clone(&counter) as _);
    let writer = crate::bench::Writer::new(cluster.client());
    let reported = async || counter.0.load(std::sync::atomic::Ordering::Relaxed);
    writer.create("a").await;
    crate::bench::eventually(reported, 2).await;
    drop(first);
    writer.create("b").await;
    crate::bench::eventually(reported, 3).await;
}
