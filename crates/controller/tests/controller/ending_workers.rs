//! Workers and tasks at the end of calls, stops and runtimes: none too many, and none forgotten.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_cache::{Metadata, Phase};
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_controller::{
    Context, ControllerStatus, HandlerError, HandlerOptions, HandlerResult, Outcome,
};
use lariat_core::Gvk;
use lariat_testing::Logs;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time;
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, Calls, SECOND, key, recorder, settle};
use crate::ending::with_hung_call;
use crate::ending_runs::Overlaps;
use crate::kind_states::factory;
use crate::many_kinds::{create, define};

/// Registers a handler whose calls last a second, and counts those that overlap.
fn slow(bench: &Bench, name: &str) -> (Calls, Overlaps) {
    let overlaps = Overlaps::default();
    let counted = overlaps.clone();
    let calls = bench.on(name, move |_| {
        let counted = counted.clone();
        async move {
            counted.call(SECOND).await;
            Ok(Outcome::done())
        }
    });
    (calls, overlaps)
}

/// Registers a handler whose calls for `hangs` and the like wait for the notification.
fn waits(bench: &Bench, scope: &CancellationToken) -> (Calls, Arc<Notify>) {
    let go = Arc::new(Notify::new());
    let wait = Arc::clone(&go);
    let options = HandlerOptions::default().until(scope.clone());
    let calls = bench.on_with("old", options, move |call| {
        let wait = Arc::clone(&wait);
        async move {
            if call.name.starts_with("hangs") {
                wait.notified().await;
            }
            Ok(Outcome::done())
        }
    });
    (calls, go)
}

#[tokio::test(start_paused = true)]
async fn next_handler_has_as_many_workers_while_a_call_of_the_last_one_hangs() {
    let (bench, scope) = with_hung_call(1).await;
    scope.cancel();
    settle().await;
    let (calls, overlaps) = slow(&bench, "new");
    for number in 0..6 {
        bench.create(&format!("o{number}")).await;
    }
    time::sleep(60 * SECOND).await;
    assert_eq!((calls.len(), overlaps.most()), (6, 1));
}

#[tokio::test(start_paused = true)]
async fn replaced_worker_calls_nothing_after_its_hung_call_has_ended() {
    let bench = Bench::new().await;
    let scope = CancellationToken::new();
    let (_, go) = waits(&bench, &scope);
    let (calls, overlaps) = slow(&bench, "other");
    bench.factory.start(1).await.expect("started");
    bench.create("hangs").await;
    settle().await;
    scope.cancel();
    settle().await;
    for number in 0..3 {
        bench.create(&format!("o{number}")).await;
    }
    time::sleep(SECOND / 2).await;
    assert_eq!(
        calls.names(),
        ["o0"],
        "by the worker that replaced the other"
    );
    go.notify_one();
    time::sleep(60 * SECOND).await;
    assert_eq!(overlaps.most(), 1);
    let mut names = calls.names();
    names.sort();
    assert_eq!(names, ["hangs", "o0", "o1", "o2"], "each is called once");
    bench.factory.stop().await.expect("nothing hangs");
}

#[tokio::test(start_paused = true)]
async fn workers_keep_their_number_when_two_hung_calls_end() {
    let bench = Bench::new().await;
    let scope = CancellationToken::new();
    let (_, go) = waits(&bench, &scope);
    let (calls, overlaps) = slow(&bench, "other");
    bench.start().await;
    bench.create("hangs-1").await;
    bench.create("hangs-2").await;
    settle().await;
    scope.cancel();
    settle().await;
    go.notify_waiters();
    for number in 0..6 {
        bench.create(&format!("o{number}")).await;
    }
    time::sleep(60 * SECOND).await;
    assert_eq!((calls.len(), overlaps.most()), (8, 2));
}

#[tokio::test(start_paused = true)]
async fn new_handler_is_not_called_for_deletion_of_dropped_call() {
    let bench = Bench::with(|builder| builder.grace_period(SECOND)).await;
    let scope = CancellationToken::new();
    let options = HandlerOptions::default().until(scope.clone());
    let old = bench.on_with("old", options, |call| async move {
        if call.deleted.is_some() {
            std::future::pending::<()>().await;
        }
        Ok(Outcome::done())
    });
    bench.start().await;
    bench.create("a").await;
    settle().await;
    bench.delete("a").await;
    settle().await;
    assert_eq!(old.len(), 2, "the second call hangs");
    scope.cancel();
    settle().await;
    let error = bench.factory.stop().await.expect_err("the call is dropped");
    assert!(
        error
            .to_string()
            .contains("default/a (dropped in handler old)"),
        "{error}"
    );
    let new = bench.record("new");
    bench.start().await;
    time::sleep(60 * SECOND).await;
    assert!(new.all().is_empty(), "{:?}", new.all());
    assert_eq!(bench.status().queue.depth(), 0);
}

#[tokio::test(start_paused = true)]
async fn end_of_workers_is_logged_once() {
    let logs = Logs::begin();
    let (bench, scope) = with_hung_call(2).await;
    scope.cancel();
    settle().await;
    bench.factory.stop().await.expect_err("the call is dropped");
    let text = logs.text();
    let lines = text.lines().filter(|line| line.contains("message=workers"));
    let lines: Vec<_> = lines.collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("workers=2") && lines[1].contains("workers=0"));
}

/// The number of keys whose calls hang, and of workers.
const HUNG: usize = 30;

#[tokio::test(start_paused = true)]
async fn workers_keep_their_number_when_hung_keys_change_replica() {
    let bench = Bench::new().await;
    let (one, two) = (factory(&bench, "one", true), factory(&bench, "two", true));
    let config_maps = one.for_object::<ConfigMap>();
    let hangs = |_: Context<ConfigMap>| std::future::pending::<HandlerResult>();
    let old = config_maps
        .register_handler("old", hangs)
        .expect("registered");
    one.start(HUNG).await.expect("started");
    for number in 0..HUNG {
        bench.create(&format!("hangs-{number}")).await;
    }
    time::sleep(5 * SECOND).await;
    assert_eq!(config_maps.in_progress().len(), HUNG);
    let _ = time::timeout(SECOND, old.deregister()).await;
    let overlaps = Overlaps::default();
    let counted = overlaps.clone();
    let (_, slow) = recorder(move |_| {
        let counted = counted.clone();
        async move {
            counted.call(SECOND).await;
            Ok(Outcome::done())
        }
    });
    let registered = config_maps.register_handler("new", slow);
    drop(registered.expect("the name is free"));
    two.start(HUNG).await.expect("started");
    time::sleep(30 * SECOND).await;
    let left = config_maps.in_progress().len();
    assert!(
        left < HUNG,
        "all keys belong to one replica once in 2³⁰ runs"
    );
    for number in 0..5 * HUNG {
        bench.create(&format!("o{number}")).await;
    }
    time::sleep(30 * SECOND).await;
    assert_eq!(overlaps.most(), HUNG, "{left} calls hang");
    one.stop().await.ok();
    two.stop().await.expect("nothing hangs");
}

#[tokio::test(start_paused = true)]
async fn stop_before_the_first_sync_calls_no_handler() {
    let bench = Bench::new().await;
    bench.create("a").await;
    let refused = Action::Refuse(Refusal::too_many_requests());
    let rule = Rule::new(refused).resource("configmaps");
    let rule = bench.cluster.faults().add(rule);
    let calls = bench.record("log");
    bench.config_maps.enqueue(&key("a"));
    assert!(time::timeout(SECOND, bench.factory.start(1)).await.is_err());
    bench.factory.stop().await.expect("nothing is called");
    assert_eq!(calls.len(), 0);
    bench.cluster.faults().remove(rule);
    bench.factory.start(1).await.expect("started");
    settle().await;
    assert_eq!(calls.names(), ["a"], "the key was kept");
}

#[tokio::test(start_paused = true)]
async fn stop_right_after_a_registration_drains_its_keys() {
    let bench = Bench::new().await;
    let _cache = bench.config_maps.cache();
    bench.create("a").await;
    bench.start().await;
    let calls = bench.record("log");
    // The owner of the kind was not polled yet, but its cache is synced.
    bench.factory.stop().await.expect("nothing hangs");
    assert_eq!(calls.names(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn stop_right_after_a_new_kind_syncs_drains_its_keys() {
    let bench = Bench::new().await;
    bench.start().await;
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let noted = Arc::clone(&seen);
    let widgets = bench.factory.for_kind(Gvk::new("demo.dev", "v1", "Widget"));
    let handler = move |cx: Context<Metadata>| {
        noted.lock().push(cx.key().name().to_owned());
        async { Ok(Outcome::done()) }
    };
    let registered = widgets.view::<Metadata>().register_handler("log", handler);
    drop(registered.expect("the name is free"));
    // The owner of the kind looks once a second whether it is served and synced.
    time::sleep(SECOND / 2).await;
    define(&bench, "Widget").await;
    time::sleep(SECOND / 10).await;
    create(&bench, "Widget", "a").await;
    let is_synced = |status: ControllerStatus| status.cache.phase == Phase::Synced;
    while !widgets.status().is_some_and(is_synced) {
        settle().await;
    }
    assert!(seen.lock().is_empty());
    bench.factory.stop().await.expect("nothing hangs");
    assert_eq!(*seen.lock(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn stop_that_panics_joins_its_calls_before_the_next_start() {
    let (bench, scope) = with_hung_call(1).await;
    let logs = Logs::with(Some("still shutting down"));
    let error = bench.factory.stop().await.expect_err("the call is dropped");
    assert!(error.to_string().contains("default/hangs"), "{error}");
    drop(logs);
    scope.cancel();
    let new = bench.record("new");
    bench.factory.start(1).await.expect("the stop has ended");
    bench.create("a").await;
    settle().await;
    let mut names = new.names();
    names.sort();
    assert_eq!(names, ["a", "hangs"]);
    assert_eq!(bench.status().workers, Some(1));
    bench.factory.stop().await.expect("nothing hangs");
}

/// The second worker panics right before the end of the grace period, and is replaced right after it.
#[tokio::test(start_paused = true)]
async fn stop_names_its_dropped_call_although_a_worker_is_replaced_meanwhile() {
    let bench = Bench::with(|builder| builder.grace_period(5 * SECOND)).await;
    bench.on("log", |call| async move {
        if call.name == "hangs" {
            std::future::pending::<()>().await;
        }
        time::sleep(SECOND * 9 / 2).await;
        Err(HandlerError::ignore("as the test wants"))
    });
    bench.factory.start(2).await.expect("started");
    bench.create("hangs").await;
    bench.create("slow").await;
    settle().await;
    let _logs = Logs::with(Some("handler error ignored"));
    let error = bench.factory.stop().await.expect_err("a call is dropped");
    let text = error.to_string();
    assert!(
        text.contains("default/hangs (dropped in handler log)"),
        "{text}"
    );
}

fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    let builder = builder.worker_threads(2).enable_all();
    builder.build().expect("threads can be started")
}

/// Notes the begin of a call, and its end when it is dropped.
struct Noted(Arc<Mutex<Vec<&'static str>>>);

impl Noted {
    fn begin(notes: &Arc<Mutex<Vec<&'static str>>>) -> Self {
        notes.lock().push("begin");
        Self(Arc::clone(notes))
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.lock().push("end");
    }
}

#[test]
fn start_on_another_runtime_waits_for_calls_of_the_runtime_that_was_dropped() {
    let (of_cluster, first, second) = (runtime(), runtime(), runtime());
    let bench = of_cluster.block_on(Bench::new());
    let notes = Arc::<Mutex<Vec<&'static str>>>::default();
    let ((entered, called), (go, wait)) = (mpsc::channel(), mpsc::channel::<()>());
    let (noted, wait) = (Arc::clone(&notes), Arc::new(Mutex::new(wait)));
    let handler = move |_: Context<ConfigMap>| {
        let (noted, entered, wait) = (Arc::clone(&noted), entered.clone(), Arc::clone(&wait));
        async move {
            let _noted = Noted::begin(&noted);
            let _ = entered.send(());
            // The first call blocks its thread, and is dropped at its next await.
            if wait.lock().recv_timeout(30 * SECOND).is_ok() {
                std::future::pending::<()>().await;
            }
            Ok(Outcome::done())
        }
    };
    let registered = bench.config_maps.register_handler("blocks", handler);
    drop(registered.expect("registered"));
    of_cluster.block_on(bench.create("a"));
    first.block_on(bench.factory.start(1)).expect("started");
    called.recv().expect("called");
    first.shutdown_background();
    let release = std::thread::spawn(move || {
        // Time for a start that would not wait.
        std::thread::park_timeout(Duration::from_millis(300));
        let _ = go.send(());
    });
    second.block_on(async {
        let error = bench.factory.stop().await.expect_err("a call was dropped");
        assert!(error.to_string().contains("default/a"), "{error}");
        bench.factory.start(1).await.expect("stopped");
    });
    called.recv_timeout(30 * SECOND).expect("called again");
    release.join().expect("it does not panic");
    second.block_on(bench.factory.stop()).expect("stopped");
    assert_eq!(*notes.lock(), ["begin", "end", "begin", "end"]);
}

#[tokio::test(start_paused = true)]
async fn drain_calls_a_handler_while_a_call_of_an_ended_one_hangs() {
    let bench = Bench::with(|builder| builder.grace_period(60 * SECOND)).await;
    let scope = CancellationToken::new();
    let (_, _go) = waits(&bench, &scope);
    let (calls, _) = slow(&bench, "other");
    bench.factory.start(1).await.expect("started");
    bench.create("hangs").await;
    settle().await;
    bench.create("waits").await;
    settle().await;
    let (factory, mut stop) = (bench.factory.clone(), JoinSet::new());
    stop.spawn(async move { factory.stop().await });
    time::sleep(SECOND).await;
    assert!(
        calls.all().is_empty(),
        "the one worker is in the call that hangs"
    );
    scope.cancel();
    time::sleep(10 * SECOND).await;
    assert_eq!(
        calls.names(),
        ["waits"],
        "by the worker that replaced the other"
    );
    let ended = stop.join_next().await.expect("it was spawned");
    ended.expect("no panic").expect_err("the call is dropped");
}

#[tokio::test(start_paused = true)]
async fn worker_that_panicked_is_replaced_after_a_second() {
    let bench = Bench::new().await;
    let is_first = Arc::new(AtomicBool::new(true));
    let calls = bench.on("log", move |_| {
        let is_ignored = is_first.swap(false, Ordering::SeqCst);
        async move {
            if is_ignored {
                return Err(HandlerError::ignore("the first call"));
            }
            Ok(Outcome::done())
        }
    });
    bench.factory.start(1).await.expect("started");
    // The worker logs the error after the call.
    let _logs = Logs::with(Some("handler error ignored"));
    bench.create("a").await;
    time::sleep(SECOND * 9 / 10).await;
    assert_eq!(calls.len(), 1);
    time::sleep(SECOND / 5).await;
    assert_eq!(calls.names(), ["a", "a"], "the key was given back");
    bench.factory.stop().await.expect("nothing hangs");
}
