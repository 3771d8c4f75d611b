//! Runs that end while a call hangs or a stop is dropped, and the runs after them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Polling, Waker};
use std::time::Duration;

use lariat_cache::Selection;
use lariat_controller::{ControllerOptions, HandlerOptions, Outcome, StartError};
use lariat_core::Gvk;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, Call, SECOND, key, settle};
use crate::ending::{hangs, with_hung_call};

/// Polls a future once; returns whether it is pending.
pub(crate) fn is_pending<F: Future + ?Sized>(future: &mut Pin<Box<F>>) -> bool {
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
pub(crate) struct Overlaps(Arc<Mutex<(usize, usize)>>);

impl Overlaps {
    pub(crate) async fn call(self, lasts: Duration) {
        {
            let mut counts = self.0.lock();
            counts.0 += 1;
            counts.1 = counts.1.max(counts.0);
        }
        let _left = Left(&self.0);
        time::sleep(lasts).await;
    }

    pub(crate) fn most(&self) -> usize {
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
    while bench.status().workers.is_none() {
        time::sleep(Duration::from_millis(1)).await;
    }
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
