//! Keys that the program enqueues.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use lariat_controller::{
    Context, ControllerOptions, Enqueue, EnqueueError, HandlerError, HandlerOptions, Outcome,
};
use lariat_core::{Gvk, ObjectKey};
use lariat_queue::Priority;
use parking_lot::Mutex;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

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

/// Returns the delays of four rate-limited requests, in milliseconds.
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

/// Options with a stream of the keys that are sent.
fn streamed(begun: &Arc<AtomicUsize>) -> (UnboundedSender<ObjectKey>, HandlerOptions) {
    let (sender, receiver) = unbounded_channel();
    let (receiver, begun) = (Arc::new(Mutex::new(receiver)), Arc::clone(begun));
    let request = Enqueue::now().because("a message came");
    let options = HandlerOptions::default().enqueued_by(request, move || {
        begun.fetch_add(1, Ordering::Relaxed);
        let receiver = Arc::clone(&receiver);
        stream::poll_fn(move |cx| receiver.lock().poll_recv(cx))
    });
    (sender, options)
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_keys_calls_its_handler_while_the_factory_runs() {
    let bench = Bench::new().await;
    let begun = Arc::new(AtomicUsize::new(0));
    let (sender, options) = streamed(&begun);
    let streamed = bench.record_with("streamed", options);
    let other = bench.record("other");
    sender.send(key("early")).unwrap();
    settle().await;
    assert_eq!((begun.load(Ordering::Relaxed), streamed.len()), (0, 0));
    bench.start().await;
    settle().await;
    assert_eq!(
        (begun.load(Ordering::Relaxed), streamed.names()),
        (1, vec!["early".into()])
    );
    let causes = streamed.last().causes;
    assert!(
        causes.contains("enqueueing.rs") && causes.contains("(a message came)"),
        "{causes}"
    );
    // More than the supervisor takes at a time, and none is lost.
    streamed.clear();
    for number in 0..500 {
        sender.send(key(&format!("k{number}"))).unwrap();
    }
    settle().await;
    assert_eq!((streamed.len(), other.len()), (500, 0));

    bench.factory.stop().await.expect("stopped");
    streamed.clear();
    sender.send(key("meanwhile")).unwrap();
    settle().await;
    assert_eq!(streamed.len(), 0);
    bench.start().await;
    settle().await;
    assert_eq!(
        (begun.load(Ordering::Relaxed), streamed.names()),
        (2, vec!["meanwhile".into()])
    );
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_dropped_when_a_stop_begins_not_when_the_drain_has_ended() {
    let bench = Bench::new().await;
    let ended = CancellationToken::new();
    let ends = ended.clone();
    let options = HandlerOptions::default().enqueued_by(Enqueue::now(), move || {
        let guard = ends.clone().drop_guard();
        let rest = stream::poll_fn(move |_| {
            let _guard = &guard;
            Poll::Pending
        });
        stream::iter([key("a")]).chain(rest)
    });
    // A call that waits for the end of its own stream.
    let calls = bench.on_with("log", options, move |_| {
        let ended = ended.clone();
        async move {
            ended.cancelled().await;
            Ok(Outcome::done())
        }
    });
    bench.start().await;
    settle().await;
    let began = Instant::now();
    bench.factory.stop().await.expect("the call ends");
    assert_eq!(calls.names(), ["a"]);
    assert_eq!(began.elapsed().as_secs(), 0);
}

#[tokio::test(start_paused = true)]
async fn streams_that_end_or_panic_or_never_rest_disturb_no_other() {
    let bench = Bench::new().await;
    let because = Enqueue::now;
    let ends = HandlerOptions::default().enqueued_by(because(), || stream::iter([key("a")]));
    let ends = bench.record_with("ends", ends);
    let panics = HandlerOptions::default().enqueued_by(because(), || {
        stream::iter(0..2).map(|number| match number {
            0 => key("b"),
            _ => panic!("no such key"),
        })
    });
    let panics = bench.record_with("panics", panics);
    let never_made = HandlerOptions::default()
        .enqueued_by(because(), || -> stream::Empty<ObjectKey> {
            panic!("no stream")
        });
    bench.record_with("never made", never_made);
    let busy =
        HandlerOptions::default().enqueued_by(because(), || stream::repeat(key("c")).take(10_000));
    let busy = bench.record_with("busy", busy);
    bench.start().await;
    settle().await;
    assert_eq!((ends.len(), panics.len()), (1, 1));
    assert!((1..10_000).contains(&busy.len()), "{} calls", busy.len());
    // The supervisor is still there.
    let begun = Arc::new(AtomicUsize::new(0));
    let (sender, options) = streamed(&begun);
    let (late, handler) = recorder(|_| async { Ok(Outcome::done()) });
    let registration = bench
        .config_maps
        .register_handler("late", options.handler(handler));
    settle().await;
    sender.send(key("d")).unwrap();
    settle().await;
    assert_eq!(late.names(), ["d"]);
    registration.expect("registered").deregister().await;
    settle().await;
    assert!(sender.is_closed(), "its stream is dropped with it");
}

/// Checks that the supervisor polls the stream of a handler that is registered now.
async fn follows_streams(bench: &Bench) {
    let (sender, options) = streamed(&Arc::default());
    let (late, handler) = recorder(|_| async { Ok(Outcome::done()) });
    let registration = bench
        .config_maps
        .register_handler("late", options.handler(handler))
        .expect("registered");
    settle().await;
    sender.send(key("late")).expect("the stream is polled");
    settle().await;
    // Existing objects come before it.
    assert_eq!(late.names().last().map(String::as_str), Some("late"));
    registration.deregister().await;
}

#[tokio::test(start_paused = true)]
async fn a_broken_limiter_delays_the_keys_of_a_stream_and_ends_no_supervisor() {
    let broken = |failures: u32| -> Duration { panic!("no delay for {failures} failures") };
    let options = ControllerOptions::default().rate_limiter(move || broken);
    let gvk = Gvk::new("", "v1", "ConfigMap");
    let bench = Bench::with(|builder| builder.kind_options(gvk, options)).await;
    let limited =
        HandlerOptions::default().enqueued_by(Enqueue::rate_limited(), || stream::iter([key("a")]));
    let calls = bench.record_with("log", limited);
    bench.start().await;
    time::sleep(29 * SECOND).await;
    bench.create("b").await;
    settle().await;
    assert_eq!(calls.names(), ["b"]);
    time::sleep(2 * SECOND).await;
    assert_eq!(calls.names(), ["b", "a"]);
    follows_streams(&bench).await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_when_it_is_dropped_ends_no_supervisor() {
    struct Broken;
    impl Drop for Broken {
        fn drop(&mut self) {
            panic!("a handler cannot be dropped");
        }
    }
    let bench = Bench::new().await;
    let calls = bench.record("log");
    let (broken, until) = (Broken, CancellationToken::new());
    let handler = move |_: Context<ConfigMap>| {
        let _broken = &broken;
        async { Ok::<_, HandlerError>(Outcome::done()) }
    };
    let options = HandlerOptions::default().until(until.clone());
    bench
        .config_maps
        .register_handler("broken", options.handler(handler))
        .expect("registered");
    bench.start().await;
    let workers = bench.status().workers;
    bench.create("a").await;
    settle().await;
    assert_eq!(calls.names(), ["a"]);

    until.cancel();
    time::sleep(5 * SECOND).await;
    assert_eq!(bench.status().workers, workers);
    bench.create("b").await;
    settle().await;
    assert_eq!(calls.names(), ["a", "b"]);
    follows_streams(&bench).await;
    bench.factory.stop().await.expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn key_waits_although_a_handler_that_has_ended_is_deregistered_after_it() {
    let bench = Bench::new().await;
    let scope = CancellationToken::new();
    let (_, handler) = recorder(|_| async { Ok(Outcome::done()) });
    let options = HandlerOptions::default().until(scope.clone());
    let old = bench
        .config_maps
        .register_handler("old", options.handler(handler));
    bench.start().await;
    scope.cancel();
    settle().await;
    bench.config_maps.enqueue(&key("early"));
    old.expect("the name is free").deregister().await;
    let calls = bench.record("late");
    settle().await;
    assert_eq!(calls.names(), ["early"]);
}
