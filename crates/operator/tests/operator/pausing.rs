//! Tests of objects that an annotation pauses, and of objects that are being deleted.

use lariat_controller::{CallOutcome, HandlerOptions, Outcome, Predicate};
use lariat_operator::{Finalizer, Reconcile, Reconciler, ReconcilerError};
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, SECOND, Widget, key, settle};
use crate::reconciling::Log;
use crate::status_reports::{ready, text};

const PAUSED: &str = "demo.dev/paused";

fn reconciler(bench: &Bench) -> Reconciler<Widget> {
    bench.operator.reconciler("sizes", &bench.widgets)
}

async fn annotate(bench: &Bench, value: Option<&str>) {
    let patch = json!({"metadata": {"annotations": {PAUSED: value}}});
    bench.merge("a", patch).await;
    settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_object_is_not_reconciled_until_the_annotation_is_removed() {
    let bench = Bench::new().await;
    let log = Log::default();
    let seen = log.clone();
    let reconciler = reconciler(&bench)
        .paused_by(PAUSED)
        .report_errors("Ready")
        // Neither the annotation nor its removal changes the generation.
        .options(HandlerOptions::default().only(Predicate::generation_changed()))
        .requeue_after(60 * SECOND);
    let registered = reconciler.register(move |cx: Reconcile<Widget>| {
        seen.add(format!("size {}", cx.object().spec.size));
        async { Ok(Outcome::done()) }
    });
    registered.expect("registered");
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    assert_eq!(log.take(), ["size 1"]);
    annotate(&bench, Some("true")).await;
    let expected = r#"Unknown Paused "paused by the annotation demo.dev/paused" Some(1)"#;
    assert_eq!(text(ready(&bench).await), expected);
    bench.resize("a", 2).await;
    time::sleep(600 * SECOND).await;
    assert_eq!(log.take(), [""; 0]);
    let last = bench.widgets.history_of(&key("a")).pop().expect("a run");
    let call = &last.calls[0];
    assert_eq!(call.outcome, CallOutcome::Ignored);
    let why = call.error.as_deref();
    assert_eq!(why, Some("paused by the annotation demo.dev/paused"));
    annotate(&bench, None).await;
    assert_eq!(log.take(), ["size 2"]);
    assert_eq!(text(ready(&bench).await), r#"True Reconciled "" Some(2)"#);
    annotate(&bench, Some("false")).await;
    bench.resize("a", 3).await;
    settle().await;
    assert_eq!(log.take(), ["size 3"]);
}

#[tokio::test(start_paused = true)]
async fn a_paused_object_that_is_deleted_waits_for_its_cleanup() {
    let bench = Bench::new().await;
    let log = Log::default();
    let seen = log.clone();
    let finalizer = Finalizer::new("demo.dev/cleanup");
    let reconciler = reconciler(&bench)
        .paused_by(PAUSED)
        .finalizer(finalizer, move |_| {
            seen.add("cleaned up");
            async { Ok(Outcome::done()) }
        });
    let registered = reconciler.register(|_| async { Ok(Outcome::done()) });
    registered.expect("registered");
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    annotate(&bench, Some("")).await;
    bench.delete("a").await;
    time::sleep(36_000 * SECOND).await;
    assert_eq!(log.take(), [""; 0]);
    assert!(bench.get("a").await.is_some());
    annotate(&bench, None).await;
    assert_eq!(log.take(), ["cleaned up"]);
    assert!(bench.get("a").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_can_begin_paused() {
    let bench = Bench::new().await;
    let log = Log::default();
    let seen = log.clone();
    let options = HandlerOptions::default().paused();
    let registered = reconciler(&bench).options(options).register(move |cx| {
        seen.add(cx.key().name());
        async { Ok(Outcome::done()) }
    });
    registered.expect("registered");
    bench.create("a", 1).await;
    bench.start().await;
    bench.create("b", 1).await;
    settle().await;
    assert_eq!(log.take(), [""; 0]);
    let status = bench.widgets.status().expect("in use");
    assert!(status.handlers[0].is_paused);
    assert!(bench.widgets.resume("sizes").expect("it is known"));
    settle().await;
    let mut names = log.take();
    names.sort();
    assert_eq!(names, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_annotation_is_refused() {
    let bench = Bench::new().await;
    for bad in ["", "demo.dev/", "a b", "Demo.dev/a", "a/b/c"] {
        let refused = reconciler(&bench)
            .paused_by(bad)
            .register(|_| async { Ok(Outcome::done()) })
            .err();
        let is_it = matches!(refused, Some(ReconcilerError::PauseAnnotation { .. }));
        assert!(is_it, "{bad}: {refused:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn objects_that_are_being_deleted_are_reconciled_if_that_is_wanted() {
    for wanted in [false, true] {
        let bench = Bench::new().await;
        let log = Log::default();
        let seen = log.clone();
        let reconciler = if wanted {
            reconciler(&bench).with_deleting()
        } else {
            reconciler(&bench)
        };
        // A predicate that refuses every update.
        let options = HandlerOptions::default().only(Predicate::on_updates(|_, _| false));
        let registered = reconciler.options(options).register(move |cx| {
            let phase = if cx.raw().is_deleting() { "goes" } else { "is" };
            seen.add(phase);
            async { Ok(Outcome::done()) }
        });
        registered.expect("registered");
        bench.start().await;
        bench.create("a", 1).await;
        let others = json!({"metadata": {"finalizers": ["other.dev/keeps"]}});
        bench.merge("a", others).await;
        settle().await;
        bench.delete("a").await;
        settle().await;
        let expected: &[&str] = if wanted { &["is", "goes"] } else { &["is"] };
        assert_eq!(log.take(), expected);
    }
}
