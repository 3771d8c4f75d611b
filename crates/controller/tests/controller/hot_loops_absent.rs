//! Work that resembles a hot loop but is none, and detection that is switched off.

use std::sync::atomic::Ordering;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams};
use lariat_controller::{
    Context, ControllerOptions, HandlerOptions, HandlerResult, HotLoopOptions, Outcome,
};
use lariat_core::Cause;
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, SECOND, key};
use crate::hot_loops::{write, writes, writes_until};

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
async fn hot_loop_is_not_reported_if_detection_is_off() {
    let options = ControllerOptions::default().hot_loops(HotLoopOptions::off());
    let bench = Bench::with(|builder| builder.default_options(options)).await;
    let slow = HandlerOptions::default().slow_hot_loops(SECOND);
    let count = writes_until(&bench, 200, slow);
    bench.start().await;
    bench.create("a").await;
    time::sleep(5 * SECOND).await;
    assert_eq!(count.load(Ordering::SeqCst), 201);
    assert_eq!(bench.status().hot_loops.len(), 0);
}

/// Changes of many children, each written by the child's handler, call the handler of their parent.
#[tokio::test(start_paused = true)]
async fn key_that_many_other_runs_enqueue_is_in_no_hot_loop() {
    let bench = Bench::new().await;
    bench
        .config_maps
        .register_handler("children", |cx: Context<ConfigMap>| async move {
            if cx.key().name() != "parent" {
                cx.enqueue(&key("parent"));
            }
            HandlerResult::Ok(Outcome::done())
        })
        .unwrap();
    bench.start().await;
    for round in 0..10 {
        for number in 0..50 {
            let name = format!("child-{number}");
            bench.config_maps.enqueue(&key(&name));
            time::sleep(SECOND / 100).await;
        }
        assert!(bench.status().hot_loops.is_empty(), "in round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn rollout_that_steps_one_field_by_own_writes_takes_no_delay() {
    let bench = Bench::new().await;
    let handler = |cx: Context<ConfigMap>| async move {
        let Some(object) = cx.object()? else {
            return Ok(Outcome::done());
        };
        let step = object.data.as_ref().and_then(|data| data.get("step"));
        let step: u32 = step.map_or(Ok(0), |step| step.parse())?;
        if step < 50 {
            write(&cx, json!({"data": {"step": (step + 1).to_string()}})).await?;
        }
        HandlerResult::Ok(Outcome::done())
    };
    bench
        .config_maps
        .register_handler("rollout", handler)
        .unwrap();
    bench.start().await;
    bench.create("a").await;
    time::sleep(SECOND / 2).await;
    let cached = bench.config_maps.cache().get(&key("a")).unwrap();
    let data = cached.unwrap().data.clone().unwrap();
    assert_eq!(data["step"], "50");
    assert!(bench.status().hot_loops.is_empty());
}

#[tokio::test(start_paused = true)]
async fn field_that_is_no_longer_contested_is_in_no_hot_loop() {
    let bench = Bench::new().await;
    writes(&bench, |_| json!({"data": {"owner": "us"}}));
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
}
