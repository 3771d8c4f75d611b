//! Reconcilers: when they are called, and what comes of what they answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lariat_controller::{HandlerError, Outcome, Relation};
use lariat_operator::{Reconcile, Retry};
use parking_lot::Mutex;
use tokio::time;

use crate::bench::{Bench, SECOND, Widget, settle};

/// What was called, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, text: impl Into<String>) {
        self.0.lock().push(text.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_is_called_for_what_exists_and_not_for_what_goes() {
    let bench = Bench::new().await;
    let log = Log::default();
    let (seen, gone) = (log.clone(), log.clone());
    bench
        .operator
        .reconciler("sizes", &bench.widgets)
        .on_gone(move |cx: Reconcile<Widget>| {
            gone.add(format!("{} was {}", cx.key(), cx.object().spec.size));
            async { Ok(Outcome::done()) }
        })
        .register(move |cx: Reconcile<Widget>| {
            seen.add(format!("{} is {}", cx.key(), cx.object().spec.size));
            async { Ok(Outcome::done()) }
        })
        .unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    assert_eq!(log.take(), ["default/a is 1"]);
    bench
        .merge(
            "a",
            serde_json::json!({"metadata": {"finalizers": ["demo.dev/hold"]}}),
        )
        .await;
    settle().await;
    log.take();
    bench.delete("a").await;
    settle().await;
    assert_eq!(log.take(), [""; 0], "it is being deleted");
    bench
        .merge("a", serde_json::json!({"metadata": {"finalizers": null}}))
        .await;
    settle().await;
    assert_eq!(log.take(), ["default/a was 1"]);
}

#[tokio::test(start_paused = true)]
async fn two_reconcilers_of_a_kind_and_a_handler_share_one_watch() {
    let bench = Bench::new().await;
    let done = |_| async { Ok(Outcome::done()) };
    for name in ["one", "two"] {
        let reconciler = bench.operator.reconciler(name, &bench.widgets);
        reconciler
            .watches(&bench.widgets, Relation::owners())
            .register(done)
            .unwrap();
    }
    bench
        .widgets
        .register_handler("plain", |_| async { Ok(Outcome::done()) })
        .unwrap();
    bench.start().await;
    settle().await;
    assert_eq!(bench.cluster.journal().count("watch", "widgets"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_policy_decides_when_an_error_is_tried_again() {
    for (retry, expected) in [(Retry::after(10 * SECOND), 4), (Retry::never(), 1)] {
        let bench = Bench::new().await;
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        bench
            .operator
            .reconciler("fails", &bench.widgets)
            .on_error(move |error, cx| {
                assert_eq!(error.to_string(), format!("no {}", cx.key()));
                retry
            })
            .register(move |cx: Reconcile<Widget>| {
                counted.fetch_add(1, Ordering::Relaxed);
                async move { Err(HandlerError::from(format!("no {}", cx.key()))) }
            })
            .unwrap();
        bench.start().await;
        bench.create("a", 1).await;
        time::sleep(35 * SECOND).await;
        assert_eq!(calls.load(Ordering::Relaxed), expected, "{retry:?}");
        assert!(bench.widgets.status().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn what_went_well_is_looked_at_again_after_the_period() {
    let bench = Bench::new().await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    bench
        .operator
        .reconciler("often", &bench.widgets)
        .requeue_after(Duration::from_secs(60))
        .register(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            async { Ok(Outcome::done()) }
        })
        .unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    time::sleep(Duration::from_secs(601)).await;
    assert_eq!(calls.load(Ordering::Relaxed), 11);
}
