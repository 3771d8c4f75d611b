//! Handlers, kinds and runs that end while a call hangs, and what comes after them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Polling, Waker};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_cache::Selection;
use lariat_controller::{
    Context, ControllerOptions, HandlerOptions, HandlerResult, Outcome, StartError,
};
use lariat_core::Gvk;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, Call, Calls, SECOND, key, settle};
use crate::logs::Logs;

/// Registers a handler whose call for the object `hangs` never ends.
fn hangs(bench: &Bench, name: &str, options: HandlerOptions) -> Calls {
    bench.on_with(name, options, |call| async move {
        if call.name == "hangs" {
            std::future::pending::<()>().await;
        }
        Ok(Outcome::done())
    })
}

/// A bench with a running factory, and a handler `old` that hangs in a call until its token is cancelled.
async fn with_hung_call(workers: usize) -> (Bench, CancellationToken) {
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

/// Polls a future once; returns whether it is pending.
fn is_pending<F: Future + ?Sized>(future: &mut Pin<Box<F>>) -> bool {
    let polling = &mut Polling::from_waker(Waker::noop());
    future.as_mut().poll(polling).is_pending()
}

/// Polls a future a number of times, each time after all other tasks have had a turn, and drops it.
///
/// Returns its output if it has ended by then.
async fn dropped_after<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = Box::pin(future);
    for _ in 0..polls {
        let mut polled = None;
        std::future::poll_fn(|cx| {
            polled = Some(future.as_mut().poll(cx));
            std::task::Poll::Ready(())
        })
        .await;
        if let Some(std::task::Poll::Ready(output)) = polled {
            return Some(output);
        }
        tokio::task::yield_now().await;
    }
    None
}

/// Records which calls overlap for a handler that blocks for a time.
#[derive(Clone, Default)]
struct Overlaps(Arc<Mutex<(usize, usize)>>);

impl Overlaps {
    async fn call(self, lasts: Duration) {
        {
            let mut counts = self.0.lock();
            counts.0 += 1;
            counts.1 = counts.1.max(counts.0);
        }
        let _left = Left(&self.0);
        time::sleep(lasts).await;
    }

    fn most(&self) -> usize {
        self.0.lock().1
    }
}

/// Counts the end of a call, also of one that is dropped.
struct Left<'a>(&'a Mutex<(usize, usize)>);

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.0.lock().0 -= 1;
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_stop_keeps_its_grace_period() {
    let bench = Bench::with(|builder| builder.grace_period(30 * SECOND)).await;
    let ended = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&ended);
    bench.on("slow", move |call| {
        let noted = Arc::clone(&noted);
        async move {
            time::sleep(20 * SECOND).await;
            noted.lock().push(call.name);
            Ok(Outcome::done())
        }
    });
    bench.start().await;
    bench.create("a").await;
    settle().await;
    let began = Instant::now();
    assert!(dropped_after(1, bench.factory.stop()).await.is_none());
    bench.factory.stop().await.unwrap();
    assert!(
        began.elapsed() >= 19 * SECOND,
        "the second stop waits for the first"
    );
    assert_eq!(*ended.lock(), ["a"], "the call was not dropped");
}

#[tokio::test(start_paused = true)]
async fn start_after_a_dropped_stop_waits_for_its_end() {
    for polls in 0..6 {
        let bench = Bench::with(|builder| builder.grace_period(30 * SECOND)).await;
        let overlaps = Overlaps::default();
        let counted = overlaps.clone();
        let calls = bench.on("slow", move |_| {
            let counted = counted.clone();
            async move {
                counted.call(10 * SECOND).await;
                Ok(Outcome::done())
            }
        });
        bench.factory.start(1).await.unwrap();
        bench.create("a").await;
        settle().await;
        for _ in 0..3 {
            dropped_after(polls, bench.factory.stop()).await;
        }
        match bench.factory.start(1).await {
            Ok(()) => {}
            Err(StartError::AlreadyStarted) => assert_eq!(polls, 0, "no stop has begun"),
            Err(error) => panic!("{error}"),
        }
        bench.create("b").await;
        time::sleep(60 * SECOND).await;
        assert_eq!(calls.names(), ["a", "b"], "{polls} polls");
        assert_eq!(overlaps.most(), 1, "{polls} polls");
        assert_eq!(bench.status().workers, Some(1));
        bench.factory.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn start_after_a_dropped_start_finds_the_factory_running() {
    for polls in 0..12 {
        let bench = Bench::new().await;
        let calls = bench.record("log");
        bench.create("a").await;
        let first = dropped_after(polls, bench.factory.start(1)).await;
        match (first, bench.factory.start(1).await) {
            (None, Ok(())) => assert_eq!(polls, 0),
            (_, Err(StartError::AlreadyStarted)) => {}
            (first, second) => panic!("{first:?}, {second:?}"),
        }
        time::sleep(SECOND).await;
        assert_eq!(calls.names(), ["a"]);
        bench.factory.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn runs_do_not_overlap_when_a_call_blocks_across_a_dropped_stop() {
    let bench = Bench::new().await;
    let (entered, go) = (Arc::new(Notify::new()), std::sync::mpsc::channel::<()>());
    let (signal, wait) = (Arc::clone(&entered), Arc::new(Mutex::new(go.1)));
    let calls = bench.on("blocks", move |call| {
        let (signal, wait) = (Arc::clone(&signal), Arc::clone(&wait));
        async move {
            if call.name == "blocks" {
                signal.notify_one();
                let _ = wait.lock().recv_timeout(30 * SECOND);
            }
            Ok(Outcome::done())
        }
    });
    bench.factory.start(1).await.unwrap();
    bench.create("blocks").await;
    entered.notified().await;
    assert!(dropped_after(1, bench.factory.stop()).await.is_none());
    let start = bench.factory.start(1);
    let release = async {
        tokio::task::yield_now().await;
        go.0.send(()).unwrap();
    };
    let (started, ()) = tokio::join!(start, release);
    started.unwrap();
    assert_eq!(bench.status().workers, Some(1));
    bench.create("after").await;
    let seen = async {
        while !calls.names().contains(&"after".to_owned()) {
            time::sleep(Duration::from_millis(1)).await;
        }
    };
    time::timeout(20 * SECOND, seen)
        .await
        .expect("the second run works");
    bench.factory.stop().await.unwrap();
    assert_eq!(calls.names(), ["blocks", "after"]);
}

#[tokio::test(start_paused = true)]
async fn registration_outside_of_a_runtime_calls_the_handler() {
    for has_cache in [true, false] {
        let bench = Bench::new().await;
        let _cache = has_cache.then(|| bench.config_maps.cache());
        bench.start().await;
        let (calls, handler) = crate::bench::recorder(|_| async { Ok(Outcome::done()) });
        let maps = bench.config_maps.clone();
        let registering =
            std::thread::spawn(move || maps.register_handler("outside", handler).map(drop));
        registering.join().expect("no panic").unwrap();
        let inside = bench.record("inside");
        bench.create("a").await;
        time::sleep(60 * SECOND).await;
        assert_eq!(
            (calls.names(), inside.names()),
            (vec!["a".to_owned()], vec!["a".to_owned()])
        );
    }
}

#[tokio::test(start_paused = true)]
async fn handler_registered_outside_of_a_runtime_while_a_call_hangs_is_called() {
    let (bench, scope) = with_hung_call(1).await;
    scope.cancel();
    settle().await;
    let (calls, handler) = crate::bench::recorder(|_| async { Ok(Outcome::done()) });
    let maps = bench.config_maps.clone();
    let registering = std::thread::spawn(move || maps.register_handler("new", handler).map(drop));
    registering.join().expect("no panic").unwrap();
    bench.create("a").await;
    settle().await;
    assert_eq!(calls.names(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn factory_dropped_while_a_call_hangs_drops_the_call() {
    for is_registered in [true, false] {
        let (bench, scope) = with_hung_call(1).await;
        let witness = Arc::new(());
        let held = Arc::clone(&witness);
        bench.on("holds", move |_: Call| {
            let _ = &held;
            async { Ok(Outcome::done()) }
        });
        if !is_registered {
            scope.cancel();
            settle().await;
        }
        let Bench {
            factory,
            config_maps,
            cluster,
            ..
        } = bench;
        drop(factory);
        time::sleep(SECOND).await;
        assert!(config_maps.in_progress().is_empty());
        assert_eq!(Arc::strong_count(&witness), 1, "handlers are dropped");
        let requests = cluster.journal().requests().len();
        time::sleep(3600 * SECOND).await;
        assert_eq!(
            cluster.journal().requests().len(),
            requests,
            "no watch is left"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn factory_dropped_during_a_dropped_stop_ends_within_the_grace_period() {
    let bench = Bench::with(|builder| builder.grace_period(5 * SECOND)).await;
    let hung = hangs(&bench, "hangs", HandlerOptions::default());
    bench.start().await;
    bench.create("hangs").await;
    settle().await;
    assert!(dropped_after(1, bench.factory.stop()).await.is_none());
    let mut phases = bench.factory.phases();
    let Bench {
        factory,
        config_maps,
        cluster,
        ..
    } = bench;
    drop(factory);
    let began = Instant::now();
    while phases.changed().await.is_ok() {}
    assert!(began.elapsed() <= 6 * SECOND, "{:?}", began.elapsed());
    assert!(config_maps.in_progress().is_empty());
    let requests = cluster.journal().requests().len();
    time::sleep(3600 * SECOND).await;
    assert_eq!(
        (hung.len(), cluster.journal().requests().len()),
        (1, requests)
    );
}

#[tokio::test(start_paused = true)]
async fn paused_keys_survive_a_dropped_stop() {
    for resumed in ["before", "during", "after"] {
        let bench = Bench::new().await;
        let calls = bench.record("log");
        let slow = bench.on("slow", |_| async {
            time::sleep(SECOND).await;
            Ok(Outcome::done())
        });
        bench.start().await;
        bench.config_maps.pause("log").unwrap();
        bench.create("a").await;
        settle().await;
        assert_eq!((calls.len(), slow.len()), (0, 1));
        if resumed == "before" {
            bench.config_maps.resume("log").unwrap();
        }
        assert!(dropped_after(1, bench.factory.stop()).await.is_none());
        if resumed == "during" {
            bench.config_maps.resume("log").unwrap();
        }
        bench.factory.start(1).await.unwrap();
        if resumed == "after" {
            settle().await;
            assert_eq!(calls.len(), 0);
            bench.config_maps.resume("log").unwrap();
        }
        time::sleep(10 * SECOND).await;
        assert_eq!(calls.names(), ["a"], "resumed {resumed} the stop");
        bench.factory.stop().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn key_enqueued_during_a_stop_is_kept_although_its_kind_is_used_anew() {
    let (bench, scope) = with_hung_call(1).await;
    let mut stop = Box::pin(bench.factory.stop());
    assert!(is_pending(&mut stop));
    scope.cancel();
    bench.config_maps.sweep();
    let new = bench.record("new");
    bench.config_maps.enqueue(&key("enqueued"));
    stop.await.unwrap_err();
    assert_eq!(
        new.len(),
        0,
        "no handler is called during the stop of another run"
    );
    bench.factory.start(1).await.unwrap();
    settle().await;
    assert!(new.names().contains(&"enqueued".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn workers_of_a_kind_are_counted_anew_after_each_rest() {
    let options = ControllerOptions::default().workers(2);
    let bench = Bench::with(|builder| builder.default_options(options)).await;
    bench.factory.start(None).await.unwrap();
    let overlaps = Overlaps::default();
    for round in 0..5 {
        let counted = overlaps.clone();
        let scope = CancellationToken::new();
        let until = HandlerOptions::default().until(scope.clone());
        bench.on_with(&format!("h{round}"), until, move |_| {
            let counted = counted.clone();
            async move {
                counted.call(SECOND).await;
                Ok(Outcome::done())
            }
        });
        for number in 0..4 {
            bench.create(&format!("o{round}-{number}")).await;
        }
        time::sleep(60 * SECOND).await;
        scope.cancel();
        settle().await;
    }
    assert_eq!(overlaps.most(), 2);
}

#[tokio::test(start_paused = true)]
async fn run_dropped_at_any_await_can_be_stopped_and_started() {
    for polls in [1, 2, 3, 5, 8, 13, 21, 34] {
        for stops in [false, true] {
            let bench = Bench::new().await;
            let calls = bench.record("log");
            bench.create("a").await;
            let shutdown = async {
                if !stops {
                    std::future::pending::<()>().await;
                }
                settle().await;
            };
            dropped_after(polls, bench.factory.run(1, shutdown)).await;
            bench.factory.stop().await.unwrap();
            bench.factory.start(1).await.unwrap();
            bench.create("b").await;
            settle().await;
            let mut names = calls.names();
            names.dedup();
            assert_eq!(names, ["a", "b"], "{polls} polls");
            bench.factory.stop().await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn selection_that_changes_around_a_stop_is_handled_after_the_start() {
    for changed in ["before", "during", "after"] {
        let bench = Bench::new().await;
        let calls = bench.on("log", |_| async {
            time::sleep(SECOND).await;
            Ok(Outcome::done())
        });
        for (name, app) in [("web", "web"), ("api", "api")] {
            let metadata = serde_json::json!({"name": name, "labels": {"app": app}});
            bench
                .apply(serde_json::json!({ "metadata": metadata }))
                .await;
        }
        let gvk = Gvk::new("", "v1", "ConfigMap");
        let informer = bench.factory.caches().for_kind(gvk);
        let select = |app: &str| {
            let labels = format!("app={app}").parse().expect("a selector");
            informer.select(Selection::all().with_labels(labels));
        };
        select("web");
        bench.start().await;
        settle().await;
        if changed == "before" {
            select("api");
        }
        let mut stop = Box::pin(bench.factory.stop());
        assert!(is_pending(&mut stop));
        if changed == "during" {
            select("api");
        }
        stop.await.unwrap();
        if changed == "after" {
            select("api");
        }
        calls.clear();
        bench.start().await;
        time::sleep(10 * SECOND).await;
        let last: Vec<_> = calls
            .all()
            .iter()
            .map(|call| (call.name.clone(), call.deleted.is_some()))
            .collect();
        assert!(
            last.contains(&("api".to_owned(), false)),
            "{changed} the stop: {last:?}"
        );
        assert!(
            last.contains(&("web".to_owned(), true)),
            "{changed} the stop: {last:?}"
        );
        bench.factory.stop().await.unwrap();
    }
}
