//! Handlers that fail, hang, and are registered late or deregistered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use lariat_controller::{
    Context, ControllerOptions, HandlerError, HandlerOptions, HandlerResult, Outcome,
};
use tokio::sync::Notify;
use tokio::time::{self, Instant};

use crate::bench::{Bench, SECOND, key, settle};

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_is_tried_again_alone_with_growing_delays() {
    let bench = Bench::new().await;
    let first = bench.record("first");
    let flaky = bench.on("flaky", |call| async move {
        match call.attempt {
            1..=4 => Err("not yet".into()),
            _ => Ok(Outcome::done()),
        }
    });
    let last = bench.record("last");
    bench.start().await;
    bench.create("a").await;
    time::sleep(10 * SECOND).await;
    assert_eq!((first.len(), flaky.len(), last.len()), (1, 5, 1));
    let times: Vec<Instant> = flaky.all().into_iter().map(|call| call.at).collect();
    let gaps: Vec<u128> = times
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_millis())
        .collect();
    assert_eq!(gaps, [5, 10, 20, 40]);

    // Success forgets the failures.
    bench.change("a", "1").await;
    settle().await;
    assert_eq!(flaky.all()[5].attempt, 1);
    let status = &bench.status().handlers[1];
    assert_eq!((&*status.name, status.retries), ("flaky", 4));
}

#[tokio::test(start_paused = true)]
async fn handlers_of_one_key_back_off_apart() {
    let bench = Bench::new().await;
    let odd = bench.on("odd", |call| async move {
        if call.attempt < 3 {
            Err("odd".into())
        } else {
            Ok(Outcome::done())
        }
    });
    let even = bench.on("even", |call| async move {
        if call.attempt < 6 {
            Err("even".into())
        } else {
            Ok(Outcome::done())
        }
    });
    bench.start().await;
    bench.create("a").await;
    time::sleep(10 * SECOND).await;
    assert_eq!((odd.len(), even.len()), (3, 6));
}

#[tokio::test(start_paused = true)]
async fn a_change_brings_every_handler_also_one_that_backs_off() {
    let bench = Bench::new().await;
    let broken = bench.on("broken", |_| async { Err("never".into()) });
    bench.start().await;
    bench.create("a").await;
    time::sleep(100 * SECOND).await;
    let before = broken.len();
    bench.change("a", "1").await;
    settle().await;
    assert_eq!(broken.len(), before + 1);
    assert_eq!(broken.last().value.as_deref(), Some("1"));
    assert!(
        broken.last().attempt > 10,
        "a change alone does not make it healthy"
    );
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_is_not_tried_again_until_something_happens() {
    let bench = Bench::new().await;
    let calls = bench.on("strict", |_| async {
        Err(HandlerError::terminal("hopeless"))
    });
    bench.start().await;
    bench.create("a").await;
    time::sleep(600 * SECOND).await;
    assert_eq!(calls.len(), 1);
    bench.change("a", "1").await;
    settle().await;
    assert_eq!((calls.len(), calls.last().attempt), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_that_handler_s_failure() {
    let bench = Bench::new().await;
    let calls = bench.on("panics", |call| async move {
        assert!(call.attempt > 2, "boom {}", call.name);
        Ok(Outcome::done())
    });
    let sync = |cx: Context<ConfigMap>| -> std::future::Ready<HandlerResult> {
        assert!(cx.attempt() > 1, "before the first await");
        std::future::ready(Ok(Outcome::done()))
    };
    bench.config_maps.register_handler("sync", sync).unwrap();
    let other = bench.record("other");
    bench.start().await;
    bench.create("a").await;
    bench.create("b").await;
    time::sleep(10 * SECOND).await;
    assert_eq!((calls.len(), other.len()), (6, 2));
    let handlers = bench.status().handlers;
    assert_eq!((handlers[0].panics, handlers[0].failures), (4, 4));
    assert_eq!((handlers[1].panics, handlers[1].calls), (2, 4));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_takes_too_long_is_dropped_and_tried_again() {
    let bench = Bench::with(|builder| {
        let handlers = HandlerOptions::default().timeout(3 * SECOND);
        builder.default_options(ControllerOptions::default().handlers(handlers))
    })
    .await;
    let calls = bench.on("slow", |call| async move {
        time::sleep(if call.attempt == 1 {
            3600 * SECOND
        } else {
            SECOND
        })
        .await;
        Ok(Outcome::done())
    });
    bench.start().await;
    bench.create("a").await;
    time::sleep(10 * SECOND).await;
    assert_eq!(calls.len(), 2);
    let status = &bench.status().handlers[0];
    assert_eq!((status.timeouts, status.failures, status.calls), (1, 1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_hangs_delays_only_its_key_and_its_worker() {
    let bench = Bench::new().await;
    bench.on("hangs", |call| async move {
        if call.name == "stuck" {
            std::future::pending::<()>().await;
        }
        Ok(Outcome::done())
    });
    let others = bench.record("others");
    let secrets = bench.factory.for_object::<Secret>();
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    secrets
        .register_handler("count", move |_: Context<Secret>| {
            count.fetch_add(1, Ordering::Relaxed);
            async { Ok(Outcome::done()) }
        })
        .unwrap();
    bench.start().await;
    bench.create("stuck").await;
    settle().await;
    for name in ["a", "b", "c"] {
        bench.create(name).await;
    }
    secrets.enqueue(&key("s"));
    settle().await;
    assert_eq!(others.names(), ["a", "b", "c"]);
    assert_eq!(seen.load(Ordering::Relaxed), 1);
    assert_eq!(bench.status().queue.processing, 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_never_with_two_workers() {
    let bench = Bench::new().await;
    let busy = Arc::new(AtomicBool::new(false));
    let inside = Arc::clone(&busy);
    let calls = bench.on("slow", move |_| {
        let inside = Arc::clone(&inside);
        async move {
            assert!(
                !inside.swap(true, Ordering::SeqCst),
                "two workers have the key"
            );
            time::sleep(SECOND).await;
            inside.store(false, Ordering::SeqCst);
            Ok(Outcome::done())
        }
    });
    bench.start().await;
    bench.create("a").await;
    for value in 0..20 {
        bench.change("a", &value.to_string()).await;
        bench.config_maps.enqueue(&key("a"));
        time::sleep(Duration::from_millis(300)).await;
    }
    time::sleep(10 * SECOND).await;
    assert_eq!(calls.last().value.as_deref(), Some("19"));
    assert!(
        calls.len() <= 10,
        "changes that come while a key is handled merge: {}",
        calls.len()
    );
    assert_eq!(bench.status().handlers[0].panics, 0);
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_ask_to_be_called_again_alone() {
    let bench = Bench::new().await;
    let polls = bench.on("polls", |_| async {
        Ok(Outcome::requeue_after(10 * SECOND))
    });
    let other = bench.record("other");
    bench.start().await;
    bench.create("a").await;
    time::sleep(35 * SECOND).await;
    assert_eq!((polls.len(), other.len()), (4, 1));
    assert_eq!(polls.last().causes, "requeued by polls");
    assert_eq!(polls.last().attempt, 1);
}

#[tokio::test(start_paused = true)]
async fn asking_to_be_called_again_forgets_failures() {
    let bench = Bench::new().await;
    let count = Arc::new(AtomicUsize::new(0));
    let calls = bench.on("mixed", move |_| {
        let call = count.fetch_add(1, Ordering::Relaxed);
        async move {
            match call {
                0 | 1 | 3 => Err("no".into()),
                2 => Ok(Outcome::requeue_after(SECOND)),
                _ => Ok(Outcome::done()),
            }
        }
    });
    bench.start().await;
    bench.create("a").await;
    time::sleep(10 * SECOND).await;
    let attempts: Vec<u32> = calls.all().iter().map(|call| call.attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_late_handler_is_called_alone_for_what_exists() {
    let bench = Bench::new().await;
    let early = bench.record("early");
    bench.start().await;
    for name in ["a", "b", "c"] {
        bench.create(name).await;
    }
    bench.delete("b").await;
    settle().await;
    let before = early.len();
    let late = bench.record("late");
    settle().await;
    assert_eq!(late.names(), ["a", "c"]);
    assert_eq!(late.last().causes, "late was registered late");
    assert_eq!(early.len(), before);
    bench.change("a", "1").await;
    settle().await;
    assert_eq!((early.len(), late.len()), (before + 1, 3));
}

#[tokio::test(start_paused = true)]
async fn a_deregistered_handler_is_never_called_again() {
    let bench = Bench::new().await;
    let (entered, leave) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let running = Arc::new(AtomicBool::new(false));
    let handler = {
        let (entered, leave, running) = (entered.clone(), leave.clone(), running.clone());
        move |_: Context<ConfigMap>| {
            let (entered, leave, running) = (entered.clone(), leave.clone(), running.clone());
            async move {
                running.store(true, Ordering::SeqCst);
                entered.notify_one();
                leave.notified().await;
                running.store(false, Ordering::SeqCst);
                Ok(Outcome::requeue_after(SECOND))
            }
        }
    };
    let registration = bench
        .config_maps
        .register_handler("leaves", handler)
        .unwrap();
    let stays = bench.record("stays");
    bench.start().await;
    bench.create("a").await;
    entered.notified().await;

    let mut deregister = std::pin::pin!(registration.deregister());
    assert!(
        time::timeout(10 * SECOND, deregister.as_mut())
            .await
            .is_err(),
        "a call is under way"
    );
    leave.notify_one();
    deregister.await;
    assert!(!running.load(Ordering::SeqCst));

    bench.change("a", "1").await;
    bench.create("b").await;
    time::sleep(60 * SECOND).await;
    assert!(!running.load(Ordering::SeqCst));
    assert_eq!(stays.names(), ["a", "a", "b"]);
    assert_eq!(
        bench.status().queue.delayed,
        0,
        "what it asked for is forgotten"
    );
    bench.record("leaves");
}
