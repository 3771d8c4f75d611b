//! Objects that a reconciler has given up: undecodable ones, and refused writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResource;
use kube::api::{Api, PostParams};
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_controller::{HandlerError, HandlerResult, HandlerStatus, Outcome, SharedController};
use lariat_operator::{Finalizer, Reconcile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, SECOND, Widget, WidgetStatus, settle};
use crate::status_reports::{ready, text, writes};

/// The spec of a Widget for a program that knows small sizes only.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "demo.dev",
    version = "v1",
    kind = "Widget",
    root = "Small",
    namespaced
)]
#[kube(status = "WidgetStatus", derive = "Default", derive = "PartialEq")]
struct SmallSpec {
    size: u8,
}

/// A size that a program of small Widgets cannot decode.
const LARGE: i64 = 300;

fn small(bench: &Bench) -> SharedController<Small> {
    bench.factory.for_object()
}

fn handler(bench: &Bench) -> HandlerStatus {
    let status = bench.widgets.status().expect("in use");
    status.handlers.into_iter().next().expect("registered")
}

async fn warnings(bench: &Bench) -> Vec<String> {
    bench.operator.events().flush().await;
    let events = bench.events().await.into_iter();
    let warnings = events.filter(|event| event.type_.as_deref() == Some("Warning"));
    warnings
        .map(|event| {
            let (reason, note) = (event.reason, event.message);
            format!(
                "{}: {}",
                reason.unwrap_or_default(),
                note.unwrap_or_default()
            )
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn undecodable_object_gets_its_condition_and_one_event() {
    let bench = Bench::new().await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    bench
        .operator
        .reconciler("small", &small(&bench))
        .report_errors("Ready")
        .register(move |_: Reconcile<Small>| {
            counted.fetch_add(1, Ordering::Relaxed);
            async { HandlerResult::Ok(Outcome::done()) }
        })
        .expect("registered");
    bench.start().await;
    bench.create("a", LARGE).await;
    settle().await;
    let reported = text(ready(&bench).await);
    assert!(reported.starts_with("False ReconcileError"), "{reported}");
    assert!(
        reported.contains("spec.size") && reported.ends_with("Some(1)"),
        "{reported}"
    );
    assert_eq!((handler(&bench).calls, handler(&bench).given_up), (1, 1));
    // Another version that does not decode either.
    bench
        .merge("a", json!({"metadata": {"labels": {"color": "red"}}}))
        .await;
    settle().await;
    assert_eq!((handler(&bench).calls, writes(&bench)), (2, 1));
    let warned = warnings(&bench).await;
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(
        warned[0].starts_with("Unreadable: ") && warned[0].contains("spec.size"),
        "{warned:?}"
    );
    assert_eq!(calls.load(Ordering::Relaxed), 0);

    bench.resize("a", 5).await;
    settle().await;
    assert_eq!(text(ready(&bench).await), "True Reconciled \"\" Some(2)");
    assert_eq!(
        (calls.load(Ordering::Relaxed), handler(&bench).given_up),
        (1, 0)
    );
    bench.resize("a", LARGE).await;
    settle().await;
    assert_eq!(warnings(&bench).await.len(), 2, "it has failed anew");
}

#[tokio::test(start_paused = true)]
async fn paused_object_that_does_not_decode_is_reported_as_paused() {
    const PAUSED: &str = "demo.dev/paused";
    let bench = Bench::new().await;
    bench
        .operator
        .reconciler("small", &small(&bench))
        .report_errors("Ready")
        .paused_by(PAUSED)
        .register(|_: Reconcile<Small>| async { HandlerResult::Ok(Outcome::done()) })
        .expect("registered");
    bench.create("a", LARGE).await;
    bench
        .merge("a", json!({"metadata": {"annotations": {PAUSED: "true"}}}))
        .await;
    bench.start().await;
    settle().await;
    let reported = text(ready(&bench).await);
    assert!(reported.starts_with("Unknown Paused"), "{reported}");
    assert_eq!((handler(&bench).failures, handler(&bench).given_up), (0, 0));
    bench
        .merge("a", json!({"metadata": {"annotations": {PAUSED: null}}}))
        .await;
    settle().await;
    assert_eq!(handler(&bench).given_up, 1);
}

#[tokio::test(start_paused = true)]
async fn reported_condition_does_not_call_the_reconciler_again() {
    for (size, reported) in [(1, "False ReconcileError"), (2, "True Reconciled")] {
        let bench = Bench::new().await;
        bench
            .operator
            .reconciler("reports", &bench.widgets)
            .report_errors("Ready")
            .register(|cx: Reconcile<Widget>| async move {
                match cx.object().spec.size {
                    1 => Err(HandlerError::terminal("no way")),
                    _ => Ok(Outcome::done()),
                }
            })
            .expect("registered");
        // Another reconciler of the kind is called for the change.
        bench
            .operator
            .reconciler("watches", &bench.widgets)
            .register(|_: Reconcile<Widget>| async { HandlerResult::Ok(Outcome::done()) })
            .expect("registered");
        bench.start().await;
        bench.create("a", size).await;
        time::sleep(10 * SECOND).await;
        assert!(text(ready(&bench).await).starts_with(reported));
        let handlers = bench.widgets.status().expect("in use").handlers;
        let calls: Vec<u64> = handlers.iter().map(|handler| handler.calls).collect();
        assert_eq!((&calls[..], writes(&bench)), (&[1, 2][..], 1), "{reported}");
    }
}

#[tokio::test(start_paused = true)]
async fn change_that_a_reported_condition_overtakes_is_noticed() {
    let bench = Bench::new().await;
    let seen = Arc::new(AtomicUsize::new(0));
    let (noted, api) = (Arc::clone(&seen), bench.api.clone());
    bench
        .operator
        .reconciler("reports", &bench.widgets)
        .report_errors("Ready")
        .register(move |cx: Reconcile<Widget>| {
            let (noted, api) = (Arc::clone(&noted), api.clone());
            async move {
                let size = cx.object().spec.size;
                noted.store(usize::try_from(size).unwrap_or_default(), Ordering::Relaxed);
                if size == 1 {
                    // Another client changes the spec while the call runs, and its condition conflicts.
                    let patch = kube::api::Patch::Merge(json!({"spec": {"size": 2}}));
                    api.patch("a", &kube::api::PatchParams::default(), &patch)
                        .await?;
                }
                Err::<Outcome, _>(HandlerError::terminal("no way"))
            }
        })
        .expect("registered");
    bench.start().await;
    bench.create("a", 1).await;
    time::sleep(10 * SECOND).await;
    assert_eq!(seen.load(Ordering::Relaxed), 2);
    assert_eq!(
        text(ready(&bench).await),
        "False ReconcileError \"no way\" Some(2)"
    );
}

/// Creates a ConfigMap, which is refused as too large.
async fn create_child(cx: &Reconcile<Widget>) -> HandlerResult {
    let api: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
    let child = json!({"metadata": {"name": cx.key().name()}});
    let child: ConfigMap = serde_json::from_value(child)?;
    api.create(&PostParams::default(), &child).await?;
    Ok(Outcome::done())
}

fn refuse(bench: &Bench, rule: impl Fn(Rule) -> Rule) {
    let refusal = Refusal::new(StatusCode::PAYLOAD_TOO_LARGE);
    bench
        .cluster
        .faults()
        .add(rule(Rule::new(Action::Refuse(refusal))));
}

#[tokio::test(start_paused = true)]
async fn refused_child_keeps_the_schedule_of_its_owner() {
    for (is_every, calls) in [(false, 11), (true, 11)] {
        let bench = Bench::new().await;
        refuse(&bench, |rule| rule.resource("configmaps"));
        let reconciler = bench.operator.reconciler("every-minute", &bench.widgets);
        let reconciler = if is_every {
            reconciler.at_least_every(60 * SECOND)
        } else {
            reconciler.requeue_after(60 * SECOND)
        };
        reconciler
            .register(|cx: Reconcile<Widget>| async move { create_child(&cx).await })
            .expect("registered");
        bench.start().await;
        bench.create("a", 1).await;
        time::sleep(610 * SECOND).await;
        let handler = handler(&bench);
        assert_eq!(
            (handler.calls, handler.failing, handler.given_up),
            (calls, 1, 0)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn status_that_is_too_large_is_given_up() {
    let bench = Bench::new().await;
    refuse(&bench, |rule| {
        rule.resource("widgets").subresource("status")
    });
    bench
        .operator
        .reconciler("writes", &bench.widgets)
        .writes_status()
        .register(|cx: Reconcile<Widget>| async move {
            let status = WidgetStatus {
                size: Some(1),
                ..WidgetStatus::default()
            };
            cx.set_status(&status).await?;
            Ok(Outcome::done())
        })
        .expect("registered");
    bench.start().await;
    bench.create("a", 1).await;
    time::sleep(600 * SECOND).await;
    let handler = handler(&bench);
    assert_eq!((handler.calls, handler.given_up, writes(&bench)), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn deletion_with_a_finalizer_ends_or_retries_a_given_up_object() {
    let bench = Bench::new().await;
    let cleanups = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&cleanups);
    let clean_up = move |_: Reconcile<Widget>| {
        let cleanups = counted.fetch_add(1, Ordering::Relaxed);
        async move {
            if cleanups == 0 {
                return Err(HandlerError::terminal("the volume is in use"));
            }
            Ok(Outcome::done())
        }
    };
    bench
        .operator
        .reconciler("cleans", &bench.widgets)
        .finalizer(Finalizer::new("demo.dev/volume"), clean_up)
        .register(|_: Reconcile<Widget>| async { Err::<Outcome, _>(HandlerError::terminal("no")) })
        .expect("registered");
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    assert_eq!((handler(&bench).failing, handler(&bench).given_up), (0, 1));
    bench.delete("a").await;
    settle().await;
    // Its cleanup is called again, so it is not given up.
    assert_eq!((handler(&bench).failing, handler(&bench).given_up), (1, 0));
    time::sleep(700 * SECOND).await;
    assert!(bench.get("a").await.is_none());
    assert_eq!((handler(&bench).failing, handler(&bench).given_up), (0, 0));
}
