//! Tests of reconcilers: when they are called, and the effects of their results.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{ObjectMeta, Patch, PatchParams};
use lariat_cache::Query;
use lariat_controller::{CallOutcome, HandlerError, HandlerOptions, Outcome, Relation};
use lariat_operator::{Operator, Reconcile, Reconciler, ReconcilerRegistration, Retry};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time;
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, SECOND, Widget, settle};

/// The calls, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, text: impl Into<String>) {
        self.0.lock().push(text.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Registers a reconciler of Widgets that writes down which it is called for.
pub(crate) fn logging(
    bench: &Bench,
    build: impl FnOnce(Reconciler<Widget>) -> Reconciler<Widget>,
) -> (Log, ReconcilerRegistration) {
    let log = Log::default();
    let seen = log.clone();
    let reconciler = build(bench.operator.reconciler("log", &bench.widgets));
    let registration = reconciler.register(move |cx: Reconcile<Widget>| {
        seen.add(cx.key().name());
        async { Ok(Outcome::done()) }
    });
    (log, registration.expect("registered"))
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_is_called_for_what_exists_and_not_for_what_goes() {
    let bench = Bench::new().await;
    let log = Log::default();
    let (seen, gone) = (log.clone(), log.clone());
    bench
        .operator
        .reconciler("sizes", &bench.widgets)
        .on_deleted(move |cx: Reconcile<Widget>| {
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
        .merge("a", json!({"metadata": {"finalizers": ["demo.dev/hold"]}}))
        .await;
    settle().await;
    log.take();
    bench.delete("a").await;
    settle().await;
    assert_eq!(log.take(), [""; 0], "it is being deleted");
    bench
        .merge("a", json!({"metadata": {"finalizers": null}}))
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

#[tokio::test(start_paused = true)]
async fn what_was_ignored_is_looked_at_again_after_the_period_too() {
    let bench = Bench::new().await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let registration = bench
        .operator
        .reconciler("often", &bench.widgets)
        .requeue_after(60 * SECOND)
        .register(move |_| {
            let is_first = counted.fetch_add(1, Ordering::Relaxed) == 0;
            async move {
                if is_first {
                    Err(HandlerError::ignore("not now"))
                } else {
                    Ok(Outcome::done())
                }
            }
        })
        .unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    time::sleep(61 * SECOND).await;
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    assert_eq!(registration.status().ended(CallOutcome::Ignored), 1);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_leaves_nothing_behind() {
    let bench = Bench::new().await;
    let (log, _) = logging(&bench, |reconciler| reconciler);
    let pods = bench.factory.for_object::<Pod>();
    let again = bench
        .operator
        .reconciler("log", &bench.widgets)
        .watches(&pods, Relation::label("widget"))
        .register(|_| async { Ok(Outcome::done()) });
    let error = again.unwrap_err().to_string();
    assert!(error.contains("\"log\""), "{error}");
    bench.start().await;
    bench.create("a", 1).await;
    // Unused kinds are kept for a while.
    time::sleep(600 * SECOND).await;
    assert_eq!(log.take(), ["a"]);
    let watched: Vec<String> = bench
        .factory
        .caches()
        .status()
        .iter()
        .map(|kind| kind.gvk.to_string())
        .collect();
    assert_eq!(watched, ["demo.dev/v1 Widget"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_terminal_or_ignored_is_not_asked_about() {
    let errors: [fn(&'static str) -> HandlerError; 2] =
        [HandlerError::terminal, HandlerError::ignore];
    for error in errors {
        let bench = Bench::new().await;
        let log = Log::default();
        let seen = log.clone();
        bench
            .operator
            .reconciler("fails", &bench.widgets)
            .on_error(|error, _| panic!("asked about {error}"))
            .register(move |cx: Reconcile<Widget>| {
                seen.add(cx.key().name());
                async move { Err(error("never")) }
            })
            .unwrap();
        bench.start().await;
        bench.create("a", 1).await;
        time::sleep(60 * SECOND).await;
        assert_eq!(log.take(), ["a"]);
    }
}

#[tokio::test(start_paused = true)]
async fn one_reconciler_of_a_kind_reports_in_a_condition() {
    let bench = Bench::new().await;
    let register = |name: &str| {
        let reconciler = bench.operator.reconciler(name, &bench.widgets);
        reconciler
            .report_errors("Ready")
            .register(|_| async { Ok(Outcome::done()) })
    };
    let first = register("one").unwrap();
    let error = register("two").unwrap_err().to_string();
    let expected = "reconciler \"two\" of demo.dev/v1 Widget cannot report errors in the condition \"Ready\": another \
                    reconciler does; give each a condition of its own";
    assert_eq!(error, expected);
    let rules = bench.operator.rules().await.unwrap().len();
    first.deregister().await;
    assert!(bench.operator.rules().await.unwrap().len() < rules);
    register("two").unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_whose_token_is_cancelled_leaves_nothing_behind() {
    for is_running in [true, false] {
        let bench = Bench::new().await;
        let pods = bench.factory.for_object::<Pod>();
        let register = |token: &CancellationToken| {
            let options = HandlerOptions::default().until(token.clone());
            let reconciler = bench
                .operator
                .reconciler("scoped", &bench.widgets)
                .watches(&pods, Relation::label("widget"))
                .report_errors("Ready")
                .options(options);
            reconciler.register(|_| async { Ok(Outcome::done()) })
        };
        if is_running {
            bench.start().await;
        }
        let tokens = [CancellationToken::new(), CancellationToken::new()];
        // The kept registration keeps nothing of it alive.
        let _first = register(&tokens[0]).unwrap();
        assert!(register(&tokens[1]).is_err());
        tokens[0].cancel();
        // At once, before any watch has noticed.
        let second =
            register(&tokens[1]).unwrap_or_else(|error| panic!("running: {is_running}: {error}"));
        tokens[1].cancel();
        if !is_running {
            bench.start().await;
        }
        // Unused kinds are kept for a while.
        time::sleep(600 * SECOND).await;
        let watches = bench.factory.caches().status();
        assert!(watches.is_empty(), "running: {is_running}: {watches:?}");
        assert!(bench.operator.rules().await.unwrap().is_empty());
        drop(second);
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_whose_name_cannot_be_written_has_no_reconcilers() {
    let bench = Bench::new().await;
    for (name, expected) in [
        ("x".repeat(128), None),
        ("x".repeat(129), Some("is longer than 128 bytes")),
        ("a\nb".to_owned(), Some("has unprintable characters")),
        (String::new(), Some("is empty")),
    ] {
        let operator = Operator::new(&name, &bench.factory);
        let reconciler = operator.reconciler("named", &bench.widgets);
        let registered = reconciler.register(|_| async { Ok(Outcome::done()) });
        let error = registered.err().map(|error| error.to_string());
        let expected = expected.map(|reason| {
            format!("operator {name:?} cannot have reconciler \"named\" of demo.dev/v1 Widget: its name {reason}")
        });
        assert_eq!(error, expected);
    }
    // The API server's message.
    let params = PatchParams::apply(&"x".repeat(129));
    bench.create("a", 1).await;
    let applied = json!({"apiVersion": "demo.dev/v1", "kind": "Widget", "metadata": {"name": "a"}});
    let refused = bench.api.patch("a", &params, &Patch::Apply(applied)).await;
    assert!(refused.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_that_creates_one_member_for_each_call_is_not_slowed() {
    let bench = Bench::new().await;
    let config_maps = bench.factory.for_object::<ConfigMap>();
    let members = config_maps.cache();
    let api = bench.operator.api::<ConfigMap>();
    bench
        .operator
        .reconciler("members", &bench.widgets)
        .owns(&config_maps)
        .register(move |cx: Reconcile<Widget>| {
            let api = api.clone();
            async move {
                let have = api.list(&Query::owned_by(cx.raw().uid())).await?.len();
                if (have as i64) < cx.object().spec.size {
                    let metadata = ObjectMeta {
                        name: Some(format!("{}-{have}", cx.key().name())),
                        namespace: cx.key().namespace().map(str::to_owned),
                        owner_references: Some(vec![cx.owner_reference()]),
                        ..ObjectMeta::default()
                    };
                    let member = ConfigMap {
                        metadata,
                        ..ConfigMap::default()
                    };
                    api.create(&member).await?;
                }
                Ok(Outcome::done())
            }
        })
        .unwrap();
    bench.start().await;
    bench.create("a", 60).await;
    time::sleep(SECOND).await;
    assert_eq!(members.store().len(), 60);
}
