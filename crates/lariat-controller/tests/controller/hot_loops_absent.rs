//! Work that resembles a hot loop but is none, and the length of delays.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, Patch, PatchParams, PostParams};
use lariat_controller::{
    Context, ControllerOptions, HandlerResult, HotLoopOptions, HotLoopPattern, Outcome, Relation,
};
use lariat_core::Cause;
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, SECOND, key};
use crate::hot_loops::{write, writes};

#[tokio::test(start_paused = true)]
async fn another_writers_change_does_not_wait_and_other_keys_are_not_slowed() {
    let bench = Bench::new().await;
    let count = writes(
        &bench,
        |number| json!({"data": {"seen": number.to_string()}}),
    );
    bench.start().await;
    bench.create("a").await;
    time::sleep(120 * SECOND).await;
    let before = count.load(Ordering::SeqCst);
    bench.change("a", "urgent").await;
    time::sleep(SECOND / 10).await;
    assert!(
        count.load(Ordering::SeqCst) > before,
        "it is called at once"
    );
    let before = count.load(Ordering::SeqCst);
    bench.create("b").await;
    time::sleep(SECOND / 10).await;
    assert!(count.load(Ordering::SeqCst) >= before + 25);
    bench.delete("a").await;
    time::sleep(SECOND / 10).await;
    let deletion = bench.config_maps.history_of(&key("a"));
    assert!(
        deletion
            .last()
            .unwrap()
            .causes
            .to_string()
            .contains("deleted")
    );
}

#[tokio::test(start_paused = true)]
async fn honest_work_is_not_suspected() {
    let bench = Bench::new().await;
    // A status that is written once for each change, and a progress that is written by schedule.
    let handler = |cx: Context<ConfigMap>| async move {
        let Some(object) = cx.object()? else {
            return Ok(Outcome::done());
        };
        let data = object.data.clone().unwrap_or_default();
        let (value, seen) = (data.get("value").cloned(), data.get("seen").cloned());
        if value != seen {
            write(&cx, json!({"data": {"seen": value}})).await?;
        }
        HandlerResult::Ok(Outcome::done())
    };
    bench
        .config_maps
        .register_handler("status", handler)
        .unwrap();
    let polls = |cx: Context<ConfigMap>| async move {
        let is_asked = |cause: &Cause| matches!(cause, Cause::Requeued { .. });
        if !cx.causes().iter().all(is_asked) {
            return Ok(Outcome::requeue_after(SECOND));
        }
        write(&cx, json!({"data": {"at": cx.run().to_string()}})).await?;
        HandlerResult::Ok(Outcome::requeue_after(SECOND))
    };
    bench
        .config_maps
        .register_handler("progress", polls)
        .unwrap();
    bench.start().await;
    bench.create("a").await;
    for number in 0..300 {
        bench.change("a", &number.to_string()).await;
        time::sleep(SECOND).await;
    }
    assert!(
        bench.status().hot_loops.is_empty(),
        "{:?}",
        bench.status().hot_loops
    );
}

#[tokio::test(start_paused = true)]
async fn detection_can_be_disabled_or_only_report() {
    for (options, found) in [
        (HotLoopOptions::off(), 0),
        (
            HotLoopOptions::default().delays(time::Duration::ZERO, time::Duration::ZERO),
            1,
        ),
    ] {
        let bench = Bench::with(|builder| {
            builder.default_options(ControllerOptions::default().hot_loops(options))
        })
        .await;
        let count = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&count);
        let handler = move |cx: Context<ConfigMap>| {
            let number = counted.fetch_add(1, Ordering::SeqCst);
            async move {
                if number >= 200 {
                    return Ok(Outcome::done());
                }
                write(&cx, json!({"data": {"n": number.to_string()}})).await?;
                HandlerResult::Ok(Outcome::done())
            }
        };
        bench
            .config_maps
            .register_handler("writes", handler)
            .unwrap();
        bench.start().await;
        bench.create("a").await;
        time::sleep(5 * SECOND).await;
        assert_eq!(count.load(Ordering::SeqCst), 201);
        assert_eq!(bench.status().hot_loops.len(), found);
    }
}

#[tokio::test(start_paused = true)]
async fn a_field_that_is_no_longer_contested_is_not_slowed_for_ever() {
    let bench = Bench::new().await;
    let count = writes(&bench, |_| json!({"data": {"owner": "us"}}));
    bench.start().await;
    bench.create("a").await;
    let rival: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "default");
    for _ in 0..100 {
        time::sleep(SECOND).await;
        let undo = Patch::Merge(json!({"data": {"owner": "them"}}));
        rival
            .patch("a", &PatchParams::default(), &undo)
            .await
            .unwrap();
    }
    assert_eq!(bench.status().hot_loops.len(), 1);
    // The rival has ended; others change other fields, and we keep writing.
    for number in 0..20 {
        time::sleep(60 * SECOND).await;
        bench.change("a", &number.to_string()).await;
    }
    assert!(bench.status().hot_loops.is_empty());
    let before = count.load(Ordering::SeqCst);
    bench.change("a", "x").await;
    time::sleep(SECOND / 10).await;
    assert!(count.load(Ordering::SeqCst) > before, "at once");
}

/// Registers a handler of ConfigMaps that creates one Secret for each call, until there are so many, and relies on the
/// watch of what it created.
fn creates(bench: &Bench, size: usize) {
    let secrets = bench.factory.for_object::<Secret>();
    let cache = secrets.cache();
    bench
        .config_maps
        .watch_related(&secrets, Relation::label("of"));
    let handler = move |cx: Context<ConfigMap>| {
        let have = cache.store().len();
        async move {
            if have < size {
                let metadata = json!({"name": format!("s{have}"), "labels": {"of": "a"}});
                let secret: Secret = serde_json::from_value(json!({"metadata": metadata}))?;
                let api: Api<Secret> = Api::namespaced(cx.client(), "default");
                api.create(&PostParams::default(), &secret).await?;
            }
            HandlerResult::Ok(Outcome::done())
        }
    };
    bench
        .config_maps
        .register_handler("creates", handler)
        .expect("registered");
}

#[tokio::test(start_paused = true)]
async fn work_that_is_done_object_by_object_is_not_slowed() {
    let bench = Bench::new().await;
    creates(&bench, 1000);
    bench.create("a").await;
    bench.start().await;
    time::sleep(SECOND).await;
    let secrets = bench.factory.for_object::<Secret>().cache();
    assert_eq!(secrets.store().len(), 1000);
    assert!(bench.status().hot_loops.is_empty());
}

#[tokio::test(start_paused = true)]
async fn work_that_is_done_field_by_field_is_not_slowed_but_its_last_field_may_not_change_for_ever()
{
    let bench = Bench::new().await;
    let count = writes(&bench, |number| {
        let field = format!("field-{}", number.min(200));
        json!({"data": {field: number.to_string()}})
    });
    bench.start().await;
    bench.create("a").await;
    time::sleep(SECOND).await;
    let runs = count.load(Ordering::SeqCst);
    assert!((220..240).contains(&runs), "{runs}");
    time::sleep(600 * SECOND).await;
    let hot_loops = bench.status().hot_loops;
    assert_eq!(hot_loops[0].pattern, HotLoopPattern::OwnWrites);
    assert_eq!(hot_loops[0].fields, ["data.field-200"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_fails_for_another_reason_keeps_its_delays() {
    let bench = Bench::new().await;
    let calls = bench.on("fails", |_| async { Err("not yet".into()) });
    let count = writes(
        &bench,
        |number| json!({"data": {"n": number.min(24).to_string()}}),
    );
    bench.start().await;
    bench.create("a").await;
    time::sleep(SECOND).await;
    let changes = count.load(Ordering::SeqCst) as usize;
    assert!(changes >= 24, "{changes}");
    let before = calls.len();
    time::sleep(120 * SECOND).await;
    let gaps: Vec<u64> = calls.all()[before..]
        .windows(2)
        .map(|pair| (pair[1].at - pair[0].at).as_secs())
        .collect();
    assert!(
        gaps.iter().all(|gap| *gap <= 31),
        "no pause on top: {gaps:?}"
    );
}
