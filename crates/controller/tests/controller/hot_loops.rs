//! Hot loops: how they are detected and reported, and slowed down on request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use lariat_cluster::faults::{Action, Rule};
use lariat_controller::{Context, HandlerOptions, HandlerResult, HotLoopPattern, Outcome};
use lariat_testing::Logs;
use serde_json::{Value, json};
use tokio::time;

use crate::bench::{Bench, SECOND, key};

/// Writes to the ConfigMap a handler was called for.
pub(crate) async fn write(cx: &Context<ConfigMap>, what: Value) -> Result<(), kube::Error> {
    let api: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
    let (name, params) = (cx.key().name(), PatchParams::default());
    api.patch(name, &params, &Patch::Merge(what))
        .await
        .map(drop)
}

/// Registers a handler that counts its calls and writes each time.
pub(crate) fn writes(
    bench: &Bench,
    what: impl Fn(u32) -> Value + Send + Sync + 'static,
) -> Arc<AtomicU32> {
    let count = Arc::new(AtomicU32::new(0));
    let (counted, what) = (Arc::clone(&count), Arc::new(what));
    let handler = move |cx: Context<ConfigMap>| {
        let (counted, what) = (Arc::clone(&counted), Arc::clone(&what));
        async move {
            let number = counted.fetch_add(1, Ordering::SeqCst);
            write(&cx, what(number)).await?;
            HandlerResult::Ok(Outcome::done())
        }
    };
    bench
        .config_maps
        .register_handler("writes", handler)
        .expect("it works");
    count
}

/// As [`writes`], with a number of writes and the options of the handler.
pub(crate) fn writes_until(bench: &Bench, end: u32, options: HandlerOptions) -> Arc<AtomicU32> {
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    let handler = move |cx: Context<ConfigMap>| {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            if number < end {
                write(&cx, json!({"data": {"seen": number.to_string()}})).await?;
            }
            HandlerResult::Ok(Outcome::done())
        }
    };
    bench
        .config_maps
        .register_handler("writes", options.handler(handler))
        .expect("it works");
    count
}

#[tokio::test(start_paused = true)]
async fn hot_loop_by_own_writes_is_named_once_and_not_delayed() {
    let logs = Logs::begin();
    let bench = Bench::new().await;
    let count = writes_until(&bench, 2000, HandlerOptions::default());
    bench.start().await;
    bench.create("a").await;
    time::sleep(20 * SECOND).await;
    assert_eq!(count.load(Ordering::SeqCst), 2001);
    let hot_loops = bench.status().hot_loops;
    assert_eq!(hot_loops.len(), 1);
    let hot_loop = &hot_loops[0];
    assert_eq!(
        (&hot_loop.key, hot_loop.pattern),
        (&key("a"), HotLoopPattern::OwnWrites)
    );
    assert_eq!(hot_loop.handlers, ["writes".into()]);
    assert_eq!(hot_loop.fields, ["data.seen"]);
    assert_eq!(hot_loop.triggered_by, None);
    assert!(hot_loop.rounds > 1900, "{}", hot_loop.rounds);
    let text = logs.text();
    let warnings = text
        .lines()
        .filter(|line| line.contains("is in a hot loop"))
        .count();
    assert_eq!(warnings, 1, "{text}");
    for part in [
        "default/a",
        "data.seen",
        "writes",
        "own writes or enqueues cause its next run",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let history = bench.config_maps.history_of(&key("a"));
    let causes = history.last().unwrap().causes.to_string();
    assert!(causes.starts_with("written by writes "), "{causes}");
    time::sleep(600 * SECOND).await;
    assert!(bench.status().hot_loops.is_empty(), "it has ended");
}

#[tokio::test(start_paused = true)]
async fn handler_in_hot_loop_is_delayed_if_its_options_ask() {
    let bench = Bench::new().await;
    let slow = HandlerOptions::default().slow_hot_loops(10 * SECOND);
    let count = writes_until(&bench, u32::MAX, slow);
    bench.start().await;
    bench.create("a").await;
    time::sleep(600 * SECOND).await;
    let runs = count.load(Ordering::SeqCst);
    assert!((100..130).contains(&runs), "{runs} runs in ten minutes");
    assert_eq!(bench.status().hot_loops.len(), 1, "it is still one");
    // Changes by others and deletions do not wait.
    for _ in 0..3 {
        let before = count.load(Ordering::SeqCst);
        bench.change("a", &before.to_string()).await;
        time::sleep(SECOND / 10).await;
        assert!(count.load(Ordering::SeqCst) > before, "at once");
    }
    let before = count.load(Ordering::SeqCst);
    bench.delete("a").await;
    time::sleep(SECOND / 10).await;
    assert!(count.load(Ordering::SeqCst) > before, "at once");
}

#[tokio::test(start_paused = true)]
async fn huge_delay_of_hot_loops_counts_as_a_minute() {
    let logs = Logs::begin();
    let bench = Bench::new().await;
    let slow = HandlerOptions::default().slow_hot_loops(Duration::MAX);
    let count = writes_until(&bench, u32::MAX, slow);
    bench.start().await;
    bench.create("a").await;
    time::sleep(SECOND).await;
    let before = count.load(Ordering::SeqCst);
    time::sleep(600 * SECOND).await;
    let runs = count.load(Ordering::SeqCst) - before;
    assert!((9..=10).contains(&runs), "{runs} runs in ten minutes");
    assert!(!logs.text().contains("panicked"), "{}", logs.text());
}

#[tokio::test(start_paused = true)]
async fn a_field_that_another_writer_reverts_is_named() {
    let bench = Bench::new().await;
    let count = writes(&bench, |_| json!({"data": {"owner": "us", "other": "x"}}));
    bench.start().await;
    bench.create("a").await;
    let rival: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "default");
    for _ in 0..200 {
        time::sleep(SECOND).await;
        let undo = json!({"data": {"owner": "them"}});
        rival
            .patch("a", &PatchParams::default(), &Patch::Merge(undo))
            .await
            .unwrap();
    }
    let hot_loops = bench.status().hot_loops;
    assert_eq!(hot_loops.len(), 1);
    assert_eq!(hot_loops[0].pattern, HotLoopPattern::Contested);
    assert_eq!(hot_loops[0].fields, ["data.owner"]);
    let runs = count.load(Ordering::SeqCst);
    assert!(runs >= 400, "{runs} runs: none is delayed");
}

#[tokio::test(start_paused = true)]
async fn handler_that_writes_and_requeues_is_found() {
    let bench = Bench::new().await;
    let handler = |cx: Context<ConfigMap>| async move {
        if cx.run() < 500 {
            write(&cx, json!({"data": {"at": cx.run().to_string()}})).await?;
        }
        HandlerResult::Ok(Outcome::requeue_after(30 * SECOND))
    };
    bench
        .config_maps
        .register_handler("clock", handler)
        .unwrap();
    bench.start().await;
    bench.create("a").await;
    time::sleep(20 * SECOND).await;
    let status = bench.status();
    assert_eq!(status.hot_loops[0].pattern, HotLoopPattern::OwnWrites);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_enqueues_its_own_key_is_found_unless_it_asks_for_later() {
    let bench = Bench::new().await;
    let calls = bench.record("log");
    bench
        .config_maps
        .register_handler("spins", |cx: Context<ConfigMap>| {
            match cx.key().name() {
                "now" if cx.run() < 500 => cx.enqueue(cx.key()),
                "now" => {}
                _ => cx.enqueue_after(cx.key(), SECOND),
            }
            async { Ok(Outcome::done()) }
        })
        .unwrap();
    bench.start().await;
    bench.config_maps.enqueue(&key("now"));
    bench.config_maps.enqueue(&key("later"));
    time::sleep(100 * SECOND).await;
    let of = |name: &str| calls.names().iter().filter(|each| *each == name).count();
    assert!(of("later") > 90, "{}", of("later"));
    let hot_loops = bench.status().hot_loops;
    assert_eq!(hot_loops.len(), 1);
    let triggered_by = hot_loops[0].triggered_by.clone().unwrap_or_default();
    assert!(
        triggered_by.starts_with("enqueued by spins at "),
        "{triggered_by}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_counts_into_its_object_and_fails_is_found() {
    let bench = Bench::new().await;
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    let handler = move |cx: Context<ConfigMap>| {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            if number < 200 {
                write(&cx, json!({"data": {"attempts": number.to_string()}})).await?;
            }
            HandlerResult::Err("not yet".into())
        }
    };
    bench
        .config_maps
        .register_handler("fails", handler)
        .unwrap();
    bench.start().await;
    bench.create("a").await;
    time::sleep(SECOND).await;
    let runs = count.load(Ordering::SeqCst);
    assert!(runs > 200, "{runs} runs in the first second");
    let hot_loops = bench.status().hot_loops;
    assert_eq!(hot_loops[0].pattern, HotLoopPattern::OwnWrites);
    assert_eq!(hot_loops[0].fields, ["data.attempts"]);
    let history = bench.config_maps.history_of(&key("a"));
    let causes = history.last().unwrap().causes.to_string();
    assert!(causes.contains("written by fails "), "{causes}");
}

#[tokio::test(start_paused = true)]
async fn hot_loop_is_found_if_the_watch_is_faster_than_the_responses() {
    let bench = Bench::new().await;
    let slow = Rule::new(Action::Bandwidth(1000)).verb("patch");
    bench.cluster.faults().add(slow);
    writes(
        &bench,
        |number| json!({"data": {"seen": number.to_string()}}),
    );
    bench.start().await;
    bench.create("a").await;
    time::sleep(120 * SECOND).await;
    let history = bench.config_maps.history_of(&key("a"));
    let causes = history.last().unwrap().causes.to_string();
    assert!(causes.starts_with("updated "), "by the watch: {causes}");
    assert_eq!(
        bench.status().hot_loops[0].pattern,
        HotLoopPattern::OwnWrites
    );
}
