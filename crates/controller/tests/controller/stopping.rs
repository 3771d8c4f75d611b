//! Stops and restarts.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease as Object;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use lariat_cache::Metadata;
use lariat_cluster::faults::{Action, Rule};
use lariat_controller::{
    Context, HandlerError, HandlerOptions, Outcome, SharedControllerFactory, StartError,
};
use lariat_core::Gvk;
use lariat_lease::Lease;
use lariat_testing::Logs;
use tokio::time::{self, Instant};

use crate::bench::{Bench, SECOND, key, settle};

#[tokio::test(start_paused = true)]
async fn a_stop_finishes_what_is_due_and_joins_every_task() {
    let bench = Bench::new().await;
    let calls = bench.on("slow", |_| async {
        time::sleep(SECOND).await;
        Ok(Outcome::done())
    });
    bench.start().await;
    for name in ["a", "b", "c", "d", "e"] {
        bench.create(name).await;
    }
    settle().await;
    let begin = Instant::now();
    bench.factory.stop().await.unwrap();
    assert_eq!(calls.len(), 5, "what was due is handled");
    assert!(begin.elapsed() <= 3 * SECOND);

    bench.create("late").await;
    bench.config_maps.enqueue(&key("late"));
    let requests = bench.cluster.journal().requests().len();
    time::sleep(3600 * SECOND).await;
    assert_eq!(calls.len(), 5);
    assert_eq!(
        bench.cluster.journal().requests().len(),
        requests,
        "no watch is left"
    );
    bench.factory.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_drops_what_is_not_finished_within_the_grace_period_and_names_it() {
    let bench = Bench::with(|builder| builder.grace_period(5 * SECOND)).await;
    let calls = bench.on("hangs", |_| async {
        std::future::pending::<()>().await;
        Ok(Outcome::done())
    });
    bench.start().await;
    for name in ["a", "b", "c"] {
        bench.create(name).await;
    }
    settle().await;
    let begin = Instant::now();
    let error = bench.factory.stop().await.unwrap_err();
    assert_eq!(begin.elapsed(), 5 * SECOND);
    let text = error.to_string();
    assert!(
        text.starts_with("3 keys were not processed within the grace period of 5s: v1 ConfigMap ")
    );
    for name in ["a", "b"] {
        let called = format!("default/{name} (dropped in handler hangs)");
        assert!(text.contains(&called), "{text}");
    }
    assert!(text.contains("default/c (not started)"), "{text}");
    assert_eq!(calls.len(), 2, "two workers");
}

/// They are due, and the drain gives them their turn.
#[tokio::test(start_paused = true)]
async fn stop_names_keys_that_wait_at_the_limit_of_their_handler() {
    let bench = Bench::with(|builder| builder.grace_period(5 * SECOND)).await;
    let options = HandlerOptions::default().concurrency(1);
    bench.on_with("hangs", options, |_| async {
        std::future::pending::<()>().await;
        Ok(Outcome::done())
    });
    bench.start().await;
    for name in ["a", "b", "c", "d"] {
        bench.create(name).await;
    }
    settle().await;
    let logs = Logs::begin();
    let error = bench.factory.stop().await.expect_err("a call is dropped");
    let text = error.to_string();
    assert!(text.starts_with("4 keys were not processed"), "{text}");
    let text = logs.text();
    assert!(text.contains("shutting down: 4 keys left"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn handlers_are_notified_that_a_stop_has_begun() {
    let bench = Bench::new().await;
    bench
        .config_maps
        .register_handler("polite", |cx: lariat_controller::Context<_>| async move {
            let _: Option<std::sync::Arc<k8s_openapi::api::core::v1::ConfigMap>> = cx.object()?;
            cx.stopping().cancelled().await;
            Ok(Outcome::done())
        })
        .unwrap();
    bench.start().await;
    bench.create("a").await;
    settle().await;
    let begin = Instant::now();
    bench.factory.stop().await.unwrap();
    assert!(begin.elapsed() < SECOND);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_between_a_stop_and_the_next_start() {
    let bench = Bench::with(|builder| builder.grace_period(SECOND)).await;
    let calls = bench.on("flaky", |call| async move {
        match call.name.as_str() {
            "failing" if call.attempt < 12 => Err("not yet".into()),
            "hanging" if call.attempt == 1 && call.value.as_deref() == Some("-") => {
                std::future::pending().await
            }
            _ => Ok(Outcome::done()),
        }
    });
    bench.start().await;
    for name in ["failing", "hanging", "changed", "deleted"] {
        bench.create(name).await;
    }
    settle().await;
    bench.factory.stop().await.unwrap_err();
    bench.config_maps.enqueue(&key("enqueued"));
    bench.change("changed", "while stopped").await;
    bench.change("hanging", "no more").await;
    bench.delete("deleted").await;
    bench.create("created").await;
    time::sleep(60 * SECOND).await;
    let before = calls.len();

    bench.start().await;
    time::sleep(60 * SECOND).await;
    let after = calls.all().split_off(before);
    let last = |name: &str| {
        after
            .iter()
            .rfind(|call| call.name == name)
            .unwrap()
            .clone()
    };
    assert_eq!(last("changed").value.as_deref(), Some("while stopped"));
    assert_eq!(last("hanging").value.as_deref(), Some("no more"));
    assert_eq!(last("deleted").deleted.as_deref(), Some("-"));
    assert_eq!(last("created").value.as_deref(), Some("-"));
    assert_eq!(last("enqueued").value, None);
    assert_eq!(
        last("failing").attempt,
        12,
        "a retry that waited when the stop came"
    );
    assert_eq!(
        after.len(),
        5 + 12
            - calls.all()[..before]
                .iter()
                .filter(|c| c.name == "failing")
                .count()
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_deleted_during_a_stop_is_reported_as_deleted_after_the_next_start() {
    let bench = Bench::new().await;
    let calls = bench.record("log");
    bench.create("a").await;
    for round in 0..3 {
        bench.create(&format!("b{round}")).await;
        bench.start().await;
        settle().await;
        bench.factory.stop().await.unwrap();
        bench.delete(&format!("b{round}")).await;
    }
    bench.delete("a").await;
    bench.start().await;
    settle().await;
    assert!(bench.config_maps.cache().is_empty());
    let calls = calls.all().into_iter();
    let deleted = calls.filter_map(|call| call.deleted.map(|_| call.name));
    let mut deleted: Vec<String> = deleted.collect();
    deleted.sort();
    assert_eq!(deleted, ["a", "b0", "b1", "b2"]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_is_given_up_and_a_start_leave_one_reflector() {
    let bench = Bench::new().await;
    let calls = bench.on("slow", |_| async {
        time::sleep(SECOND).await;
        Ok(Outcome::done())
    });
    bench.start().await;
    bench.create("a").await;
    settle().await;
    for _ in 0..3 {
        let mut stop = Box::pin(bench.factory.stop());
        let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
        assert!(stop.as_mut().poll(context).is_pending());
        drop(stop);
        bench.start().await;
    }
    bench.create("b").await;
    time::sleep(10 * SECOND).await;
    assert!(calls.names().contains(&"b".to_owned()));
    let journal = bench.cluster.journal();
    let lists = journal.count("list", "configmaps");
    time::sleep(60 * SECOND).await;
    assert_eq!(bench.status().cache.phase, lariat_cache::Phase::Synced);
    assert_eq!(journal.count("list", "configmaps"), lists);
    bench.factory.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_factory_runs_until_it_is_stopped() {
    let bench = Bench::new().await;
    let calls = bench.record("log");
    bench.start().await;
    let begin = Instant::now();
    let (stopped, ()) = tokio::join!(bench.factory.run_until(time::sleep(100 * SECOND)), async {
        time::sleep(50 * SECOND).await;
        bench.create("a").await;
    },);
    stopped.unwrap();
    assert_eq!(
        (calls.len(), begin.elapsed() >= Duration::from_secs(100)),
        (1, true)
    );
}

/// Waits in real time until a condition holds: virtual time does not advance while tasks are busy.
async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_stop_ends_although_handlers_make_work_of_their_own() {
    let bench = Bench::new().await;
    let again = bench.on("again", |_| async {
        Ok(Outcome::requeue_after(Duration::ZERO))
    });
    let config_maps = bench.config_maps.clone();
    let enqueues = bench.on("enqueues", move |call| {
        config_maps.enqueue(&key(&call.name));
        async { Ok(Outcome::done()) }
    });
    bench.start().await;
    bench.create("a").await;
    until(|| again.len() > 10).await;
    bench.factory.stop().await.unwrap();
    let calls = (again.len(), enqueues.len());

    // The keys that they enqueued are kept for the next start.
    bench.start().await;
    until(|| again.len() > calls.0 + 10 && enqueues.len() > calls.1 + 10).await;
    bench.factory.stop().await.unwrap();
}

#[tokio::test]
async fn handlers_that_never_wait_leave_room_for_others_on_one_thread() {
    let bench = Bench::new().await;
    let calls = bench.on("busy", |_| async {
        Ok(Outcome::requeue_after(Duration::ZERO))
    });
    bench.start().await;
    bench.create("a").await;
    until(|| calls.len() > 1000).await;
    bench.factory.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn two_stops_wait_for_one_drain_and_a_start_waits_for_it_too() {
    let bench = Bench::new().await;
    let calls = bench.on("slow", |_| async {
        time::sleep(SECOND).await;
        Ok(Outcome::done())
    });
    bench.start().await;
    bench.create("a").await;
    settle().await;
    let begin = Instant::now();
    let stop = async || {
        bench.factory.stop().await.unwrap();
        begin.elapsed()
    };
    let start = async {
        settle().await;
        bench.factory.start(2).await.unwrap();
        begin.elapsed()
    };
    let (first, second, start) = tokio::join!(stop(), stop(), start);
    assert!(first >= SECOND - Duration::from_millis(2), "{first:?}");
    assert!(second >= first && start >= first);
    bench.create("b").await;
    settle().await;
    assert_eq!(calls.names(), ["a", "b"], "it runs");
    bench.factory.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_a_start_that_waits_for_its_caches() {
    let nowhere = kube::Config::new(http::Uri::from_static("http://127.0.0.1:1"));
    let client = kube::Client::try_from(nowhere).unwrap();
    let factory = SharedControllerFactory::builder(client).build();
    let pods = factory.for_object::<ConfigMap>();
    let handler = |_: Context<ConfigMap>| async { Ok(Outcome::done()) };
    pods.register_handler("none", handler).unwrap();
    let begin = Instant::now();
    let stop = async {
        time::sleep(SECOND).await;
        factory.stop().await.unwrap();
    };
    let (started, ()) = tokio::join!(factory.start(1), stop);
    assert_eq!(started.unwrap_err(), StartError::Stopped);
    assert!(begin.elapsed() < 2 * SECOND);

    // The same by a signal.
    factory.run(1, time::sleep(SECOND)).await.unwrap();
    assert!(begin.elapsed() < 4 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_stop_says_what_it_waits_for_and_for_how_long() {
    let bench = Bench::with(|builder| builder.grace_period(30 * SECOND)).await;
    bench.on("slow", |_| async {
        time::sleep(10 * SECOND).await;
        Ok(Outcome::done())
    });
    bench.on("hangs", |call| async move {
        match call.value {
            Some(_) => std::future::pending().await,
            None => Ok(Outcome::done()),
        }
    });
    bench.start().await;
    bench.create("a").await;
    settle().await;
    let logs = Logs::begin();
    let error = bench.factory.stop().await.unwrap_err();
    let text = logs.text();
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("shutting down"))
        .collect();
    assert!(
        lines[0].contains("INFO message=shutting down: 1 key left, waiting up to 30s"),
        "{text}"
    );
    assert!(
        lines[1].contains("still shutting down: 1 key left, waiting 28 s more"),
        "{text}"
    );
    assert!(
        lines[1].contains("handler slow of v1 ConfigMap for default/a, since"),
        "{text}"
    );
    assert_eq!(
        lines.len(),
        7,
        "the first, after 2 s, and every 5 s: {text}"
    );
    assert!(
        lines[6].contains("handler hangs of v1 ConfigMap for default/a, since 17.0s"),
        "{text}"
    );
    assert!(
        text.contains("WARN message=the grace period of 30s is over: 1 key left"),
        "{text}"
    );
    assert_eq!(
        error.to_string(),
        "1 key was not processed within the grace period of 30s: v1 ConfigMap default/a (dropped in handler hangs)"
    );

    // The next stop does not report calls that the previous one has dropped.
    bench.delete("a").await;
    bench.start().await;
    time::sleep(20 * SECOND).await;
    let logs = Logs::begin();
    bench.factory.stop().await.unwrap();
    assert!(
        logs.text().contains("shutting down: nothing is left to do"),
        "{}",
        logs.text()
    );
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_has_to_wait_says_when_all_was_handled() {
    let bench = Bench::new().await;
    bench.on("slow", |_| async {
        time::sleep(SECOND).await;
        Ok(Outcome::done())
    });
    bench.start().await;
    bench.create("a").await;
    bench.create("b").await;
    settle().await;
    let logs = Logs::begin();
    bench.factory.stop().await.unwrap();
    let text = logs.text();
    assert!(
        text.contains("shutting down: 2 keys left, waiting up to 30s"),
        "{text}"
    );
    assert!(
        text.contains("all keys that were due were processed"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn stop_releases_the_lease_before_a_cache_has_been_saved() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stop-with-warm-restart");
    let saved = folder.clone();
    let bench = Bench::with(|builder| {
        builder
            .leader_election(Lease::new("shop"))
            .grace_period(2 * SECOND)
            .caches(|caches| caches.warm_restart(saved))
    })
    .await;
    // The saved caches are named after the cluster, which the server does not identify.
    let silence = Rule::new(Action::NoAnswer)
        .resource("namespaces")
        .verb("get");
    bench.cluster.faults().add(silence);
    let calls = bench.on("retries", |_| async {
        Err(HandlerError::from("not yet").retry_after(SECOND))
    });
    let others = ["Pod", "Service", "Secret", "Node"].map(|kind| {
        let informer = bench.factory.caches().for_kind(Gvk::new("", "v1", kind));
        informer.cache::<Metadata>()
    });
    bench.create("a").await;
    bench.start().await;
    settle().await;
    let leadership = bench.factory.leadership().expect("an election");
    assert!(leadership.acquired().await);
    let asked = bench.cluster.journal().count("get", "namespaces");
    let before = calls.len();
    let mut stop = pin!(bench.factory.stop());
    tokio::select! {
        biased;
        _ = &mut stop => panic!("the caches wait for ten seconds"),
        () = leadership.lost() => {}
    }
    let leases = Api::<Object>::namespaced(bench.cluster.client(), "default");
    let freed = async {
        loop {
            let lease = leases.get("shop").await.expect("a lease").spec;
            let holder = lease.and_then(|spec| spec.holder_identity);
            if holder.unwrap_or_default().is_empty() {
                return;
            }
            time::sleep(SECOND / 10).await;
        }
    };
    tokio::select! {
        biased;
        _ = &mut stop => panic!("the caches wait for ten seconds"),
        () = freed => {}
    }
    stop.await.expect("nothing is left");
    // The retry is kept for the next start, and all kinds share one request.
    assert_eq!(calls.len(), before);
    assert_eq!(
        bench.cluster.journal().count("get", "namespaces"),
        asked + 1
    );
    drop(others);
    let _ = std::fs::remove_dir_all(&folder);
}
