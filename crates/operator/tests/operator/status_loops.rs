//! Tests of statuses written by failing attempts: no write leads to an early attempt.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_controller::{HandlerError, HandlerResult, Outcome};
use lariat_operator::{ConditionUpdate, Conditions, Reconcile};
use lariat_testing::Logs;
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, SECOND, Widget, WidgetStatus, settle};
use crate::status_reports::{ready, run, text, writes};
use crate::status_writing::merge_status;

/// How a reconciler reports progress in the reported condition.
#[derive(Debug, Clone, Copy)]
enum Way {
    Silent,
    Condition,
    Set,
    Update,
    Apply,
}

/// The number of calls from which a hot loop, in which paused time would never advance, is held.
const HELD: usize = 500;

async fn say(cx: &Reconcile<Widget>, way: Way) -> HandlerResult {
    let progressing = ConditionUpdate::is_false("Ready", "Progressing");
    let mut status = cx.object().status.clone().unwrap_or_default();
    Conditions::set(&mut status.conditions, &progressing)?;
    match way {
        Way::Silent => {}
        Way::Condition => drop(cx.set_condition(&progressing).await?),
        Way::Set => drop(cx.set_status(&status).await?),
        Way::Update => {
            let change = |status: &mut WidgetStatus| {
                let set = Conditions::set(&mut status.conditions, &progressing);
                set.expect("it is valid");
            };
            cx.update_status(change).await?;
        }
        Way::Apply => drop(cx.status().by_apply().set(&status).await?),
    }
    Ok(Outcome::done())
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_sets_the_reported_condition_and_fails_waits_for_its_backoff() {
    // A status that is written whole is written once before the call has failed.
    for (way, most) in [
        (Way::Silent, 1),
        (Way::Condition, 1),
        (Way::Set, 2),
        (Way::Update, 2),
        // And once more, because the report of the failure is in the status.
        (Way::Apply, 3),
    ] {
        let bench = Bench::new().await;
        let (calls, fails) = (
            Arc::new(AtomicUsize::new(0)),
            Arc::new(AtomicBool::new(true)),
        );
        let (counted, failing) = (Arc::clone(&calls), Arc::clone(&fails));
        bench
            .operator
            .reconciler("reports", &bench.widgets)
            .report_errors("Ready")
            .register(move |cx: Reconcile<Widget>| {
                let calls = counted.fetch_add(1, Ordering::Relaxed);
                let fails = failing.load(Ordering::Relaxed);
                async move {
                    if calls > HELD {
                        std::future::pending::<()>().await;
                    }
                    let said = say(&cx, way).await?;
                    if fails {
                        Err(HandlerError::from("no way"))
                    } else {
                        Ok(said)
                    }
                }
            })
            .unwrap();
        bench.start().await;
        bench.create("a", 1).await;
        time::sleep(20 * SECOND).await;
        // As many as without writes, and one more for each write.
        let attempts = calls.load(Ordering::Relaxed);
        assert!(attempts <= 16, "{way:?}: {attempts} attempts");
        assert!(writes(&bench) <= most, "{way:?}: {} writes", writes(&bench));
        let reported = text(ready(&bench).await);
        assert_eq!(
            reported, "False ReconcileError \"no way\" Some(1)",
            "{way:?}"
        );
        fails.store(false, Ordering::Relaxed);
        let before = writes(&bench);
        time::sleep(300 * SECOND).await;
        let reported = text(ready(&bench).await);
        let expected = match way {
            Way::Silent => "True Reconciled",
            _ => "False Progressing",
        };
        assert!(reported.starts_with(expected), "{way:?}: {reported}");
        assert!(writes(&bench) - before <= 1, "{way:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_reconcilers_that_report_and_set_the_same_status_agree() {
    let bench = Bench::new().await;
    let calls = Arc::new(AtomicUsize::new(0));
    for (name, condition) in [("one", "OneReady"), ("two", "TwoReady")] {
        let counted = Arc::clone(&calls);
        bench
            .operator
            .reconciler(name, &bench.widgets)
            .report_errors(condition)
            .register(move |cx: Reconcile<Widget>| {
                let calls = counted.fetch_add(1, Ordering::Relaxed);
                async move {
                    if calls > HELD {
                        std::future::pending::<()>().await;
                    }
                    let size = Some(cx.object().spec.size);
                    let status = WidgetStatus {
                        size,
                        ..WidgetStatus::default()
                    };
                    cx.set_status(&status).await?;
                    Ok(Outcome::done())
                }
            })
            .unwrap();
    }
    bench.start().await;
    bench.create("a", 1).await;
    time::sleep(60 * SECOND).await;
    bench.resize("a", 2).await;
    time::sleep(60 * SECOND).await;
    let status = bench.get("a").await.unwrap().status.unwrap();
    assert_eq!(status.size, Some(2));
    let mut kinds: Vec<_> = status.conditions.iter().map(|each| &*each.type_).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["OneReady", "TwoReady"]);
    // The size and two conditions, for each of the two states.
    assert!(writes(&bench) <= 6, "{} writes", writes(&bench));
}

#[tokio::test(start_paused = true)]
async fn a_reported_condition_that_goes_to_and_fro_within_a_call_is_written_as_it_ends() {
    let bench = Bench::new().await;
    let calls = AtomicUsize::new(0);
    bench
        .operator
        .reconciler("reports", &bench.widgets)
        .report_errors("Ready")
        .register(move |cx: Reconcile<Widget>| {
            let calls = calls.fetch_add(1, Ordering::Relaxed);
            async move {
                if calls > HELD {
                    std::future::pending::<()>().await;
                }
                let progressing = ConditionUpdate::is_false("Ready", "Progressing");
                let is = ConditionUpdate::is_true("Ready", "Is");
                assert!(cx.set_condition(&progressing).await?);
                let differs = cx.set_condition(&is).await?;
                assert_eq!(differs, cx.object().status.is_none());
                Ok(Outcome::requeue_after(SECOND))
            }
        })
        .unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    time::sleep(60 * SECOND).await;
    assert_eq!(text(ready(&bench).await), "True Is \"\" Some(1)");
    assert_eq!(writes(&bench), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_has_not_succeeded_before_what_it_says_in_the_condition_is_written() {
    let bench = Bench::new().await;
    let refusal = Refusal::new(StatusCode::INTERNAL_SERVER_ERROR);
    let rule = Rule::new(Action::Refuse(refusal)).subresource("status");
    bench.cluster.faults().add(rule.times(3));
    bench
        .operator
        .reconciler("reports", &bench.widgets)
        .report_errors("Ready")
        .register(|cx: Reconcile<Widget>| async move {
            let is = ConditionUpdate::is_true("Ready", "Is");
            cx.set_condition(&is).await?;
            Ok(Outcome::done())
        })
        .unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    time::sleep(60 * SECOND).await;
    assert_eq!(text(ready(&bench).await), "True Is \"\" Some(1)");
    assert_eq!(writes(&bench), 4);
}

#[tokio::test(start_paused = true)]
async fn members_a_type_does_not_know_stay_in_conditions_too() {
    let bench = Bench::new().await;
    bench.create("a", 1).await;
    let foreign = json!({"type": "Foreign", "status": "True", "reason": "Is", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 7});
    merge_status(&bench, json!({"conditions": [foreign]})).await;
    /// A type without all fields of the status.
    #[derive(Default, serde::Serialize, serde::Deserialize)]
    struct Short {
        conditions: Vec<Brief>,
    }
    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Brief {
        r#type: String,
        status: String,
        reason: String,
        message: String,
        last_transition_time: String,
    }
    let registered = bench.operator.reconciler("short", &bench.widgets).register(
        |cx: Reconcile<Widget>| async move {
            let change = |status: &mut Short| "False".clone_into(&mut status.conditions[0].status);
            cx.update_status(change).await?;
            Ok(Outcome::done())
        },
    );
    registered.unwrap();
    bench.start().await;
    settle().await;
    let status = bench.get("a").await.unwrap().status.unwrap();
    let condition = &status.conditions[0];
    assert_eq!(condition.status, "False");
    assert_eq!(condition.observed_generation, Some(7));
}

#[tokio::test(start_paused = true)]
async fn that_conditions_cannot_be_written_is_not_said_for_every_object() {
    let logs = Logs::begin();
    let bench = Bench::new().await;
    let refusal = Refusal::new(StatusCode::FORBIDDEN);
    let rule = Rule::new(Action::Refuse(refusal)).subresource("status");
    bench.cluster.faults().add(rule);
    run(&bench, |_| Ok(Outcome::done())).await;
    for number in 0..40 {
        bench.create(&format!("w{number}"), 1).await;
    }
    settle().await;
    let text = logs.text();
    let said = |level: &str| {
        let lines = text.lines().filter(|line| line.starts_with(level));
        lines
            .filter(|line| line.contains("cannot write a condition"))
            .count()
    };
    assert_eq!(said("DEBUG") + said("WARN"), 40);
    assert_eq!(said("WARN"), 6, "the 1st, 2nd, 4th, 8th, 16th and 32nd");
}
