//! Handlers, kinds and runs that end while a call hangs, and what comes after them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_controller::{Context, HandlerOptions, HandlerResult, Outcome, StartError};
use lariat_testing::Logs;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time;
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, Calls, SECOND, key, settle};
use crate::ending_runs::is_pending;

/// Registers a handler whose call for the object `hangs` never ends.
pub(crate) fn hangs(bench: &Bench, name: &str, options: HandlerOptions) -> Calls {
    bench.on_with(name, options, |call| async move {
        if call.name == "hangs" {
            std::future::pending::<()>().await;
        }
        Ok(Outcome::done())
    })
}

/// A bench with a running factory, and a handler `old` that hangs in a call until its token is cancelled.
pub(crate) async fn with_hung_call(workers: usize) -> (Bench, CancellationToken) {
    let bench = Bench::with(|builder| builder.grace_period(5 * SECOND)).await;
    let scope = CancellationToken::new();
    let old = hangs(
        &bench,
        "old",
        HandlerOptions::default().until(scope.clone()),
    );
    bench.factory.start(workers).await.expect("started");
    bench.create("hangs").await;
    settle().await;
    assert_eq!(old.names(), ["hangs"]);
    (bench, scope)
}

/// Returns the names of the called objects, sorted.
fn sorted(calls: &Calls) -> Vec<String> {
    let mut names = calls.names();
    names.sort();
    names
}

#[tokio::test(start_paused = true)]
async fn handler_is_called_for_other_keys_while_deregistered_call_hangs() {
    for workers in [1, 4] {
        let (bench, scope) = with_hung_call(workers).await;
        scope.cancel();
        settle().await;
        let new = bench.record("new");
        for name in ["a", "b", "c"] {
            bench.create(name).await;
        }
        settle().await;
        assert_eq!(sorted(&new), ["a", "b", "c"], "{workers} workers");
        time::sleep(3600 * SECOND).await;
        assert_eq!(new.len(), 3, "the key of the call is still being processed");
        assert_eq!(bench.status().workers, Some(workers));
        bench.factory.stop().await.unwrap_err();
    }
}

#[tokio::test(start_paused = true)]
async fn handler_is_called_for_hung_key_once_its_call_ends() {
    let bench = Bench::new().await;
    let go = Arc::new(Notify::new());
    let wait = Arc::clone(&go);
    let scope = CancellationToken::new();
    bench.on_with(
        "old",
        HandlerOptions::default().until(scope.clone()),
        move |_| {
            let wait = Arc::clone(&wait);
            async move {
                wait.notified().await;
                Ok(Outcome::done())
            }
        },
    );
    bench.start().await;
    bench.create("hangs").await;
    settle().await;
    scope.cancel();
    settle().await;
    let new = bench.record("new");
    bench.create("a").await;
    time::sleep(60 * SECOND).await;
    assert_eq!(new.names(), ["a"]);
    go.notify_one();
    settle().await;
    assert_eq!(new.names(), ["a", "hangs"]);
    time::sleep(60 * SECOND).await;
    assert_eq!((new.len(), bench.status().queue.processing), (2, 0));
    bench.factory.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn dropped_deregistration_of_hung_handler_leaves_kind_usable() {
    let bench = Bench::new().await;
    let handler = |cx: Context<ConfigMap>| async move {
        if cx.key().name() == "hangs" {
            std::future::pending::<()>().await;
        }
        Ok(Outcome::done())
    };
    let registration = bench.config_maps.register_handler("old", handler).unwrap();
    bench.start().await;
    bench.create("hangs").await;
    settle().await;
    assert!(
        time::timeout(5 * SECOND, registration.deregister())
            .await
            .is_err()
    );
    let new = bench.record("old");
    bench.create("a").await;
    settle().await;
    assert_eq!(new.names(), ["a"], "its name is free, too");
}

#[tokio::test(start_paused = true)]
async fn hung_call_of_deregistered_handler_does_not_occupy_the_only_worker() {
    let (bench, scope) = with_hung_call(1).await;
    let other = bench.record("other");
    bench.create("a").await;
    settle().await;
    assert_eq!(other.len(), 0, "the only worker is in the call");
    scope.cancel();
    settle().await;
    assert_eq!(other.names(), ["a"]);
    bench.create("b").await;
    settle().await;
    assert_eq!(other.names(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn replaced_worker_ends_when_its_hung_call_ends() {
    let bench = Bench::new().await;
    let go = Arc::new(Notify::new());
    let (wait, scope) = (Arc::clone(&go), CancellationToken::new());
    let inside = Arc::new(Mutex::new((0, 0)));
    bench.on_with(
        "old",
        HandlerOptions::default().until(scope.clone()),
        move |call| {
            let wait = Arc::clone(&wait);
            async move {
                if call.name == "hangs" {
                    wait.notified().await;
                }
                Ok(Outcome::done())
            }
        },
    );
    let count = Arc::clone(&inside);
    bench.on("other", move |_| {
        let count = Arc::clone(&count);
        async move {
            {
                let mut count = count.lock();
                count.0 += 1;
                count.1 = count.1.max(count.0);
            }
            time::sleep(SECOND).await;
            count.lock().0 -= 1;
            Ok(Outcome::done())
        }
    });
    bench.factory.start(1).await.unwrap();
    bench.create("hangs").await;
    settle().await;
    scope.cancel();
    settle().await;
    go.notify_one();
    // The worker ends with the run of its key, in which the other handler is called, too.
    time::sleep(10 * SECOND).await;
    inside.lock().1 = 0;
    for number in 0..10 {
        bench.create(&format!("o{number}")).await;
    }
    time::sleep(60 * SECOND).await;
    assert_eq!(*inside.lock(), (0, 1), "one worker is left");
    bench.factory.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn hung_call_of_deregistered_handler_is_named_until_its_end() {
    let (bench, scope) = with_hung_call(2).await;
    let logs = Logs::begin();
    scope.cancel();
    time::sleep(61 * SECOND).await;
    // Nothing is registered any more, but the kind is in use by the call.
    let status = bench.status();
    assert_eq!((status.leaving, status.handlers.len()), (1, 0));
    let call = &bench.config_maps.in_progress()[0];
    assert_eq!(
        (call.key.name(), call.handler.as_deref()),
        ("hangs", Some("old"))
    );
    let count = || {
        let text = logs.text();
        let named = |line: &&str| {
            line.contains("call of a deregistered handler has not ended")
                && line.contains("handler=old")
                && line.contains("key=default/hangs")
        };
        text.lines().filter(named).count()
    };
    assert_eq!(count(), 1);
    let _new = bench.record("new");
    settle().await;
    assert_eq!(bench.status().leaving, 1);
    // At 60, 120, 240, 480, 960, 1920 seconds.
    time::sleep(3000 * SECOND).await;
    assert_eq!(count(), 6, "{}", logs.text());
    let error = bench.factory.stop().await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("default/hangs (dropped in handler old)"),
        "{error}"
    );
    assert!(
        logs.text()
            .contains("handler old of v1 ConfigMap for default/hangs, since")
    );
    assert_eq!(bench.status().leaving, 0);
}

#[tokio::test(start_paused = true)]
async fn kind_whose_last_call_ends_after_its_handlers_frees_its_memory() {
    let bench = Bench::with(|builder| builder.caches(|caches| caches.idle_grace(SECOND))).await;
    let scope = CancellationToken::new();
    bench.on_with(
        "old",
        HandlerOptions::default().until(scope.clone()),
        |_| async {
            time::sleep(100 * SECOND).await;
            Ok(Outcome::done())
        },
    );
    bench.start().await;
    bench.create("a").await;
    settle().await;
    scope.cancel();
    time::sleep(50 * SECOND).await;
    assert!(
        bench.config_maps.status().is_some(),
        "a call reads the cache"
    );
    time::sleep(60 * SECOND).await;
    assert!(bench.config_maps.status().is_none());
    assert!(bench.factory.caches().status().is_empty());
    bench.factory.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn call_enqueues_no_key_after_its_kind_rested() {
    let bench = Bench::new().await;
    let (wait, scope) = (Arc::new(Notify::new()), CancellationToken::new());
    let go = Arc::clone(&wait);
    let old = move |cx: Context<ConfigMap>| {
        let wait = Arc::clone(&wait);
        async move {
            wait.notified().await;
            cx.enqueue(&key("absent"));
            Ok(Outcome::done())
        }
    };
    let options = HandlerOptions::default().until(scope.clone());
    let registered = bench
        .config_maps
        .register_handler("old", options.handler(old));
    registered.expect("registered");
    bench.start().await;
    bench.create("a").await;
    settle().await;
    scope.cancel();
    settle().await;
    go.notify_waiters();
    settle().await;
    let new = bench.record("new");
    time::sleep(60 * SECOND).await;
    assert_eq!(new.names(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn handler_sees_no_deletion_from_before_its_kind_rested() {
    let bench = Bench::new().await;
    let (wait, scope) = (Arc::new(Notify::new()), CancellationToken::new());
    let go = Arc::clone(&wait);
    bench.on_with(
        "old",
        HandlerOptions::default().until(scope.clone()),
        move |_| {
            let wait = Arc::clone(&wait);
            async move {
                wait.notified().await;
                Ok(Outcome::done())
            }
        },
    );
    bench.start().await;
    for name in ["a", "b", "c"] {
        bench.create(name).await;
    }
    settle().await;
    // Of two keys that are being processed and one that is queued.
    for name in ["a", "b", "c"] {
        bench.delete(name).await;
    }
    settle().await;
    scope.cancel();
    settle().await;
    let new = bench.record("new");
    go.notify_waiters();
    time::sleep(60 * SECOND).await;
    let deleted: Vec<_> = new
        .all()
        .into_iter()
        .filter(|call| call.deleted.is_some())
        .collect();
    assert!(deleted.is_empty(), "{deleted:?}");
}

/// The ways in which a handler ends.
const ENDS: [&str; 3] = ["deregistered", "dropped", "token"];

/// The states of a kind in which a handler ends.
const STATES: [&str; 7] = [
    "stopped",
    "syncing",
    "running",
    "paused",
    "draining",
    "hung",
    "with another",
];

#[tokio::test(start_paused = true)]
async fn handler_that_ends_in_any_state_leaves_the_next_one_called() {
    for end in ENDS {
        for state in STATES {
            check_end(end, state).await;
        }
    }
}

/// Ends a handler in a state of its kind, and checks that the next one is called once for each object.
async fn check_end(end: &str, state: &str) {
    let bench = Bench::with(|builder| builder.grace_period(5 * SECOND)).await;
    let scope = CancellationToken::new();
    let options = HandlerOptions::default().until(scope.clone());
    let old = bench
        .config_maps
        .register_handler("old", options.handler(hangs_for_one))
        .expect("registered");
    bench.create("a").await;
    let mut start = Box::pin(bench.factory.start(1));
    match state {
        "stopped" => {}
        "syncing" => assert!(is_pending(&mut start)),
        _ => {
            (&mut start).await.expect("started");
            bring_into(state, &bench).await;
        }
    }
    let stop = (state == "draining").then(|| {
        let mut stop: Pin<Box<dyn Future<Output = _>>> = Box::pin(bench.factory.stop());
        assert!(is_pending(&mut stop));
        stop
    });
    match end {
        "deregistered" => {
            let _ = time::timeout(SECOND, old.deregister()).await;
        }
        "dropped" => drop(is_pending(&mut Box::pin(old.deregister()))),
        _ => {
            scope.cancel();
            bench.config_maps.sweep();
        }
    }
    let new = bench.record("new");
    bench.create("b").await;
    if let Some(stop) = stop {
        let _ = stop.await;
    }
    drop(start);
    let started = bench.factory.start(1).await;
    assert!(
        matches!(started, Ok(()) | Err(StartError::AlreadyStarted)),
        "{started:?}"
    );
    time::sleep(10 * SECOND).await;
    let names = new.names();
    for name in ["a", "b"] {
        let calls = names.iter().filter(|each| *each == name).count();
        assert_eq!(calls, 1, "{end} while {state}: {names:?}");
    }
    let _ = bench.factory.stop().await;
}

async fn hangs_for_one(cx: Context<ConfigMap>) -> HandlerResult {
    if cx.key().name() == "hangs" {
        std::future::pending::<()>().await;
    }
    Ok(Outcome::done())
}

/// Brings a kind that has been started into a state.
async fn bring_into(state: &str, bench: &Bench) {
    match state {
        "running" => {}
        "paused" => {
            bench.config_maps.pause("old").expect("it is registered");
            bench.change("a", "paused").await;
        }
        "with another" => {
            let until = HandlerOptions::default().until(CancellationToken::new());
            bench.record_with("another", until);
        }
        _ => {
            bench.create("hangs").await;
            settle().await;
        }
    }
}
