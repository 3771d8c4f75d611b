//! Tests of finalizers: added before reconciling, removed after cleanup.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lariat_controller::{HandlerError, HandlerOptions, HandlerResult, Outcome, Predicate};
use lariat_operator::{Finalizer, Reconcile, Reconciler, Retry};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, SECOND, Widget, settle};

const OURS: &str = "demo.dev/cleanup";

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

    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

async fn done(_: Reconcile<Widget>) -> HandlerResult {
    Ok(Outcome::done())
}

fn reconciler(bench: &Bench) -> Reconciler<Widget> {
    bench.operator.reconciler("finalizes", &bench.widgets)
}

/// A cleanup that logs the name and returns done.
fn logged(log: &Log) -> impl Fn(Reconcile<Widget>) -> std::future::Ready<HandlerResult> + use<> {
    let log = log.clone();
    move |cx| {
        log.add(format!("clean {}", cx.key().name()));
        std::future::ready(Ok(Outcome::done()))
    }
}

fn finalizers(widget: &Widget) -> Vec<&str> {
    let names = widget.metadata.finalizers.iter().flatten();
    names.map(String::as_str).collect()
}

async fn finalizers_of(bench: &Bench, name: &str) -> Vec<String> {
    let widget = bench.get(name).await.expect("it is there");
    finalizers(&widget).into_iter().map(str::to_owned).collect()
}

fn patches(bench: &Bench) -> usize {
    bench.cluster.journal().count("patch", "widgets")
}

#[tokio::test(start_paused = true)]
async fn the_note_of_a_cleanup_is_in_the_history() {
    let bench = Bench::new().await;
    let cleanup = async |_: Reconcile<Widget>| Ok(Outcome::done().with_note("volume is deleted"));
    let cleanup = move |cx| Box::pin(cleanup(cx));
    reconciler(&bench)
        .finalizer(Finalizer::new(OURS), cleanup)
        .register(done)
        .unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    bench.delete("a").await;
    settle().await;
    let calls = bench
        .widgets
        .history()
        .into_iter()
        .flat_map(|run| run.calls.clone());
    let notes: Vec<_> = calls.filter_map(|call| call.note).collect();
    assert_eq!(notes, ["volume is deleted".into()]);
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_is_put_on_first_and_taken_off_after_cleanup() {
    let bench = Bench::new().await;
    let log = Log::default();
    let seen = log.clone();
    reconciler(&bench)
        .finalizer(Finalizer::new(OURS), logged(&log))
        .register(move |cx: Reconcile<Widget>| {
            let shown: Vec<String> = cx.raw().finalizers().map(str::to_owned).collect();
            seen.add(format!("{:?} {shown:?}", finalizers(cx.object())));
            done(cx)
        })
        .unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    let both = format!("{:?} {:?}", [OURS], [OURS]);
    assert!(log.take().iter().all(|seen| *seen == both));
    let requests = bench.cluster.journal();
    assert_eq!((patches(&bench), requests.count("get", "widgets")), (1, 0));
    bench.delete("a").await;
    settle().await;
    assert_eq!(log.take(), ["clean a"]);
    assert!(bench.get("a").await.is_none());
    assert_eq!(patches(&bench), 2);
}

#[tokio::test(start_paused = true)]
async fn only_wanted_objects_get_it_and_those_that_have_it_keep_it() {
    let bench = Bench::new().await;
    let log = Log::default();
    let big = Finalizer::new(OURS).when(|widget: &Widget| widget.spec.size > 1);
    reconciler(&bench)
        .finalizer(big, logged(&log))
        .register(done)
        .unwrap();
    bench.start().await;
    bench.create("big", 2).await;
    bench.create("small", 1).await;
    settle().await;
    assert!(finalizers_of(&bench, "small").await.is_empty());
    bench.resize("big", 0).await;
    settle().await;
    assert_eq!(finalizers_of(&bench, "big").await, [OURS]);
    bench.delete("big").await;
    bench.delete("small").await;
    settle().await;
    assert_eq!(log.take(), ["clean big"]);
    assert!(bench.get("big").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn objects_that_go_without_it_are_left_alone() {
    let bench = Bench::new().await;
    let log = Log::default();
    bench.create("a", 1).await;
    let held = json!({"metadata": {"finalizers": ["demo.dev/other"]}});
    bench.merge("a", held).await;
    bench.delete("a").await;
    let seen = log.clone();
    reconciler(&bench)
        .finalizer(Finalizer::new(OURS), logged(&log))
        .register(move |cx: Reconcile<Widget>| {
            seen.add("reconciled");
            done(cx)
        })
        .unwrap();
    let before = patches(&bench);
    bench.start().await;
    settle().await;
    bench.resize("a", 5).await;
    settle().await;
    assert_eq!(log.len(), 0);
    assert_eq!(finalizers_of(&bench, "a").await, ["demo.dev/other"]);
    assert_eq!(patches(&bench), before + 1);
}

#[tokio::test(start_paused = true)]
async fn cleanup_that_is_not_finished_or_fails_comes_again() {
    let bench = Bench::new().await;
    let log = Log::default();
    let seen = log.clone();
    reconciler(&bench)
        .finalizer(Finalizer::new(OURS), move |_| {
            seen.add("clean");
            let answer = match seen.len() {
                1 => Err(HandlerError::from("not yet")),
                2 => Ok(Outcome::requeue_after(10 * SECOND)),
                _ => Ok(Outcome::done()),
            };
            async { answer }
        })
        .on_error(|_, _| Retry::after(10 * SECOND))
        .requeue_after(3600 * SECOND)
        .register(done)
        .unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    bench.delete("a").await;
    for (seconds, calls) in [(9, 1), (10, 2), (10, 3)] {
        time::sleep(seconds * SECOND).await;
        assert_eq!(log.len(), calls);
        assert_eq!(bench.get("a").await.is_some(), calls < 3);
    }
}

#[tokio::test(start_paused = true)]
async fn deletions_are_reported_whatever_the_options_say() {
    let bench = Bench::new().await;
    let log = Log::default();
    reconciler(&bench)
        .finalizer(Finalizer::new(OURS), logged(&log))
        .options(HandlerOptions::default().only(Predicate::labels("never=ever".parse().unwrap())))
        .register(done)
        .unwrap();
    let make = async |name| {
        bench.create(name, 1).await;
        let patch = json!({"metadata": {"finalizers": [OURS]}});
        bench.merge(name, patch).await;
    };
    // One is deleted before the start, one afterwards.
    make("early").await;
    bench.delete("early").await;
    make("late").await;
    bench.start().await;
    settle().await;
    assert_eq!(log.take(), ["clean early"]);
    bench.delete("late").await;
    settle().await;
    assert_eq!(log.take(), ["clean late"]);
    assert!(bench.get("late").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn two_finalizers_of_two_reconcilers_do_not_fight() {
    let bench = Bench::new().await;
    let log = Log::default();
    for name in ["one", "two"] {
        let (seen, cleaned) = (log.clone(), log.clone());
        let finalizer = Finalizer::new(&format!("demo.dev/{name}"));
        bench
            .operator
            .reconciler(name, &bench.widgets)
            .finalizer(finalizer, move |cx: Reconcile<Widget>| {
                assert!(cx.raw().finalizers().any(|each| each.ends_with(name)));
                cleaned.add(format!("clean {name}"));
                done(cx)
            })
            .on_deleted(move |cx: Reconcile<Widget>| {
                seen.add(format!("gone {name}"));
                done(cx)
            })
            .register(done)
            .unwrap();
    }
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    assert_eq!(finalizers_of(&bench, "a").await.len(), 2);
    assert_eq!(patches(&bench), 2);
    bench.delete("a").await;
    time::sleep(SECOND).await;
    let mut calls = log.take();
    calls.sort();
    assert_eq!(calls, ["clean one", "clean two", "gone one", "gone two"]);
    assert_eq!(patches(&bench), 4);
    assert!(bench.get("a").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn what_a_switch_puts_on_later_keeps_finalizers_the_cache_does_not_know() {
    let bench = Bench::new().await;
    let wants = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&wants);
    let finalizer = Finalizer::new(OURS).when(move |_: &Widget| asked.load(Ordering::Relaxed));
    reconciler(&bench)
        .finalizer(finalizer, done)
        .register(done)
        .unwrap();
    bench.create("a", 1).await;
    crate::bench::hang_watches(&bench, "widgets");
    bench.start().await;
    time::sleep(2 * SECOND).await;
    let others = json!({"metadata": {"finalizers": ["demo.dev/other"]}});
    bench.merge("a", others).await;
    settle().await;
    wants.store(true, Ordering::Relaxed);
    bench.widgets.enqueue(&crate::bench::key("a"));
    settle().await;
    assert_eq!(finalizers_of(&bench, "a").await, ["demo.dev/other", OURS]);
}

#[test]
fn a_name_the_api_server_would_refuse_is_refused_at_once() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let bench = Bench::new().await;
        let finalized = reconciler(&bench).finalizer(Finalizer::new("cleanup"), done);
        let error = finalized.register(done).unwrap_err();
        assert_eq!(format!("{error:?}"), error.to_string(), "each thing once");
        assert_eq!(
            error.to_string(),
            "reconciler \"finalizes\" of demo.dev/v1 Widget cannot have its finalizer: finalizer \
             \"cleanup\" needs a name like \"example.com/cleanup\": it has no domain"
        );
        assert!(bench.widgets.status().is_none(), "nothing is left behind");
    });
}
