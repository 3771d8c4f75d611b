//! Behaviours that controller-runtime, client-go and kooper have tests for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_cache::{KindOptions, Metadata, Transform};
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_controller::{
    CallOutcome, Context, ControllerOptions, HandlerOptions, HandlerResult, Outcome, Resync,
    StartError,
};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::{self, Instant};

use crate::bench::{Bench, SECOND, key, recorder, settle};

/// controller-runtime: the timeout is counted only when ours fired.
#[tokio::test(start_paused = true)]
async fn only_our_own_timeout_counts_as_one() {
    let bench = Bench::new().await;
    let once = || HandlerOptions::default().max_retries(0);
    bench.on_with("ours", once().timeout(SECOND), |_| async {
        time::sleep(60 * SECOND).await;
        Ok(Outcome::done())
    });
    bench.on_with("theirs", once().timeout(60 * SECOND), |_| async {
        time::timeout(SECOND, std::future::pending::<()>()).await?;
        Ok(Outcome::done())
    });
    bench.on_with("none", once().timeout(Duration::ZERO), |_| async {
        time::sleep(3600 * SECOND).await;
        Ok(Outcome::done())
    });
    bench.create("a").await;
    bench.start().await;
    time::sleep(7200 * SECOND).await;
    let handlers = bench.status().handlers;
    let ended: Vec<(u64, u64)> = handlers
        .iter()
        .map(|each| (each.timeouts, each.failures))
        .collect();
    assert_eq!(ended, [(1, 1), (0, 1), (0, 0)]);
    assert_eq!(handlers[0].ended(CallOutcome::TimedOut), 1);
}

/// controller-runtime: concurrent starts start sources once, and one of them is refused.
#[tokio::test(start_paused = true)]
async fn two_starts_at_once_open_one_watch() {
    let bench = Bench::new().await;
    bench.record("log");
    let (one, two) = tokio::join!(bench.factory.start(1), bench.factory.start(1));
    let refused = [one, two]
        .into_iter()
        .filter_map(Result::err)
        .collect::<Vec<_>>();
    assert_eq!(refused, [StartError::AlreadyStarted]);
    assert_eq!(bench.cluster.journal().count("watch", "configmaps"), 1);
}

/// controller-runtime: sources before leadership, workers after.
#[tokio::test(start_paused = true)]
async fn caches_can_be_warm_before_any_handler_is_called() {
    let bench = Bench::new().await;
    let calls = bench.record("log");
    bench.create("a").await;
    bench.factory.caches().start();
    bench.factory.caches().wait_for_sync(SECOND).await.unwrap();
    time::sleep(100 * SECOND).await;
    assert_eq!(calls.len(), 0);
    bench.create("b").await;
    bench.start().await;
    settle().await;
    assert_eq!(calls.len(), 2);
    assert_eq!(
        bench.cluster.journal().count("watch", "configmaps"),
        1,
        "the same watch"
    );
    bench.factory.stop().await.unwrap();
}

/// controller-runtime: the run is known to the handler, and differs from run to run.
#[tokio::test(start_paused = true)]
async fn handlers_of_one_run_know_its_number() {
    let bench = Bench::new().await;
    let runs: Arc<Mutex<Vec<u64>>> = Arc::default();
    for name in ["one", "two"] {
        let log = Arc::clone(&runs);
        bench
            .config_maps
            .register_handler(name, move |cx: Context<ConfigMap>| {
                log.lock().push(cx.run());
                async { Ok(Outcome::done()) }
            })
            .unwrap();
    }
    bench.start().await;
    bench.create("a").await;
    settle().await;
    bench.create("b").await;
    settle().await;
    let runs = runs.lock();
    assert!(
        runs[0] == runs[1] && runs[1] < runs[2] && runs[2] == runs[3],
        "{runs:?}"
    );
}

/// controller-runtime: a grace period of zero does not wait, and an infinite one waits forever.
#[tokio::test(start_paused = true)]
async fn the_grace_may_be_nothing_or_without_end() {
    for (grace, expected) in [(Duration::ZERO, 0), (Duration::MAX, 90_000)] {
        let bench = Bench::with(|builder| builder.grace_period(grace)).await;
        bench.on("slow", |_| async {
            time::sleep(90_000 * SECOND).await;
            Ok(Outcome::done())
        });
        bench.create("a").await;
        bench.start().await;
        settle().await;
        let began = Instant::now();
        let stopped = bench.factory.stop().await;
        assert_eq!(began.elapsed().as_secs_f64().round() as u64, expected);
        assert_eq!(stopped.is_ok(), grace == Duration::MAX);
    }
}

/// client-go: after a lost watch, changed objects are delivered, and unchanged ones only by a resync.
#[tokio::test(start_paused = true)]
async fn a_relist_publishes_what_changed_and_nothing_else() {
    let bench = Bench::new().await;
    let calls = bench.record("log");
    let resyncs = HandlerOptions::default().resync(Resync::Every(60 * SECOND));
    let resyncing = bench.record_with("resyncs", resyncs);
    for name in ["a", "b", "c"] {
        bench.create(name).await;
    }
    bench.start().await;
    settle().await;
    let down = Refusal::new(http::StatusCode::SERVICE_UNAVAILABLE);
    let rule = Rule::new(Action::Refuse(down))
        .resource("configmaps")
        .verb("watch");
    let rule = bench.cluster.faults().add(rule);
    bench.cluster.cut_watches();
    bench.change("a", "1").await;
    bench.delete("b").await;
    bench.create("d").await;
    bench.cluster.compact();
    time::sleep(10 * SECOND).await;
    assert_eq!(calls.len(), 3, "nothing is known yet");
    let error = bench.status().cache.last_error;
    assert!(
        error.is_some_and(|error| error.contains("503")),
        "it is in the status"
    );
    bench.cluster.faults().remove(rule);
    time::sleep(40 * SECOND).await;
    let mut names = calls.names()[3..].to_vec();
    names.sort();
    assert_eq!(names, ["a", "b", "d"]);
    time::sleep(SECOND * 15).await;
    assert!(
        resyncing.names()[6..].contains(&"c".to_owned()),
        "{:?}",
        resyncing.names()
    );
}

/// client-go: all handlers see the transformed object.
#[tokio::test(start_paused = true)]
async fn all_handlers_see_the_transformed_object() {
    let bench = Bench::with(|builder| {
        let cache = KindOptions::default().transform(Transform::drop(["/data"]));
        builder.default_options(ControllerOptions::default().cache(cache))
    })
    .await;
    let (one, two) = (bench.record("one"), bench.record("two"));
    bench.start().await;
    bench.create("a").await;
    bench.change("a", "secret").await;
    settle().await;
    assert_eq!(
        (one.last().value, two.last().value),
        (Some("-".into()), Some("-".into()))
    );
}

/// client-go: one function may be registered twice, and each registration is removed separately.
#[tokio::test(start_paused = true)]
async fn the_same_function_twice_is_two_handlers() {
    let bench = Bench::new().await;
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let handler = move |_: Context<Metadata>| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { HandlerResult::Ok(Outcome::done()) }
    };
    let maps = bench.config_maps.view::<Metadata>();
    let one = maps.register_handler("one", handler.clone()).unwrap();
    maps.register_handler("two", handler).unwrap();
    bench.start().await;
    bench.create("a").await;
    settle().await;
    assert_eq!(count.load(Ordering::SeqCst), 2);
    one.deregister().await;
    bench.change("a", "1").await;
    settle().await;
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

/// client-go: an object that is deleted and created again may lead to one call, and its uid shows it.
#[tokio::test(start_paused = true)]
async fn an_object_created_again_under_one_name_has_another_uid() {
    let bench = Bench::new().await;
    let (log, seen) = (
        Arc::new(Mutex::new(Vec::new())),
        Arc::new(AtomicUsize::new(0)),
    );
    let written = Arc::clone(&log);
    let count = Arc::clone(&seen);
    bench
        .config_maps
        .register_handler("log", move |cx: Context<ConfigMap>| {
            let uid = |object: Option<Arc<ConfigMap>>| object.and_then(|o| o.metadata.uid.clone());
            let (now, before) = (cx.object().map(uid), cx.deleted().map(uid));
            written
                .lock()
                .push((now.ok().flatten(), before.ok().flatten()));
            count.fetch_add(1, Ordering::SeqCst);
            async {
                time::sleep(SECOND).await;
                Ok(Outcome::done())
            }
        })
        .unwrap();
    bench.start().await;
    bench.create("a").await;
    settle().await;
    bench.delete("a").await;
    bench.create("a").await;
    time::sleep(5 * SECOND).await;
    let calls = log.lock();
    assert_eq!(calls.len(), 2);
    let ((first, none), (second, gone)) = (&calls[0], &calls[1]);
    assert_eq!(
        (none, gone),
        (&None, first),
        "the last state of the one that was deleted"
    );
    assert_ne!(first, second);
}

/// kooper: N objects make N calls, and a deletion one more.
#[tokio::test(start_paused = true)]
async fn every_object_makes_one_call() {
    let bench = Bench::new().await;
    let calls = bench.record("log");
    for number in 0..50 {
        bench.create(&format!("o{number}")).await;
    }
    bench.start().await;
    settle().await;
    assert_eq!(calls.len(), 50);
}

/// kooper: a hundred events of 10 to 50 ms take five workers a fifth of the time.
#[tokio::test(start_paused = true)]
async fn five_workers_take_a_fifth_of_the_time() {
    let mut took = Vec::new();
    for workers in [1, 5] {
        let bench = Bench::new().await;
        let calls = bench.on("log", |call| async move {
            let millis = 10 + call.name.bytes().map(u64::from).sum::<u64>() % 41;
            time::sleep(Duration::from_millis(millis)).await;
            Ok(Outcome::done())
        });
        for number in 0..100 {
            bench.config_maps.enqueue(&key(&format!("o{number}")));
        }
        bench.factory.start(workers).await.unwrap();
        let began = Instant::now();
        // The stop drains.
        bench.factory.stop().await.unwrap();
        assert_eq!(calls.len(), 100);
        took.push(began.elapsed());
    }
    assert!((SECOND..5 * SECOND).contains(&took[0]), "{took:?}");
    let ratio = took[0].as_secs_f64() / took[1].as_secs_f64();
    assert!((4.0..=5.5).contains(&ratio), "{took:?}");
}

/// All three: nothing leaks.
#[tokio::test(start_paused = true)]
async fn a_factory_that_was_used_in_every_way_leaves_no_task() {
    let bench = Bench::new().await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    for _ in 0..3 {
        let (_, handler) = recorder(|_| async { Err("no".into()) });
        let every = HandlerOptions::default()
            .resync(Resync::Every(SECOND))
            .concurrency(1);
        let one = bench
            .config_maps
            .register_handler("one", every.handler(handler))
            .unwrap();
        let all = bench
            .factory
            .for_all_kinds(|_| true)
            .view::<Metadata>()
            .register_handler("all", |_: Context<Metadata>| async { Ok(Outcome::done()) })
            .unwrap();
        bench.start().await;
        time::sleep(10 * SECOND).await;
        one.deregister().await;
        all.deregister().await;
        bench.factory.stop().await.unwrap();
        assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks);
    }
}
