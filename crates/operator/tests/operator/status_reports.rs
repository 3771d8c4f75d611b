//! Tests of failures and successes reported in a condition.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_controller::{HandlerError, HandlerResult, Ignore, Outcome};
use lariat_operator::{ConditionUpdate, Conditions, Finalizer, Reconcile};
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, SECOND, Widget, key, settle};

/// Registers a reconciler that reports errors, and starts.
pub(crate) async fn run<F>(bench: &Bench, reconcile: F)
where
    F: Fn(&Reconcile<Widget>) -> HandlerResult + Send + Sync + 'static,
{
    let registered = bench
        .operator
        .reconciler("reports", &bench.widgets)
        .report_errors("Ready")
        .register(move |cx| std::future::ready(reconcile(&cx)));
    registered.expect("registered");
    bench.start().await;
}

pub(crate) fn writes(bench: &Bench) -> usize {
    let all = bench.cluster.journal().select().verb("patch");
    all.subresource("status").count()
}

pub(crate) async fn ready(bench: &Bench) -> Option<Condition> {
    let status = bench.get("a").await?.status?;
    Conditions::find(&status.conditions, "Ready").cloned()
}

pub(crate) fn text(condition: Option<Condition>) -> String {
    let Some(condition) = condition else {
        return "none".to_owned();
    };
    let observed = condition.observed_generation;
    format!(
        "{} {} {:?} {observed:?}",
        condition.status, condition.reason, condition.message
    )
}

#[tokio::test(start_paused = true)]
async fn failures_and_success_are_reported_once() {
    let bench = Bench::new().await;
    run(&bench, |cx| match cx.object().spec.size {
        1 => Err(HandlerError::from("no\nway")),
        2 => Err(HandlerError::terminal("never")),
        3 => Err(Ignore::because("not mine").into()),
        _ => Ok(Outcome::requeue_after(SECOND)),
    })
    .await;
    bench.create("a", 1).await;
    time::sleep(300 * SECOND).await;
    assert_eq!(
        text(ready(&bench).await),
        "False ReconcileError \"no way\" Some(1)"
    );
    assert_eq!(writes(&bench), 1);
    for (size, expected) in [
        (2, "False ReconcileError \"never\" Some(2)"),
        (3, "False ReconcileError \"never\" Some(2)"),
        (4, "True Reconciled \"\" Some(4)"),
    ] {
        bench.resize("a", size).await;
        time::sleep(300 * SECOND).await;
        assert_eq!(text(ready(&bench).await), expected);
    }
    assert_eq!(writes(&bench), 3);
}

#[tokio::test(start_paused = true)]
async fn a_text_that_is_another_each_time_makes_no_hot_loop() {
    for terminal in [false, true] {
        let bench = Bench::new().await;
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        run(&bench, move |_| {
            let call = counted.fetch_add(1, Ordering::Relaxed);
            let error = HandlerError::from(format!("failure {call}"));
            Err(if terminal {
                error.into_terminal()
            } else {
                error
            })
        })
        .await;
        bench.create("a", 1).await;
        time::sleep(600 * SECOND).await;
        let calls = calls.load(Ordering::Relaxed);
        let most = if terminal { (2, 1) } else { (60, 11) };
        assert!(
            calls <= most.0 && writes(&bench) <= most.1,
            "{calls} {}",
            writes(&bench)
        );
        let reported = ready(&bench).await.unwrap();
        assert!(
            terminal || reported.message != "failure 0",
            "it is renewed now and then"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_reconciler_says_itself_is_believed() {
    let bench = Bench::new().await;
    let registered = bench
        .operator
        .reconciler("reports", &bench.widgets)
        .report_errors("Ready")
        .register(|cx: Reconcile<Widget>| async move {
            let waiting = ConditionUpdate::is_false("Ready", "Waiting");
            match cx.object().spec.size {
                1 => drop(cx.set_condition(&waiting).await?),
                2 => {
                    let mut status = cx.object().status.clone().unwrap_or_default();
                    Conditions::set(&mut status.conditions, &waiting)?;
                    cx.set_status(&status).await?;
                }
                3 => return Err("fails".into()),
                // The present values are copied with the changes.
                size => {
                    let mut status = cx.object().status.clone().unwrap_or_default();
                    status.size = Some(size);
                    cx.set_status(&status).await?;
                }
            }
            Ok(Outcome::requeue_after(SECOND))
        });
    registered.unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    for (size, expected, most) in [
        (1, "False Waiting \"\" Some(1)", 1),
        (2, "False Waiting \"\" Some(1)", 1),
        (3, "False ReconcileError \"fails\" Some(3)", 1),
        (4, "True Reconciled \"\" Some(4)", 2),
    ] {
        let before = writes(&bench);
        if size > 1 {
            bench.resize("a", size).await;
        }
        time::sleep(20 * SECOND).await;
        assert_eq!(text(ready(&bench).await), expected);
        assert!(writes(&bench) - before <= most, "{size}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_report_that_cannot_be_written_hides_nothing() {
    let bench = Bench::new().await;
    let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE);
    let rule = Rule::new(Action::Refuse(refusal)).subresource("status");
    bench.cluster.faults().add(rule);
    run(&bench, |cx| match cx.object().spec.size {
        1 => Err("the error itself".into()),
        _ => Ok(Outcome::done()),
    })
    .await;
    bench.create("a", 1).await;
    settle().await;
    let last = bench.widgets.history_of(&key("a")).pop().unwrap();
    assert_eq!(last.calls[0].error.as_deref(), Some("the error itself"));
    bench.resize("a", 2).await;
    settle().await;
    let last = bench.widgets.history_of(&key("a")).pop().unwrap();
    assert_eq!(last.calls[0].error, None);
}

#[tokio::test(start_paused = true)]
async fn a_cleanup_that_fails_is_reported_and_one_that_is_done_is_not() {
    let bench = Bench::new().await;
    let calls = Arc::new(AtomicUsize::new(0));
    let registered = bench
        .operator
        .reconciler("reports", &bench.widgets)
        .report_errors("Ready")
        .finalizer(Finalizer::new("demo.dev/cleanup"), move |_| {
            let answer = match calls.fetch_add(1, Ordering::Relaxed) {
                0..8 => Err("still in use".into()),
                _ => Ok(Outcome::done()),
            };
            std::future::ready(answer)
        })
        .register(|_| std::future::ready(Ok(Outcome::done())));
    registered.unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    assert_eq!(text(ready(&bench).await), "True Reconciled \"\" Some(1)");
    bench.delete("a").await;
    settle().await;
    let reported = text(ready(&bench).await);
    assert!(
        reported.starts_with("False ReconcileError \"still in use\""),
        "{reported}"
    );
    time::sleep(60 * SECOND).await;
    assert!(bench.get("a").await.is_none());
    assert_eq!(writes(&bench), 2);
}

#[tokio::test(start_paused = true)]
async fn cleanup_that_waits_after_failure_withdraws_its_report() {
    let bench = Bench::new().await;
    let calls = Arc::new(AtomicUsize::new(0));
    let registered = bench
        .operator
        .reconciler("reports", &bench.widgets)
        .report_errors("Ready")
        .finalizer(Finalizer::new("demo.dev/cleanup"), move |_| {
            let answer = match calls.fetch_add(1, Ordering::Relaxed) {
                0..4 => Err("still in use".into()),
                _ => Ok(Outcome::requeue_after(5 * SECOND)),
            };
            std::future::ready(answer)
        })
        .register(|_| std::future::ready(Ok(Outcome::done())));
    registered.unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    bench.delete("a").await;
    time::sleep(120 * SECOND).await;
    assert!(text(ready(&bench).await).starts_with("True Reconciled"));
    let before = writes(&bench);
    time::sleep(60 * SECOND).await;
    assert_eq!(writes(&bench), before, "waiting on is no news");
}

#[tokio::test(start_paused = true)]
async fn a_condition_of_no_type_is_refused_at_once() {
    let bench = Bench::new().await;
    let reconciler = bench.operator.reconciler("reports", &bench.widgets);
    let registered = reconciler
        .report_errors("not ready")
        .register(|_| std::future::ready(Ok(Outcome::done())));
    let error = registered.unwrap_err();
    assert_eq!(
        error.to_string(),
        "reconciler \"reports\" of demo.dev/v1 Widget cannot report errors: \"not ready\" is not the type of a \
         condition; write it like \"Ready\" or \"example.com/Ready\""
    );
    assert_eq!(format!("{error:?}"), error.to_string(), "each thing once");
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_set_whole_keeps_what_is_reported_of_errors() {
    let bench = Bench::new().await;
    bench
        .operator
        .reconciler("reports", &bench.widgets)
        .report_errors("Ready")
        .register(|cx: Reconcile<Widget>| async move {
            // Without conditions.
            cx.set_status(&json!({"size": cx.object().spec.size}))
                .await?;
            Ok(Outcome::done())
        })
        .unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    time::sleep(120 * SECOND).await;
    assert_eq!(writes(&bench), 2, "the size, and the condition");
    assert_eq!(text(ready(&bench).await), "True Reconciled \"\" Some(1)");
    bench.resize("a", 2).await;
    time::sleep(120 * SECOND).await;
    assert_eq!(writes(&bench), 4);
    assert_eq!(text(ready(&bench).await), "True Reconciled \"\" Some(2)");
}

/// Others' finalizers keep the object.
#[tokio::test(start_paused = true)]
async fn condition_of_a_deleted_object_that_is_reconciled_follows_its_calls() {
    let bench = Bench::new().await;
    let calls = Arc::new(AtomicUsize::new(0));
    let registered = bench
        .operator
        .reconciler("reports", &bench.widgets)
        .with_deleting()
        .report_errors("Ready")
        .register(move |cx: Reconcile<Widget>| {
            let number = calls.fetch_add(1, Ordering::Relaxed);
            async move {
                match number {
                    1 => Err("still in use".into()),
                    // After the object's size has changed.
                    _ if cx.object().spec.size == 2 => {
                        let update = ConditionUpdate::is_false("Ready", "Terminating");
                        cx.set_condition(&update).await?;
                        Ok(Outcome::done())
                    }
                    _ => Ok(Outcome::done()),
                }
            }
        });
    registered.unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    let others = json!({"metadata": {"finalizers": ["other.dev/keeps"]}});
    bench.merge("a", others).await;
    settle().await;
    assert!(text(ready(&bench).await).starts_with("True Reconciled"));
    bench.delete("a").await;
    time::sleep(10 * SECOND).await;
    assert!(text(ready(&bench).await).starts_with("True Reconciled"));
    bench.resize("a", 2).await;
    time::sleep(10 * SECOND).await;
    assert!(text(ready(&bench).await).starts_with("False Terminating"));
}

#[tokio::test(start_paused = true)]
async fn cleanup_that_goes_on_after_a_pause_withdraws_its_report() {
    let bench = Bench::new().await;
    let registered = bench
        .operator
        .reconciler("reports", &bench.widgets)
        .paused_by("demo.dev/paused")
        .report_errors("Ready")
        .finalizer(Finalizer::new("demo.dev/cleanup"), |_| {
            std::future::ready(Ok(Outcome::requeue_after(5 * SECOND)))
        })
        .register(|_| std::future::ready(Ok(Outcome::done())));
    registered.unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    let pause =
        |value: Option<&str>| json!({"metadata": {"annotations": {"demo.dev/paused": value}}});
    bench.merge("a", pause(Some("true"))).await;
    settle().await;
    bench.delete("a").await;
    settle().await;
    assert!(text(ready(&bench).await).starts_with("Unknown Paused"));
    bench.merge("a", pause(None)).await;
    time::sleep(60 * SECOND).await;
    assert!(text(ready(&bench).await).starts_with("True Reconciled"));
    let before = writes(&bench);
    time::sleep(60 * SECOND).await;
    assert_eq!(writes(&bench), before, "waiting on is no news");
}
