//! Hot loops over several kinds, and fields of related objects that others write too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, Patch, PatchParams, PostParams};
use lariat_controller::{Context, HandlerResult, HotLoopPattern, Outcome, Relation};
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, SECOND, key};
use crate::logs::Logs;

/// Two replicas without an election apply different states of a child, because the cache of one lags behind.
#[tokio::test(start_paused = true)]
async fn a_reverted_field_of_a_related_object_slows_the_runs_it_causes() {
    let bench = Bench::new().await;
    let secrets = bench.factory.for_object::<Secret>();
    let rival: Api<Secret> = Api::namespaced(bench.cluster.client(), "default");
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"name": "s", "labels": {"of": "a"}}})).unwrap();
    rival.create(&PostParams::default(), &secret).await.unwrap();
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    let labelled = |label: &str| Patch::Merge(json!({"metadata": {"labels": {"by": label}}}));
    bench
        .config_maps
        .register_handler("labels", move |cx: Context<ConfigMap>| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                let api: Api<Secret> = Api::namespaced(cx.client(), "default");
                let params = PatchParams::default();
                api.patch("s", &params, &labelled("us")).await?;
                Ok(Outcome::done())
            }
        })
        .unwrap();
    // Each relation reports every write.
    for _ in 0..2 {
        bench
            .config_maps
            .watch_related(&secrets, Relation::label("of"));
    }
    bench.create("a").await;
    bench.start().await;
    for _ in 0..200 {
        time::sleep(SECOND).await;
        let params = PatchParams::default();
        rival.patch("s", &params, &labelled("them")).await.unwrap();
    }
    let runs = count.load(Ordering::SeqCst);
    assert!(runs < 60, "{runs} runs instead of 400");
    let hot_loops = bench.status().hot_loops;
    assert_eq!(hot_loops.len(), 1);
    assert_eq!(hot_loops[0].key, key("a"));
    assert_eq!(hot_loops[0].pattern, HotLoopPattern::Contested);
    assert_eq!(hot_loops[0].fields, ["metadata.labels.by"]);
    assert_eq!(
        hot_loops[0].triggered_by.as_deref(),
        Some("Secret default/s")
    );
    // A change of the object itself is not delayed.
    bench.change("a", "x").await;
    time::sleep(SECOND / 10).await;
    assert!(count.load(Ordering::SeqCst) > runs);
}

/// The watch of metadata and the responses to writes differ in more than metadata.
#[tokio::test(start_paused = true)]
async fn a_related_object_of_which_others_write_other_fields_is_not_contested() {
    let bench = Bench::new().await;
    let secrets = bench.factory.for_object::<Secret>();
    let others: Api<Secret> = Api::namespaced(bench.cluster.client(), "default");
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": "s", "labels": {"of": "a"}}, "stringData": {"value": "x"},
    }))
    .unwrap();
    others
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    let round = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&round);
    let labelled =
        |name: &str, round: u32| json!({"metadata": {"labels": {name: round.to_string()}}});
    bench
        .config_maps
        .register_handler("labels", move |cx: Context<ConfigMap>| {
            let patch = Patch::Merge(labelled("ours", seen.load(Ordering::SeqCst)));
            async move {
                let api: Api<Secret> = Api::namespaced(cx.client(), "default");
                api.patch("s", &PatchParams::default(), &patch).await?;
                Ok(Outcome::done())
            }
        })
        .unwrap();
    bench
        .config_maps
        .watch_related(&secrets, Relation::label("of"));
    bench.create("a").await;
    bench.start().await;
    for number in 1..30 {
        time::sleep(10 * SECOND).await;
        round.store(number, Ordering::SeqCst);
        let patch = Patch::Merge(labelled("theirs", number));
        let params = PatchParams::default();
        others.patch("s", &params, &patch).await.unwrap();
    }
    let hot_loops = bench.status().hot_loops;
    assert!(hot_loops.is_empty(), "{hot_loops:?}");
}

#[tokio::test(start_paused = true)]
async fn a_hot_loop_over_two_kinds_is_found() {
    let logs = Logs::begin();
    let bench = Bench::new().await;
    let secrets = bench.factory.for_object::<Secret>();
    let api: Api<Secret> = Api::namespaced(bench.cluster.client(), "default");
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"name": "s", "labels": {"of": "a"}}})).unwrap();
    api.create(&PostParams::default(), &secret).await.unwrap();
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    bench
        .config_maps
        .register_handler("touches", move |cx: Context<ConfigMap>| {
            let number = counted.fetch_add(1, Ordering::SeqCst);
            async move {
                let api: Api<Secret> = Api::namespaced(cx.client(), "default");
                let patch =
                    Patch::Merge(json!({"metadata": {"labels": {"n": number.to_string()}}}));
                api.patch("s", &PatchParams::default(), &patch).await?;
                Ok(Outcome::done())
            }
        })
        .unwrap();
    bench
        .config_maps
        .watch_related(&secrets, Relation::label("of"));
    secrets
        .register_handler("log", |_: Context<Secret>| async { Ok(Outcome::done()) })
        .unwrap();
    bench.create("a").await;
    bench.start().await;
    time::sleep(600 * SECOND).await;
    let runs = count.load(Ordering::SeqCst);
    assert!((25..60).contains(&runs), "{runs}");
    let hot_loops = bench.status().hot_loops;
    let triggered_by = hot_loops[0].triggered_by.clone().unwrap_or_default();
    assert!(
        triggered_by.starts_with("Secret default/s written by touches "),
        "{triggered_by}"
    );
    let text = logs.text();
    assert!(
        text.contains("is in a hot loop") && text.contains("Secret default/s"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_hot_loop_over_two_kinds_is_slowed_also_if_the_key_was_written_before() {
    let bench = Bench::new().await;
    let secrets = bench.factory.for_object::<Secret>();
    let api: Api<Secret> = Api::namespaced(bench.cluster.client(), "default");
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"name": "s", "labels": {"of": "a"}}})).unwrap();
    api.create(&PostParams::default(), &secret).await.unwrap();
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    let handler = move |cx: Context<ConfigMap>| {
        let number = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            let params = PatchParams::default();
            if number == 0 {
                let maps: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
                let patch = Patch::Merge(json!({"data": {"seen": "yes"}}));
                maps.patch(cx.key().name(), &params, &patch).await?;
            }
            let api: Api<Secret> = Api::namespaced(cx.client(), "default");
            let patch = Patch::Merge(json!({"metadata": {"labels": {"n": number.to_string()}}}));
            api.patch("s", &params, &patch).await?;
            HandlerResult::Ok(Outcome::done())
        }
    };
    bench
        .config_maps
        .register_handler("touches", handler)
        .unwrap();
    bench
        .config_maps
        .watch_related(&secrets, Relation::label("of"));
    bench.create("a").await;
    bench.start().await;
    time::sleep(600 * SECOND).await;
    let runs = count.load(Ordering::SeqCst);
    assert!((25..60).contains(&runs), "{runs}");
    assert!(
        bench.status().hot_loops[0].triggered_by.is_some(),
        "it is said by what"
    );
}
