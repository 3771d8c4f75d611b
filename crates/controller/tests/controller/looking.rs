//! Snapshots of a controller's queue, calls and failures.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use lariat_controller::{Enqueue, HandlerOptions, Outcome};
use lariat_queue::{KeyState, WaitsFor};
use tokio::time;

use crate::bench::{Bench, SECOND, key, settle};

#[tokio::test(start_paused = true)]
async fn running_calls_are_shown_longest_first() {
    let bench = Bench::new().await;
    bench.on("slow", |_| async {
        time::sleep(10 * SECOND).await;
        Ok(Outcome::done())
    });
    bench.start().await;
    assert!(bench.config_maps.in_progress().is_empty());
    bench.create("a").await;
    time::sleep(2 * SECOND).await;
    bench.create("b").await;
    bench.create("c").await;
    time::sleep(SECOND).await;
    let running = bench.config_maps.in_progress();
    let seen: Vec<_> = running
        .iter()
        .map(|call| {
            (
                call.key.name(),
                call.handler.as_deref(),
                call.lasts.as_secs(),
            )
        })
        .collect();
    assert_eq!(seen, [("a", Some("slow"), 3), ("b", Some("slow"), 1)]);

    let queued = bench.config_maps.queued(10);
    let states: Vec<_> = queued
        .keys
        .iter()
        .map(|each| (each.key.name(), each.state))
        .collect();
    let (ready, processing) = (KeyState::Ready, KeyState::Processing);
    assert_eq!(states, [("c", ready), ("a", processing), ("b", processing)]);
    assert_eq!(queued.keys[0].due_for.as_secs(), 1);
    assert_eq!(queued.keys[0].lanes[0].handler, None, "for all handlers");
    let first = bench.config_maps.queued(1);
    assert_eq!((first.keys.len(), first.total), (1, 3));
}

#[tokio::test(start_paused = true)]
async fn a_delayed_key_is_shown_with_its_handlers() {
    let bench = Bench::new().await;
    bench.record("one");
    bench.on("two", |_| async {
        Ok(Outcome::requeue_after(Duration::from_secs(60)))
    });
    bench.start().await;
    bench.create("a").await;
    settle().await;
    let ask = Enqueue::after(Duration::from_secs(30)).to("one");
    bench.config_maps.enqueue_with(&key("a"), &ask).unwrap();
    time::sleep(10 * SECOND).await;
    let queued = bench.config_maps.queued_key(&key("a")).expect("delayed");
    assert_eq!(queued.state, KeyState::Delayed);
    let lanes: Vec<_> = queued
        .lanes
        .iter()
        .map(|lane| (lane.handler.as_deref().unwrap(), lane.due_in.as_secs()))
        .collect();
    assert_eq!(lanes, [("one", 20), ("two", 49)]);
    assert!(bench.config_maps.queued_key(&key("b")).is_none());
}

#[tokio::test(start_paused = true)]
async fn keys_at_a_limit_are_shown_after_those_in_the_queue() {
    let bench = Bench::new().await;
    let narrow = HandlerOptions::default().concurrency(1);
    bench.on_with("narrow", narrow, |_| std::future::pending());
    bench.start().await;
    for name in ["a", "b", "c"] {
        bench.create(name).await;
    }
    settle().await;
    let queued = bench.config_maps.queued(10);
    assert_eq!(queued.total, 3);
    let waits: Vec<_> = queued
        .keys
        .iter()
        .map(|each| {
            (
                each.key.name(),
                each.lanes.first().and_then(|lane| lane.waits_for),
            )
        })
        .collect();
    let limit = Some(WaitsFor::Limit);
    assert_eq!(waits, [("a", None), ("b", limit), ("c", limit)]);
    assert_eq!(bench.config_maps.queued(2).keys.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn failing_keys_are_shown_with_their_error_and_retry() {
    let bench = Bench::new().await;
    bench.on("fails", |call| async move {
        match (call.name.as_str(), call.value.as_deref()) {
            (_, Some("good")) => Ok(Outcome::done()),
            (name, _) => Err(format!("{name} is broken").into()),
        }
    });
    bench.start().await;
    bench.create("a").await;
    time::sleep(10 * SECOND).await;
    bench.create("b").await;
    time::sleep(SECOND).await;
    let failing = bench.config_maps.failing_keys(10);
    assert_eq!(failing.len(), 2);
    assert!(failing[0].failures > failing[1].failures);
    assert_eq!(
        (failing[0].key.name(), &*failing[0].handler),
        ("a", "fails")
    );
    assert_eq!(failing[1].error.as_deref(), Some("b is broken"));
    assert!(failing[0].retry_in.is_some_and(|retry| !retry.is_zero()));
    assert_eq!(bench.config_maps.failing_keys(1)[0].key.name(), "a");
    assert_eq!(bench.status().handlers[0].failing, 2);

    bench.change("a", "good").await;
    settle().await;
    let failing = bench.config_maps.failing_keys(10);
    assert_eq!(failing.len(), 1);
    assert_eq!(bench.status().handlers[0].failing, 1);
    bench.factory.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_controllers_in_use_are_found_without_keeping_the_factory() {
    let bench = Bench::new().await;
    let weak = bench.factory.downgrade();
    assert!(bench.factory.controllers().is_empty(), "none is in use");
    bench.record("handler");
    let secrets = bench.factory.for_object::<Secret>();
    secrets.enqueue(&key("s"));
    let controllers = weak.upgrade().expect("it exists").controllers();
    let kinds: Vec<&str> = controllers.iter().map(|each| each.gvk().kind()).collect();
    assert_eq!(kinds, ["ConfigMap", "Secret"]);
    assert!(controllers[0].is_same(&bench.config_maps));
    assert!(controllers[0].pause("handler").unwrap());
    drop(controllers);
    drop(bench);
    assert!(weak.upgrade().is_none() && !weak.is_alive());
}

#[tokio::test(start_paused = true)]
async fn a_relist_calls_handlers_for_what_differs_alone() {
    let bench = Bench::new().await;
    let calls = bench.record("handler");
    assert!(!bench.config_maps.relist(), "nothing runs");
    bench.start().await;
    bench.create("a").await;
    settle().await;
    assert!(bench.config_maps.relist());
    time::sleep(5 * SECOND).await;
    assert_eq!((calls.len(), bench.status().cache.loads), (1, 2));
    assert!(!bench.factory.for_object::<Secret>().relist());
}

#[tokio::test(start_paused = true)]
async fn a_status_prints_as_a_table() {
    let bench = Bench::new().await;
    bench.on("copy", |call| async move {
        time::sleep(Duration::from_millis(4)).await;
        match call.name.as_str() {
            "bad" => Err("it is bad".into()),
            _ => Ok(Outcome::done()),
        }
    });
    bench.record("audit-of-everything");
    let secrets = bench.factory.for_object::<Secret>();
    secrets.enqueue(&key("s"));
    assert_eq!(
        bench.factory.status().to_string(),
        "\
v1 ConfigMap           idle  objects 0  ready 0  delayed 0  not running
  copy                       calls 0  failed 0  failing 0  given up 0
  audit-of-everything        calls 0  failed 0  failing 0  given up 0
v1 Secret              idle  objects 0  ready 1  delayed 0  not running"
    );
    bench.start().await;
    bench.config_maps.pause("audit-of-everything").unwrap();
    bench.create("good").await;
    bench.create("bad").await;
    time::sleep(Duration::from_millis(6)).await;
    assert_eq!(
        bench.status().to_string(),
        "\
v1 ConfigMap           synced               objects 2  ready 0  delayed 0  busy 0/2
  copy                                      calls 2  failed 1  failing 1  given up 0  p50 4.0ms  p99 4.0ms
  audit-of-everything  paused, 2 keys wait  calls 0  failed 0  failing 0  given up 0"
    );
}
