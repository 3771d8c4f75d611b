//! Handlers that wait for the caches of related kinds.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Endpoints, Secret};
use kube::api::{Api, PostParams};
use lariat_cache::Metadata;
use lariat_cluster::faults::{Action as Fault, Refusal, Rule, StatusCode};
use lariat_controller::{Context, Outcome, Registration, Relation, SharedController};
use lariat_core::Gvk;
use lariat_testing::Logs;
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time;

use crate::bench::{Bench, SECOND, key, recorder, settle};
use crate::relations::{create, running_with, secrets};

#[tokio::test(start_paused = true)]
async fn handlers_wait_for_the_caches_of_related_kinds() {
    let bench = Bench::new().await;
    let api = secrets(&bench);
    create(
        &api,
        json!({"metadata": {"name": "s", "labels": {"of": "a"}}}),
    )
    .await;
    bench.create("a").await;
    let others = bench.factory.for_object::<Secret>();
    let cache = others.cache();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    bench.on("log", move |_| {
        log.lock().push(cache.list().count());
        async { Ok(Outcome::done()) }
    });
    bench
        .config_maps
        .watch_related(&others, Relation::label("of"));
    let slow = lariat_cluster::faults::Rule::new(lariat_cluster::faults::Action::Delay(5 * SECOND))
        .verb("watch")
        .resource("secrets");
    bench.cluster.faults().add(slow);
    bench.start().await;
    time::sleep(SECOND).await;
    assert_eq!(*seen.lock(), [1]);
}

/// The time of a handler's call in seconds, and the number of Secrets it saw.
type Seen = Arc<Mutex<Vec<(u64, usize)>>>;

/// Registers a handler with a relation to Secrets, which records the times of its calls and the numbers of Secrets.
fn register_late(bench: &Bench) -> (Registration, Seen) {
    let others = bench.factory.for_object::<Secret>();
    let relation = Relation::label("of").to("second");
    bench.config_maps.watch_related(&others, relation);
    let (began, seen) = (time::Instant::now(), Arc::new(Mutex::new(Vec::new())));
    let log = Arc::clone(&seen);
    let handler = move |_: Context<ConfigMap>| {
        let count = others.cache().store().len();
        log.lock().push((began.elapsed().as_secs(), count));
        async { Ok(Outcome::done()) }
    };
    let registered = bench.config_maps.register_handler("second", handler);
    (registered.expect("registered"), seen)
}

#[tokio::test(start_paused = true)]
async fn a_late_handler_waits_for_the_caches_of_its_own_relations_and_others_do_not() {
    let (bench, first) = running_with(Fault::Delay(5 * SECOND)).await;
    let (_, seen) = register_late(&bench);
    settle().await;
    bench.change("a", "1").await;
    bench.config_maps.enqueue(&key("absent"));
    settle().await;
    assert_eq!(first.len(), 3);
    let status = bench.status();
    assert_eq!(status.handlers[0].waiting, 0);
    assert!(status.handlers[1].waits_for_caches && !status.handlers[0].waits_for_caches);
    assert_eq!((seen.lock().len(), status.handlers[1].waiting), (0, 2));
    time::sleep(60 * SECOND).await;
    let seen = seen.lock().clone();
    assert_eq!(seen, [(5, 1), (5, 1)], "for the object and for the key");
    let status = &bench.status().handlers[1];
    assert!(!status.waits_for_caches && status.waiting == 0);
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_related_kind_cannot_be_read_is_named_and_disturbs_no_other() {
    let logs = Logs::begin();
    let refusal = Fault::Refuse(Refusal::new(StatusCode::FORBIDDEN));
    let (bench, first) = running_with(refusal).await;
    let (registration, seen) = register_late(&bench);
    time::sleep(600 * SECOND).await;
    assert!(seen.lock().is_empty() && registration.status().waits_for_caches);
    bench.change("a", "1").await;
    settle().await;
    assert_eq!(first.len(), 2);
    let text = logs.text();
    let warnings = text
        .lines()
        .filter(|line| line.contains("waits for the cache"));
    let warnings: Vec<&str> = warnings.collect();
    assert_eq!(warnings.len(), 1, "{text}");
    for part in ["ConfigMap", "second", "Secret", "403"] {
        assert!(warnings[0].contains(part), "{part}: {}", warnings[0]);
    }
    let began = time::Instant::now();
    bench.factory.stop().await.unwrap();
    assert_eq!(
        began.elapsed(),
        time::Duration::ZERO,
        "a stop does not wait for it"
    );
    bench.cluster.faults().clear();
    bench.start().await;
    settle().await;
    assert_eq!(
        seen.lock().len(),
        1,
        "what waited is handled after the next start"
    );
}

/// The relation is to `second` alone, and `first` was not called either.
#[tokio::test(start_paused = true)]
async fn kind_that_is_first_used_late_calls_handlers_that_a_refused_relation_does_not_concern() {
    let bench = Bench::new().await;
    bench.create("a").await;
    let refusal = Fault::Refuse(Refusal::new(StatusCode::FORBIDDEN));
    let rule = Rule::new(refusal).resource("secrets");
    bench.cluster.faults().add(rule);
    bench.start().await;
    for round in 1..=2 {
        let (first, handler) = recorder(|_| async { Ok(Outcome::done()) });
        let registered = bench.config_maps.register_handler("first", handler);
        let (second, seen) = register_late(&bench);
        time::sleep(SECOND).await;
        assert_eq!((first.len(), seen.lock().len()), (1, 0), "round {round}");
        assert!(second.status().waits_for_caches);
        second.deregister().await;
        registered.expect("registered").deregister().await;
    }
}

#[tokio::test(start_paused = true)]
async fn handler_waits_for_a_relation_that_is_added_after_it_and_before_the_start() {
    let bench = Bench::new().await;
    bench.create("a").await;
    let secrets = bench.factory.for_object::<Secret>();
    let endpoints = bench.factory.for_object::<Endpoints>();
    bench
        .config_maps
        .watch_related(&secrets, Relation::label("of"));
    let calls = bench.record("log");
    bench
        .config_maps
        .watch_related(&endpoints, Relation::label("of"));
    let rule = Rule::new(Fault::NoAnswer).resource("endpoints");
    let rule = bench.cluster.faults().add(rule);
    let factory = bench.factory.clone();
    let mut start = JoinSet::new();
    start.spawn(async move { factory.start(1).await });
    time::sleep(10 * SECOND).await;
    assert_eq!(calls.len(), 0);
    bench.cluster.faults().remove(rule);
    time::sleep(60 * SECOND).await;
    assert_eq!(calls.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn stop_before_a_related_cache_is_synced_calls_no_handler_that_waits_for_it() {
    let bench = Bench::new().await;
    let _cache = bench.config_maps.cache();
    bench.create("a").await;
    let rule = Rule::new(Fault::NoAnswer).resource("secrets");
    let rule = bench.cluster.faults().add(rule);
    bench.start().await;
    settle().await;
    let (_registration, seen) = register_late(&bench);
    // The owner of the kind was not polled yet, but its own cache is synced.
    bench.factory.stop().await.expect("nothing is called");
    assert_eq!(seen.lock().len(), 0);
    bench.cluster.faults().remove(rule);
    bench.start().await;
    time::sleep(60 * SECOND).await;
    assert_eq!(seen.lock().len(), 1, "the key was kept");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_for_a_related_kind_can_be_taken_away_or_its_relation_ended() {
    let (bench, _) = running_with(Fault::NoAnswer).await;
    let (registration, seen) = register_late(&bench);
    settle().await;
    registration.deregister().await;
    let others = bench.factory.for_object::<Secret>();
    let related = bench
        .config_maps
        .watch_related(&others, Relation::label("of"));
    let third = bench.record("third");
    time::sleep(10 * SECOND).await;
    assert_eq!(
        third.len(),
        0,
        "a relation of the whole kind concerns it too"
    );
    related.end();
    time::sleep(2 * SECOND).await;
    assert_eq!((third.len(), seen.lock().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_late_handler_does_not_wait_for_ever_for_a_kind_that_is_not_served() {
    let bench = Bench::new().await;
    bench.create("a").await;
    bench.record("first");
    bench.start().await;
    settle().await;
    let others = bench.factory.for_kind(Gvk::new("demo.dev", "v1", "Widget"));
    bench
        .config_maps
        .watch_related(&others, Relation::<Metadata>::owners().to("second"));
    let second = bench.record("second");
    time::sleep(20 * SECOND).await;
    assert_eq!(second.len(), 0, "its crd may be on its way");
    time::sleep(20 * SECOND).await;
    assert_eq!(second.len(), 1, "there are no objects of it");
}

/// Before that, nobody knows whether the kind is served.
#[tokio::test(start_paused = true)]
async fn wait_for_a_kind_that_is_not_served_begins_when_the_server_says_so() {
    let bench = Bench::new().await;
    bench.create("a").await;
    bench.record("first");
    bench.start().await;
    settle().await;
    let refusal = Fault::Refuse(Refusal::new(StatusCode::SERVICE_UNAVAILABLE));
    let outage = bench.cluster.faults().add(Rule::new(refusal));
    let others = bench.factory.for_kind(Gvk::new("demo.dev", "v1", "Widget"));
    let relation = Relation::<Metadata>::owners().to("second");
    bench.config_maps.watch_related(&others, relation);
    let second = bench.record("second");
    time::sleep(60 * SECOND).await;
    bench.cluster.faults().remove(outage);
    time::sleep(20 * SECOND).await;
    assert_eq!(second.len(), 0, "its crd may be on its way");
    time::sleep(90 * SECOND).await;
    assert_eq!(second.len(), 1, "there are no objects of it");
}

/// Registers a handler that reads metadata only, so that only metadata is watched.
fn reads_metadata<K: lariat_cache::View>(kind: &SharedController<K>) {
    let nothing = |_: Context<Metadata>| async { Ok(Outcome::done()) };
    let kind = kind.view::<Metadata>();
    drop(
        kind.register_handler("metadata", nothing)
            .expect("registered"),
    );
}

#[tokio::test(start_paused = true)]
async fn a_related_kind_whose_content_does_not_come_does_not_hold_up_the_others() {
    let bench = Bench::new().await;
    let (hidden, shown) = (
        bench.factory.for_object::<Secret>(),
        bench.factory.for_object::<Endpoints>(),
    );
    reads_metadata(&hidden);
    reads_metadata(&shown);
    let object = json!({"metadata": {"name": "s"}});
    create(&secrets(&bench), object.clone()).await;
    let endpoints: Api<Endpoints> = Api::namespaced(bench.cluster.client(), "default");
    let object: Endpoints = serde_json::from_value(object).unwrap();
    endpoints
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    bench.start().await;
    let calls = bench.record("log");
    settle().await;
    let rule = Rule::new(Fault::NoAnswer).resource("secrets");
    bench.cluster.faults().add(rule);
    let of_hidden = Relation::map(|_: &Secret| vec![key("hidden")]);
    bench.config_maps.watch_related(&hidden, of_hidden);
    let of_shown = Relation::map(|_: &Endpoints| vec![key("shown")]);
    bench.config_maps.watch_related(&shown, of_shown);
    time::sleep(5 * SECOND).await;
    assert_eq!(calls.names(), ["shown"]);
}
