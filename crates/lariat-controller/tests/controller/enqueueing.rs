//! Keys that code enqueues.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use lariat_controller::{Context, Enqueue, EnqueueError, HandlerOptions, Outcome};
use lariat_queue::Priority;
use parking_lot::Mutex;
use tokio::time::{self, Instant};

use crate::bench::{Bench, SECOND, key, recorder, settle};

#[tokio::test(start_paused = true)]
async fn a_key_can_be_enqueued_for_one_handler_only() {
    let bench = Bench::new().await;
    let one = bench.record("one");
    let (two, handler) = recorder(|_| async { Ok(Outcome::done()) });
    let registration = bench.config_maps.register_handler("two", handler).unwrap();
    bench.start().await;
    let request = Enqueue::now().to("one").because("it is noon");
    bench
        .config_maps
        .enqueue_with(&key("absent"), &request)
        .unwrap();
    registration.enqueue(&key("other"));
    settle().await;
    assert_eq!(
        (one.names(), two.names()),
        (vec!["absent".into()], vec!["other".into()])
    );
    assert_eq!(one.last().value, None, "there is no such object");
    let causes = one.last().causes;
    assert!(
        causes.contains("enqueueing.rs") && causes.ends_with(" (it is noon)"),
        "{causes}"
    );
    let error = bench
        .config_maps
        .enqueue_with(&key("a"), &Enqueue::now().to("three"));
    assert_eq!(
        error.unwrap_err().to_string(),
        "v1 ConfigMap has no handler named \"three\" to enqueue default/a to; its handlers: one, two"
    );
    registration.deregister().await;
}

#[tokio::test(start_paused = true)]
async fn keys_may_be_texts() {
    let bench = Bench::new().await;
    let calls = bench.record("one");
    bench.config_maps.enqueue_key("default/a").unwrap();
    let error = bench.config_maps.enqueue_key("a/b/c").unwrap_err();
    assert!(matches!(error, EnqueueError::NotAKey(_)), "{error}");
    assert!(error.to_string().contains("a/b/c"), "{error}");
    bench.start().await;
    settle().await;
    assert_eq!(calls.names(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn rate_limited_requests_wait_longer_each_time_until_a_run_succeeds() {
    let bench = Bench::new().await;
    let calls = bench.record("one");
    bench.start().await;
    let began = Instant::now();
    // Each counts, and the earliest of their delays wins.
    for _ in 0..3 {
        bench.config_maps.enqueue_rate_limited(&key("a"));
    }
    time::sleep(SECOND).await;
    let at = |index: usize| (calls.all()[index].at - began).as_millis();
    assert_eq!((calls.len(), at(0)), (1, 5));
    bench.config_maps.enqueue_rate_limited(&key("a"));
    time::sleep(SECOND).await;
    assert_eq!(
        (calls.len(), at(1)),
        (2, 1005),
        "the run forgot what came before"
    );
}

/// Returns after how many milliseconds each of four rate-limited requests is carried out.
async fn delays(handle: fn() -> lariat_controller::HandlerResult) -> Vec<u128> {
    let bench = Bench::new().await;
    let slow = HandlerOptions::default().rate_limiter(|| |_| 600 * SECOND);
    let calls = bench.on_with("one", slow, move |_| async move { handle() });
    bench.start().await;
    let mut delays = Vec::new();
    for _ in 0..4 {
        let began = Instant::now();
        bench.config_maps.enqueue_rate_limited(&key("a"));
        time::sleep(SECOND).await;
        delays.push((calls.last().at - began).as_millis());
    }
    delays
}

#[tokio::test(start_paused = true)]
async fn rate_limited_requests_wait_longer_while_runs_fail() {
    assert_eq!(delays(|| Err("no".into())).await, [5, 10, 20, 40]);
    let later = || Ok(Outcome::requeue_after(600 * SECOND));
    assert_eq!(delays(later).await, [5, 5, 5, 5]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_of_another_kind_is_named_as_the_cause() {
    let bench = Bench::new().await;
    let calls = bench.record("one");
    let config_maps = bench.config_maps.clone();
    let secrets = bench.factory.for_object::<Secret>();
    secrets
        .register_handler("copies", move |cx: Context<Secret>| {
            config_maps.enqueue(cx.key());
            async { Ok(Outcome::done()) }
        })
        .unwrap();
    bench.start().await;
    secrets.enqueue(&key("a"));
    settle().await;
    let causes = calls.last().causes;
    assert!(
        causes.starts_with("enqueued by Secret copies at "),
        "{causes}"
    );
}

#[tokio::test(start_paused = true)]
async fn urgent_requests_come_first() {
    let bench = Bench::new().await;
    let order: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&order);
    bench.on("log", move |call| {
        log.lock().push(call.name);
        async { Ok(Outcome::done()) }
    });
    for (name, priority) in [
        ("low", Priority::Low),
        ("normal", Priority::Normal),
        ("high", Priority::High),
    ] {
        let request = Enqueue::now().priority(priority);
        bench
            .config_maps
            .enqueue_with(&key(name), &request)
            .unwrap();
    }
    bench.factory.start(1).await.unwrap();
    settle().await;
    assert_eq!(order.lock().join(" "), "high normal low");
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_for_the_first_handler_of_its_kind() {
    let bench = Bench::new().await;
    bench.start().await;
    bench.config_maps.enqueue(&key("early"));
    time::sleep(30 * SECOND).await;
    let calls = bench.record("late");
    settle().await;
    assert_eq!(calls.names(), ["early"]);
    assert!(calls.last().causes.starts_with("enqueued at "));
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_over_a_stop_for_the_first_handler_of_its_kind() {
    let bench = Bench::new().await;
    bench.start().await;
    bench.config_maps.enqueue(&key("early"));
    settle().await;
    let began = Instant::now();
    bench.factory.stop().await.unwrap();
    assert_eq!(
        began.elapsed(),
        time::Duration::ZERO,
        "a stop does not wait for it"
    );
    bench.start().await;
    settle().await;
    let calls = bench.record("late");
    settle().await;
    assert_eq!(calls.names(), ["early"]);
}
