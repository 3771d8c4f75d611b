//! Tests of the periods of reconcilers after failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lariat_controller::{HandlerError, HandlerOptions, HandlerResult, Outcome};
use lariat_operator::{Finalizer, Reconcile, Reconciler};
use lariat_queue::Exponential;
use parking_lot::Mutex;
use tokio::time::{self, Instant};

use crate::bench::{Bench, SECOND, Widget, key, settle};
use crate::reconciling::Log;

fn often(bench: &Bench) -> Reconciler<Widget> {
    let reconciler = bench.operator.reconciler("often", &bench.widgets);
    reconciler.requeue_after(60 * SECOND)
}

#[tokio::test(start_paused = true)]
async fn an_outage_that_outlasts_the_retries_does_not_end_the_period() {
    for ends in ["fails", "is terminal", "panics"] {
        let bench = Bench::new().await;
        let (calls, is_down) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicBool::new(true)),
        );
        let (counted, down) = (Arc::clone(&calls), Arc::clone(&is_down));
        let reconcile = move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            let down = down.load(Ordering::Relaxed);
            async move {
                match ends {
                    _ if !down => Ok(Outcome::done()),
                    "panics" => panic!("a defect"),
                    "fails" => Err(HandlerError::from("down")),
                    _ => Err(HandlerError::terminal("down")),
                }
            }
        };
        let options = HandlerOptions::default().max_retries(2);
        often(&bench).options(options).register(reconcile).unwrap();
        bench.start().await;
        bench.create("a", 1).await;
        time::sleep(61 * SECOND).await;
        // The first call and its retries, and all of that again: failures are forgotten.
        let expected = if ends == "is terminal" { 2 } else { 6 };
        assert_eq!(calls.load(Ordering::Relaxed), expected, "{ends}");
        let last = bench.widgets.history_of(&key("a")).pop().unwrap();
        assert_eq!(last.calls[0].requeue_after, Some(60 * SECOND), "{last}");
        is_down.store(false, Ordering::Relaxed);
        time::sleep(600 * SECOND).await;
        assert_eq!(calls.load(Ordering::Relaxed), expected + 10, "{ends}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_period_a_failure_for_good_waits_for_a_change() {
    let bench = Bench::new().await;
    let log = Log::default();
    let seen = log.clone();
    bench
        .operator
        .reconciler("once", &bench.widgets)
        // Only an object with the finalizer that is being deleted depends on nothing else.
        .finalizer(Finalizer::new("demo.dev/cleanup"), |_| async {
            Ok(Outcome::done())
        })
        .register(move |cx: Reconcile<Widget>| {
            seen.add(cx.key().name());
            async { Err(HandlerError::terminal("never")) }
        })
        .unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    log.take();
    time::sleep(36_000 * SECOND).await;
    assert_eq!(log.take(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn the_period_ends_with_the_object() {
    let bench = Bench::new().await;
    let log = Log::default();
    let (seen, gone) = (log.clone(), log.clone());
    often(&bench)
        .options(HandlerOptions::default().max_retries(0))
        .on_deleted(move |_| {
            gone.add("gone");
            async { Err(HandlerError::from("the bucket's API is down")) }
        })
        .register(move |_| {
            seen.add("is");
            async { Err(HandlerError::from("down")) }
        })
        .unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    time::sleep(61 * SECOND).await;
    assert_eq!(log.take(), ["is", "is"]);
    bench.delete("a").await;
    time::sleep(3600 * SECOND).await;
    assert_eq!(log.take(), ["gone"]);
}

#[tokio::test(start_paused = true)]
async fn a_cleanup_that_failed_finally_is_called_again() {
    type Ends = fn() -> HandlerResult;
    let ends: [Ends; 2] = [
        || Err(HandlerError::from("still in use")),
        || Err(HandlerError::terminal("still in use")),
    ];
    for (end, period) in ends
        .into_iter()
        .flat_map(|end| [(end, None), (end, Some(60))])
    {
        let bench = Bench::new().await;
        let is_used = Arc::new(AtomicBool::new(true));
        let used = Arc::clone(&is_used);
        let reconciler = bench.operator.reconciler("cleans", &bench.widgets);
        let reconciler = match period {
            Some(period) => reconciler.requeue_after(period * SECOND),
            None => reconciler,
        };
        reconciler
            .options(HandlerOptions::default().max_retries(3))
            .finalizer(Finalizer::new("demo.dev/cleanup"), move |_| {
                let result = if used.load(Ordering::Relaxed) {
                    end()
                } else {
                    Ok(Outcome::done())
                };
                async { result }
            })
            .register(|_| async { Ok(Outcome::done()) })
            .unwrap();
        bench.start().await;
        bench.create("a", 1).await;
        settle().await;
        bench.delete("a").await;
        time::sleep(10 * SECOND).await;
        is_used.store(false, Ordering::Relaxed);
        assert!(bench.get("a").await.is_some());
        time::sleep(period.unwrap_or(600) * SECOND).await;
        assert!(bench.get("a").await.is_none(), "{period:?}");
    }
}

/// Returns the times between the calls of a reconciler of one Widget, in seconds.
async fn pauses(
    build: impl Fn(Reconciler<Widget>) -> Reconciler<Widget>,
    result: impl Fn(usize) -> HandlerResult + Send + Sync + 'static,
) -> Vec<u64> {
    let bench = Bench::new().await;
    let calls: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let seen = Arc::clone(&calls);
    let reconciler = build(bench.operator.reconciler("often", &bench.widgets));
    let registered = reconciler.register(move |_| {
        let mut calls = seen.lock();
        calls.push(Instant::now());
        std::future::ready(result(calls.len()))
    });
    registered.expect("registered");
    bench.start().await;
    bench.create("a", 1).await;
    time::sleep(200 * SECOND).await;
    let calls = calls.lock();
    let pauses = calls.windows(2).map(|pair| pair[1] - pair[0]);
    pauses.map(|pause| pause.as_secs()).collect()
}

#[tokio::test(start_paused = true)]
async fn an_object_is_reconciled_at_least_every_period_however_the_last_call_ended() {
    let every = |reconciler: Reconciler<Widget>| reconciler.at_least_every(60 * SECOND);
    let slowly =
        || HandlerOptions::default().rate_limiter(|| Exponential::new(25 * SECOND, 3600 * SECOND));
    let done = pauses(every, |_| Ok(Outcome::done())).await;
    assert_eq!(done, [60, 60, 60]);
    let later = pauses(every, |_| Ok(Outcome::requeue_after(3600 * SECOND))).await;
    assert_eq!(later, [60, 60, 60]);
    let sooner = pauses(every, |_| Ok(Outcome::requeue_after(50 * SECOND))).await;
    assert_eq!(sooner, [50, 50, 50]);
    let ignored = pauses(every, |_| Err(HandlerError::ignore("not mine"))).await;
    assert_eq!(ignored, [60, 60, 60]);
    let terminal = pauses(every, |_| Err(HandlerError::terminal("never"))).await;
    assert_eq!(terminal, [60, 60, 60]);
    let delayed = pauses(every, |_| {
        Err(HandlerError::from("later").retry_after(3600 * SECOND))
    })
    .await;
    assert_eq!(delayed, [60, 60, 60]);
    // The backoff grows from 25 seconds by 50 to the period.
    let failed = |reconciler| every(reconciler).options(slowly());
    let fails = pauses(failed, |_| Err(HandlerError::from("down"))).await;
    assert_eq!(fails, [25, 50, 60, 60]);
    let exhausted = |reconciler| every(reconciler).options(slowly().max_retries(1));
    let fails = pauses(exhausted, |_| Err(HandlerError::from("down"))).await;
    assert_eq!(fails, [25, 60, 25, 60, 25]);
    let usual = |reconciler| every(reconciler).requeue_after(40 * SECOND);
    let done = pauses(usual, |_| Ok(Outcome::done())).await;
    assert_eq!(done, [40, 40, 40, 40]);
    let own = |reconciler: Reconciler<Widget>| {
        reconciler.at_least_every_with(|widget| match widget.spec.size {
            1 => Some(90 * SECOND),
            _ => None,
        })
    };
    assert_eq!(pauses(own, |_| Ok(Outcome::done())).await, [90, 90]);
    let none = |reconciler: Reconciler<Widget>| reconciler.at_least_every(Duration::ZERO);
    assert_eq!(pauses(none, |_| Ok(Outcome::done())).await, [0_u64; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_cleanup_is_called_at_least_every_period_until_the_finalizer_is_removed() {
    let results: [fn() -> HandlerResult; 2] = [
        || Ok(Outcome::requeue_after(3600 * SECOND)),
        || Err(HandlerError::ignore("not yet")),
    ];
    for result in results {
        let bench = Bench::new().await;
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let cleanup = move |_| {
            let count = counted.fetch_add(1, Ordering::Relaxed);
            let result = match count {
                0..=2 => result(),
                _ => Ok(Outcome::done()),
            };
            async move { result }
        };
        let reconciler = bench.operator.reconciler("often", &bench.widgets);
        let registered = reconciler
            .at_least_every(60 * SECOND)
            .finalizer(Finalizer::new("demo.dev/cleanup"), cleanup)
            .register(|_| async { Ok(Outcome::done()) });
        registered.expect("registered");
        bench.start().await;
        bench.create("a", 1).await;
        settle().await;
        bench.delete("a").await;
        time::sleep(179 * SECOND).await;
        assert_eq!(calls.load(Ordering::Relaxed), 3);
        time::sleep(2 * SECOND).await;
        assert_eq!(calls.load(Ordering::Relaxed), 4);
        assert!(bench.get("a").await.is_none());
    }
}
