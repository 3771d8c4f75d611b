//! Debounced handlers.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use lariat_controller::{HandlerError, HandlerOptions, Outcome, Relation};
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, SECOND, key, settle};
use crate::relations::{create, patch, secrets};

fn debounce(seconds: u64) -> HandlerOptions {
    HandlerOptions::default().debounce(Duration::from_secs(seconds))
}

#[tokio::test(start_paused = true)]
async fn a_key_that_changes_all_the_time_is_processed_once_a_period() {
    let bench = Bench::new().await;
    let direct = bench.record("direct");
    let slow = bench.record_with("slow", debounce(60));
    bench.create("a").await;
    bench.start().await;
    settle().await;
    assert_eq!((direct.len(), slow.len()), (1, 1), "the initial list");
    for step in 0..40 {
        bench.change("a", &step.to_string()).await;
        time::sleep(SECOND * 5).await;
    }
    // Changes came during 200 seconds; the first after a call begins the next period.
    assert_eq!(direct.len(), 41);
    assert_eq!(slow.len(), 1 + 3);
    time::sleep(SECOND * 60).await;
    assert_eq!(slow.len(), 1 + 4);
    let last = slow.last();
    assert_eq!(last.value.as_deref(), Some("39"));
    assert!(last.causes.starts_with("updated "), "{}", last.causes);
    time::sleep(SECOND * 600).await;
    assert_eq!(slow.len(), 1 + 4, "nothing changed");
}

#[tokio::test(start_paused = true)]
async fn deletions_and_keys_that_code_enqueues_do_not_wait() {
    let bench = Bench::new().await;
    let slow = bench.record_with("slow", debounce(60));
    bench.start().await;
    bench.create("a").await;
    settle().await;
    assert_eq!(slow.len(), 0);
    bench.config_maps.enqueue(&key("a"));
    settle().await;
    assert_eq!(slow.len(), 1, "enqueued");
    time::sleep(SECOND * 120).await;
    assert_eq!(slow.len(), 2, "the creation, at its time");
    bench.change("a", "1").await;
    bench.delete("a").await;
    settle().await;
    assert_eq!(slow.len(), 3);
    assert_eq!(slow.last().deleted.as_deref(), Some("1"));
    time::sleep(SECOND * 120).await;
    assert_eq!(slow.len(), 4, "the change, at its time");
    assert_eq!(slow.last().deleted, None);
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_retried_after_its_own_delay() {
    let bench = Bench::new().await;
    let slow = bench.on_with("slow", debounce(60), |call| async move {
        match call.attempt {
            1 => Err(HandlerError::from("not now").retry_after(SECOND)),
            _ => Ok(Outcome::done()),
        }
    });
    bench.start().await;
    bench.create("a").await;
    time::sleep(SECOND * 60).await;
    settle().await;
    assert_eq!(slow.len(), 1);
    time::sleep(SECOND).await;
    settle().await;
    assert_eq!(slow.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn changes_of_related_objects_wait_for_the_handlers_that_debounce() {
    let bench = Bench::new().await;
    let direct = bench.record("direct");
    let slow = bench.record_with("slow", debounce(60));
    let others = bench.factory.for_object::<Secret>();
    bench
        .config_maps
        .watch_related(&others, Relation::label("of"));
    bench.start().await;
    let api = secrets(&bench);
    let secret = json!({"metadata": {"name": "s", "labels": {"of": "a"}}});
    create(&api, secret).await;
    for step in ["eA==", "eQ=="] {
        patch(&api, "s", json!({"data": {"x": step}})).await;
    }
    assert_eq!((direct.len(), slow.len()), (3, 0));
    time::sleep(SECOND * 61).await;
    assert_eq!((direct.len(), slow.len()), (3, 1));
    let causes = slow.last().causes;
    assert!(causes.starts_with("Secret default/s added at "), "{causes}");
}

#[tokio::test(start_paused = true)]
async fn a_change_that_waits_at_a_stop_is_handled_after_the_next_start() {
    let bench = Bench::new().await;
    let slow = bench.record_with("slow", debounce(60));
    bench.start().await;
    bench.create("a").await;
    settle().await;
    bench.factory.stop().await.expect("stopped");
    assert_eq!(slow.len(), 0);
    bench.start().await;
    settle().await;
    time::sleep(SECOND * 61).await;
    assert_eq!(slow.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn changes_that_wait_during_a_stop_are_handled_after_the_next_start() {
    let bench = Bench::new().await;
    let slow = bench.record_with("slow", debounce(60));
    bench.create("a").await;
    bench.start().await;
    settle().await;
    slow.clear();
    bench.change("a", "1").await;
    settle().await;
    bench.factory.stop().await.unwrap();
    time::sleep(120 * SECOND).await;
    assert_eq!(slow.len(), 0);
    bench.start().await;
    settle().await;
    assert_eq!(slow.values(), ["1"]);
}
