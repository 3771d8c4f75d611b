//! Handlers that are paused and resumed.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_controller::{Context, HandlerOptions, Outcome};
use lariat_queue::{KeyState, WaitsFor};
use lariat_testing::Logs;
use tokio::sync::Semaphore;
use tokio::time::{self, Instant};

use crate::bench::{Bench, SECOND, key, settle};

#[tokio::test(start_paused = true)]
async fn keys_of_a_paused_handler_wait_and_other_handlers_go_on() {
    let bench = Bench::new().await;
    let (first, second) = (bench.record("first"), bench.record("second"));
    bench.start().await;
    bench.create("a").await;
    settle().await;
    assert!(bench.config_maps.pause("second").unwrap());
    assert!(!bench.config_maps.pause("second").unwrap());
    for value in ["1", "2", "3"] {
        bench.change("a", value).await;
        settle().await;
    }
    bench.create("b").await;
    time::sleep(3600 * SECOND).await;
    assert_eq!((first.len(), second.len()), (5, 1));
    let status = bench.status();
    let [one, two] = [0, 1].map(|at| status.handlers[at].clone());
    assert_eq!((one.is_paused, one.waiting), (false, 0));
    assert_eq!(
        (two.is_paused, two.waits_for_caches, two.waiting),
        (true, false, 2)
    );
    let queued = bench.config_maps.queued_key(&key("a")).expect("it waits");
    assert_eq!((queued.state, queued.lanes.len()), (KeyState::Waiting, 1));
    assert_eq!(queued.lanes[0].waits_for, Some(WaitsFor::Resume));

    assert!(bench.config_maps.resume("second").unwrap());
    settle().await;
    let calls = second.all().split_off(1);
    assert_eq!((calls.len(), first.len()), (2, 5), "each key once");
    assert_eq!(calls[0].value.as_deref(), Some("3"), "the newest state");
    assert!(calls[0].causes.contains("updated"), "{}", calls[0].causes);
    assert_eq!(bench.status().handlers[1].waiting, 0);
    assert!(bench.config_maps.queued_key(&key("a")).is_none());
    assert!(!bench.config_maps.resume("second").unwrap());
    bench.change("a", "4").await;
    settle().await;
    assert_eq!((first.len(), second.len()), (6, 4));
}

#[tokio::test(start_paused = true)]
async fn a_pause_outlasts_a_stop_and_the_next_start() {
    let bench = Bench::new().await;
    let calls = bench.record("handler");
    bench.start().await;
    bench.create("kept").await;
    bench.create("deleted").await;
    settle().await;
    calls.clear();
    bench.config_maps.pause("handler").unwrap();
    bench.change("kept", "1").await;
    bench.delete("deleted").await;
    settle().await;
    let begin = Instant::now();
    bench.factory.stop().await.unwrap();
    assert!(
        begin.elapsed() < SECOND,
        "a stop does not wait for a resume"
    );
    bench.change("kept", "2").await;
    bench.start().await;
    time::sleep(600 * SECOND).await;
    assert_eq!(calls.len(), 0);
    assert_eq!(bench.status().handlers[0].waiting, 2);

    // Resumed while nothing runs, so the keys wait for the next start.
    bench.factory.stop().await.unwrap();
    bench.config_maps.resume("handler").unwrap();
    settle().await;
    assert_eq!(calls.len(), 0);
    bench.start().await;
    settle().await;
    let all = calls.all();
    assert_eq!(all.len(), 2, "{all:?}");
    let of = |name: &str| all.iter().find(|call| call.name == name).unwrap();
    assert_eq!(of("kept").value.as_deref(), Some("2"));
    assert_eq!(of("deleted").deleted.as_deref(), Some("-"));
}

#[tokio::test(start_paused = true)]
async fn a_stop_in_the_middle_of_a_call_of_a_paused_handler_loses_nothing() {
    let bench = Bench::with(|builder| builder.grace_period(5 * SECOND)).await;
    let hangs = Arc::new(Semaphore::new(0));
    let gate = Arc::clone(&hangs);
    let calls = bench.on("hangs", move |_| {
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await.expect("it is open").forget();
            Ok(Outcome::done())
        }
    });
    bench.start().await;
    bench.create("a").await;
    settle().await;
    bench.config_maps.pause("hangs").unwrap();
    bench.change("a", "1").await;
    let error = bench.factory.stop().await.unwrap_err();
    assert!(error.to_string().contains("default/a"), "{error}");
    bench.start().await;
    settle().await;
    // The key went back into the queue, and from there to the others that wait.
    assert_eq!((calls.len(), bench.status().handlers[0].waiting), (1, 1));
    hangs.add_permits(9);
    bench.config_maps.resume("hangs").unwrap();
    settle().await;
    assert_eq!(calls.values(), ["-", "1"]);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_retried_keeps_its_failures_over_a_pause() {
    let bench = Bench::new().await;
    let calls = bench.on("flaky", |call| async move {
        match call.attempt {
            1..=3 => Err("not yet".into()),
            _ => Ok(Outcome::done()),
        }
    });
    bench.start().await;
    bench.create("a").await;
    settle().await;
    bench.config_maps.pause("flaky").unwrap();
    time::sleep(60 * SECOND).await;
    let before = calls.last().attempt;
    assert!(before < 4);
    let failing = bench.config_maps.failing_keys(9);
    assert_eq!((failing.len(), failing[0].failures), (1, before));
    bench.config_maps.resume("flaky").unwrap();
    settle().await;
    assert_eq!(calls.all()[before as usize].attempt, before + 1);
    time::sleep(60 * SECOND).await;
    assert_eq!(calls.last().attempt, 4);
}

#[tokio::test(start_paused = true)]
async fn keys_in_line_at_a_limit_wait_too_and_block_no_place() {
    let bench = Bench::new().await;
    let options = HandlerOptions::default().concurrency(1);
    let calls = bench.on_with("narrow", options, |_| async {
        time::sleep(SECOND).await;
        Ok(Outcome::done())
    });
    bench.start().await;
    for name in ["a", "b", "c"] {
        bench.create(name).await;
    }
    settle().await;
    bench.config_maps.pause("narrow").unwrap();
    time::sleep(60 * SECOND).await;
    assert_eq!(calls.names(), ["a"]);
    let status = bench.status();
    assert_eq!((status.handlers[0].waiting, status.queue.depth()), (2, 0));
    bench.config_maps.resume("narrow").unwrap();
    time::sleep(60 * SECOND).await;
    assert_eq!(calls.names(), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_is_deregistered_while_it_is_paused_is_gone() {
    let bench = Bench::new().await;
    let other = bench.record("other");
    let none = |_: Context<ConfigMap>| async { Ok(Outcome::done()) };
    let registered = bench.config_maps.register_handler("paused", none).unwrap();
    bench.start().await;
    bench.config_maps.pause("paused").unwrap();
    bench.create("a").await;
    settle().await;
    assert_eq!(registered.status().waiting, 1);
    registered.deregister().await;
    assert!(bench.config_maps.resume("paused").is_err());
    bench.change("a", "1").await;
    settle().await;
    assert_eq!(other.len(), 2);
    assert_eq!(bench.status().queue.delayed, 0);

    // Another handler of its name begins unpaused, with all objects.
    let again = bench.record("paused");
    settle().await;
    assert_eq!(again.values(), ["1"]);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_handler_is_named_with_those_that_exist() {
    let bench = Bench::new().await;
    let error = bench.config_maps.pause("x").unwrap_err();
    assert_eq!(
        error.to_string(),
        "v1 ConfigMap has no handler named \"x\"; its handlers: (none)"
    );
    bench.record("one");
    bench.record("two");
    let error = bench.config_maps.resume("x").unwrap_err();
    assert_eq!(
        error.to_string(),
        "v1 ConfigMap has no handler named \"x\"; its handlers: one, two"
    );
}

#[tokio::test(start_paused = true)]
async fn pausing_and_resuming_are_logged_once() {
    let logs = Logs::begin();
    let bench = Bench::new().await;
    bench.record("handler");
    bench.start().await;
    for _ in 0..2 {
        bench.config_maps.pause("handler").unwrap();
    }
    bench.create("a").await;
    settle().await;
    for _ in 0..2 {
        bench.config_maps.resume("handler").unwrap();
    }
    let text = logs.text();
    let of = |what: &str| text.lines().filter(|line| line.contains(what)).count();
    assert_eq!(
        of("handler is paused kind=v1 ConfigMap handler=handler"),
        1,
        "{text}"
    );
    assert_eq!(
        of("handler is resumed kind=v1 ConfigMap handler=handler keys=1"),
        1,
        "{text}"
    );
}
