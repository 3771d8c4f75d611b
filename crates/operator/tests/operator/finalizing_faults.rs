//! Tests of finalizers with failing requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kube::api::{Patch, PatchParams, PostParams};
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_controller::{
    HandlerOptions, HandlerResult, Outcome, Predicate, SharedControllerFactory,
};
use lariat_lease::Lease;
use lariat_operator::{Finalizer, Operator, Reconcile, Reconciler};
use serde::Deserialize;
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, SECOND, Widget, WidgetSpec, settle};

const OURS: &str = "demo.dev/cleanup";

async fn done(_: Reconcile<Widget>) -> HandlerResult {
    Ok(Outcome::done())
}

fn on_patches(action: Action) -> Rule {
    Rule::new(action).verb("patch").resource("widgets")
}

fn unavailable() -> Action {
    Action::Refuse(Refusal::new(StatusCode::SERVICE_UNAVAILABLE))
}

/// A reconciler whose cleanups are counted.
fn counted(operator: &Operator, bench: &Bench) -> (Reconciler<Widget>, Arc<AtomicUsize>) {
    let widgets = operator.factory().for_object::<Widget>();
    assert_eq!(widgets.gvk(), bench.widgets.gvk());
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let reconciler =
        operator
            .reconciler("finalizes", &widgets)
            .finalizer(Finalizer::new(OURS), move |cx| {
                counted.fetch_add(1, Ordering::Relaxed);
                done(cx)
            });
    (reconciler, calls)
}

/// Starts such a reconciler, with an object that gets the finalizer.
async fn started() -> (Bench, Arc<AtomicUsize>) {
    let bench = Bench::new().await;
    let (reconciler, calls) = counted(&bench.operator, &bench);
    reconciler.register(done).expect("the name is free");
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    (bench, calls)
}

fn count(calls: &AtomicUsize) -> usize {
    calls.load(Ordering::Relaxed)
}

async fn has_ours(bench: &Bench) -> Option<bool> {
    let widget = bench.get("a").await?;
    let mut names = widget.metadata.finalizers.iter().flatten();
    Some(names.any(|name| name == OURS))
}

#[tokio::test(start_paused = true)]
async fn a_few_conflicts_are_over_at_once() {
    let bench = Bench::new().await;
    let (reconciler, calls) = counted(&bench.operator, &bench);
    reconciler.register(done).unwrap();
    let faults = bench.cluster.faults();
    faults.add(on_patches(Action::Conflict).times(4));
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    assert_eq!(has_ours(&bench).await, Some(true));
    let widget = bench.get("a").await.unwrap();
    assert!(widget.metadata.annotations.is_some(), "it was touched");
    faults.clear();
    faults.add(on_patches(Action::Conflict).times(4));
    bench.delete("a").await;
    settle().await;
    assert_eq!((has_ours(&bench).await, count(&calls)), (None, 1));
    let runs = bench.widgets.history();
    let errors = runs.iter().flat_map(|run| &run.calls);
    assert_eq!(errors.filter_map(|call| call.error.clone()).count(), 0);
}

#[tokio::test(start_paused = true)]
async fn cleanup_is_not_repeated_while_the_finalizer_cannot_be_removed() {
    for fault in [unavailable(), Action::NoAnswer] {
        let bench = Bench::new().await;
        let (reconciler, calls) = counted(&bench.operator, &bench);
        let options = HandlerOptions::default().timeout(SECOND);
        reconciler.options(options).register(done).unwrap();
        bench.start().await;
        bench.create("a", 1).await;
        settle().await;
        bench.cluster.faults().add(on_patches(fault.clone()));
        bench.delete("a").await;
        time::sleep(60 * SECOND).await;
        let state = (has_ours(&bench).await, count(&calls));
        assert_eq!(state, (Some(true), 1), "{fault:?}");
        bench.cluster.faults().clear();
        time::sleep(600 * SECOND).await;
        let state = (has_ours(&bench).await, count(&calls));
        assert_eq!(state, (None, 1), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn conflicts_without_end_are_errors_and_cleanup_is_not_repeated_for_them() {
    let (bench, calls) = started().await;
    // Each of them is a change by another client, which calls the reconciler.
    let storm = on_patches(Action::Conflict).times(23);
    bench.cluster.faults().add(storm);
    bench.delete("a").await;
    time::sleep(60 * SECOND).await;
    assert_eq!((has_ours(&bench).await, count(&calls)), (None, 1));
    let runs = bench.widgets.history();
    let mut failed = runs
        .iter()
        .flat_map(|run| &run.calls)
        .filter(|call| call.error.is_some());
    let first = failed.next().unwrap();
    assert!(first.is_conflict, "{first:?}");
    assert_eq!(failed.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn writes_whose_answers_are_lost_are_not_made_twice() {
    let bench = Bench::new().await;
    let (reconciler, calls) = counted(&bench.operator, &bench);
    reconciler.register(done).unwrap();
    let faults = bench.cluster.faults();
    faults.add(on_patches(Action::LoseReply).nth(1));
    bench.start().await;
    bench.create("a", 1).await;
    time::sleep(SECOND).await;
    let widget = bench.get("a").await.unwrap();
    assert_eq!(widget.metadata.finalizers.unwrap(), [OURS]);
    faults.clear();
    faults.add(on_patches(Action::LoseReply).nth(1));
    bench.delete("a").await;
    time::sleep(SECOND).await;
    assert_eq!((has_ours(&bench).await, count(&calls)), (None, 1));
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_cleanup_happens_again_and_the_finalizer_goes() {
    let (bench, first) = started().await;
    bench.cluster.faults().add(on_patches(unavailable()));
    bench.delete("a").await;
    time::sleep(5 * SECOND).await;
    assert_eq!((has_ours(&bench).await, count(&first)), (Some(true), 1));
    let _ = bench.operator.stop().await;
    bench.cluster.faults().clear();

    let factory = SharedControllerFactory::builder(bench.cluster.client()).build();
    let next = Operator::new("widgeteer", &factory);
    let (reconciler, second) = counted(&next, &bench);
    reconciler.register(done).unwrap();
    next.start(1).await.unwrap();
    settle().await;
    assert_eq!((has_ours(&bench).await, count(&second)), (None, 1));
    assert_eq!(count(&first), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cleanup_that_is_dropped_starts_again() {
    let bench = Bench::new().await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    bench
        .operator
        .reconciler("finalizes", &bench.widgets)
        .finalizer(Finalizer::new(OURS), move |_: Reconcile<Widget>| {
            let first = counted.fetch_add(1, Ordering::Relaxed) == 0;
            async move {
                if first {
                    std::future::pending::<()>().await;
                }
                Ok(Outcome::done())
            }
        })
        .options(HandlerOptions::default().timeout(5 * SECOND))
        .register(done)
        .unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    bench.delete("a").await;
    time::sleep(4 * SECOND).await;
    assert_eq!((has_ours(&bench).await, count(&calls)), (Some(true), 1));
    time::sleep(2 * SECOND).await;
    assert_eq!((has_ours(&bench).await, count(&calls)), (None, 2));
}

#[tokio::test(start_paused = true)]
async fn a_stop_lets_a_cleanup_finish() {
    let bench = Bench::new().await;
    bench
        .operator
        .reconciler("finalizes", &bench.widgets)
        .finalizer(Finalizer::new(OURS), |_: Reconcile<Widget>| async {
            time::sleep(SECOND).await;
            Ok(Outcome::done())
        })
        .register(done)
        .unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    bench.delete("a").await;
    settle().await;
    bench.operator.stop().await.unwrap();
    assert_eq!(has_ours(&bench).await, None);
}

#[tokio::test(start_paused = true)]
async fn the_object_that_takes_the_name_in_the_middle_keeps_its_finalizer() {
    let bench = Bench::new().await;
    let api = bench.api.clone();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    bench
        .operator
        .reconciler("finalizes", &bench.widgets)
        .finalizer(Finalizer::new(OURS), move |_: Reconcile<Widget>| {
            let (api, first) = (api.clone(), counted.fetch_add(1, Ordering::Relaxed) == 0);
            async move {
                if first {
                    // A client removes the finalizer by force, and creates another object of the name.
                    let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
                    api.patch("a", &PatchParams::default(), &none).await?;
                    let mut widget = Widget::new("a", WidgetSpec { size: 2 });
                    widget.metadata.finalizers = Some(vec![OURS.to_owned()]);
                    api.create(&PostParams::default(), &widget).await?;
                }
                Ok(Outcome::done())
            }
        })
        .register(done)
        .unwrap();
    bench.start().await;
    let old = bench.create("a", 1).await;
    settle().await;
    bench.delete("a").await;
    time::sleep(SECOND).await;
    let new = bench.get("a").await.unwrap();
    assert_ne!(new.metadata.uid, old.metadata.uid);
    assert_eq!((has_ours(&bench).await, count(&calls)), (Some(true), 1));
    // It is cleaned up separately.
    bench.delete("a").await;
    time::sleep(SECOND).await;
    assert_eq!((has_ours(&bench).await, count(&calls)), (None, 2));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_fit_is_not_let_go() {
    #[derive(Deserialize)]
    struct Strict {
        #[serde(rename = "spec")]
        _spec: StrictSpec,
    }
    #[derive(Deserialize)]
    struct StrictSpec {
        #[serde(rename = "size")]
        _size: u8,
    }
    let bench = Bench::new().await;
    let kind = bench.widgets.view::<Strict>();
    bench
        .operator
        .reconciler("strict", &kind)
        .finalizer(Finalizer::new(OURS), |_: Reconcile<Strict>| async {
            Ok(Outcome::done())
        })
        .register(|_: Reconcile<Strict>| async { Ok(Outcome::done()) })
        .unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    bench.resize("a", 1000).await;
    bench.delete("a").await;
    time::sleep(SECOND).await;
    assert_eq!(has_ours(&bench).await, Some(true));
    let runs = bench.widgets.history_of(&crate::bench::key("a"));
    let error = runs
        .last()
        .and_then(|run| run.calls[0].error.clone())
        .unwrap();
    assert!(error.contains("default/a cannot be decoded"), "{error}");
    bench.resize("a", 10).await;
    settle().await;
    assert_eq!(has_ours(&bench).await, None);
}

#[tokio::test(start_paused = true)]
async fn stripping_removes_a_finalizer_everywhere_and_goes_on_after_failures() {
    let bench = Bench::new().await;
    let of_both = json!({"metadata": {"finalizers": [OURS, "demo.dev/other"]}});
    for number in 0..502 {
        let name = format!("w{number}");
        let mut widget = Widget::new(&name, WidgetSpec { size: 1 });
        widget.metadata.finalizers = Some(vec![OURS.to_owned(), "demo.dev/other".to_owned()]);
        bench
            .api
            .create(&PostParams::default(), &widget)
            .await
            .unwrap();
    }
    bench.create("plain", 1).await;
    let faults = bench.cluster.faults();
    faults.add(on_patches(unavailable()).name("w7"));
    // The second page expires once, so that the list starts again.
    let expired = faults.add(
        Rule::new(Action::Expire)
            .verb("list")
            .resource("widgets")
            .nth(1),
    );
    let finalizer = Finalizer::<Widget>::new(OURS);
    let removal = finalizer.remove_from_all(&bench.widgets).await.unwrap();
    assert_eq!((faults.hits(expired), removal.removed()), (1, 501));
    let [(key, error)] = removal.failed() else {
        panic!("{removal:?}");
    };
    assert_eq!(key.as_str(), "default/w7");
    assert!(error.to_string().contains("default/w7"), "{error}");
    assert!(!removal.is_complete());
    faults.clear();
    // No watch is opened for it, and the second time there is little to do.
    assert!(bench.widgets.status().is_none());
    bench.merge("w1", of_both).await;
    let removal = finalizer.remove_from_all(&bench.widgets).await.unwrap();
    assert_eq!((removal.removed(), removal.is_complete()), (2, true));
    let left = bench.get("w1").await.unwrap().metadata.finalizers;
    assert_eq!(left.unwrap(), ["demo.dev/other"]);
}

#[tokio::test(start_paused = true)]
async fn removal_of_a_finalizer_needs_no_lease() {
    let (bench, _) = started().await;
    bench.operator.stop().await.expect("nothing is left");
    let elected = SharedControllerFactory::builder(bench.cluster.client())
        .leader_election(Lease::new("shop").identity("one"))
        .build();
    let finalizer = Finalizer::<Widget>::new(OURS);
    let removal = finalizer.remove_from_all(&elected.for_object()).await;
    let removal = removal.expect("it is served");
    assert_eq!((removal.removed(), removal.is_complete()), (1, true));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_a_backup_brings_back_to_life_is_cleaned_up_again() {
    let (bench, calls) = started().await;
    let backup = bench.cluster.snapshot();
    bench.cluster.faults().add(on_patches(unavailable()));
    bench.delete("a").await;
    time::sleep(5 * SECOND).await;
    assert_eq!((has_ours(&bench).await, count(&calls)), (Some(true), 1));
    bench.cluster.rewind_to(&backup).await.expect("restored");
    time::sleep(60 * SECOND).await;
    bench.cluster.faults().clear();
    bench.delete("a").await;
    time::sleep(600 * SECOND).await;
    assert_eq!((has_ours(&bench).await, count(&calls)), (None, 2));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_brought_back_to_life_during_its_cleanup_keeps_the_finalizer() {
    let bench = Bench::new().await;
    let widgets = bench.operator.reconciler("finalizes", &bench.widgets);
    let reconciler = widgets.finalizer(Finalizer::new(OURS), |cx: Reconcile<Widget>| async {
        time::sleep(10 * SECOND).await;
        done(cx).await
    });
    reconciler.register(done).unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    let version = bench.get("a").await.unwrap().metadata.resource_version;
    let backup = bench.cluster.snapshot();
    bench.delete("a").await;
    time::sleep(5 * SECOND).await;
    bench.cluster.rewind_to(&backup).await.expect("restored");
    time::sleep(60 * SECOND).await;
    let now = bench.get("a").await.expect("it lives again").metadata;
    assert_eq!(now.resource_version, version, "nothing was written");
    bench.delete("a").await;
    time::sleep(60 * SECOND).await;
    assert_eq!(has_ours(&bench).await, None);
}

/// By another client, or by a backup from before it was added.
#[tokio::test(start_paused = true)]
async fn finalizer_that_was_taken_off_is_added_again_whatever_the_predicate() {
    for is_restored in [false, true] {
        let bench = Bench::new().await;
        bench.create("a", 1).await;
        let backup = bench.cluster.snapshot();
        let (reconciler, calls) = counted(&bench.operator, &bench);
        let options = HandlerOptions::default().only(Predicate::generation_changed());
        let registered = reconciler.options(options).register(done);
        drop(registered.expect("the name is free"));
        bench.start().await;
        settle().await;
        assert_eq!(has_ours(&bench).await, Some(true));
        if is_restored {
            bench.cluster.rewind_to(&backup).await.expect("restored");
        } else {
            let nothing = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            let params = PatchParams::default();
            let patched = bench.api.patch("a", &params, &nothing);
            patched.await.expect("patched");
        }
        time::sleep(120 * SECOND).await;
        assert_eq!(has_ours(&bench).await, Some(true), "{is_restored}");
        bench.delete("a").await;
        settle().await;
        assert_eq!((has_ours(&bench).await, count(&calls)), (None, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn restored_state_is_reconciled_whatever_the_predicate() {
    let bench = Bench::new().await;
    bench.create("a", 1).await;
    let backup = bench.cluster.snapshot();
    let options = HandlerOptions::default().only(Predicate::generation_changed());
    let reconciler = bench.operator.reconciler("sizes", &bench.widgets);
    let registered = reconciler
        .options(options)
        .register(|cx: Reconcile<Widget>| async move {
            cx.set_status(&json!({"size": cx.object().spec.size}))
                .await?;
            Ok(Outcome::done())
        });
    drop(registered.expect("the name is free"));
    bench.start().await;
    settle().await;
    bench.cluster.rewind_to(&backup).await.expect("restored");
    time::sleep(120 * SECOND).await;
    let status = bench.get("a").await.expect("it exists").status;
    assert_eq!(status.and_then(|status| status.size), Some(1));
}
