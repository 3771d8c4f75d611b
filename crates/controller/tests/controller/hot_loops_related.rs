//! Hot loops over several kinds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, Patch, PatchParams, PostParams};
use lariat_controller::{Context, HandlerResult, Outcome, Relation};
use lariat_testing::Logs;
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, SECOND};

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
                let patch = Patch::Merge(
                    json!({"metadata": {"labels": {"n": number.min(200).to_string()}}}),
                );
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
    time::sleep(60 * SECOND).await;
    let runs = count.load(Ordering::SeqCst);
    assert!(runs > 200, "{runs}");
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

/// Each handler writes the object of the other kind.
#[tokio::test(start_paused = true)]
async fn hot_loop_of_two_handlers_is_found_for_both_keys() {
    let bench = Bench::new().await;
    let secrets = bench.factory.for_object::<Secret>();
    let api: Api<Secret> = Api::namespaced(bench.cluster.client(), "default");
    let secret: Secret = serde_json::from_value(json!({"metadata": {"name": "s"}})).unwrap();
    api.create(&PostParams::default(), &secret).await.unwrap();
    let count = Arc::new(AtomicU32::new(0));
    let labelled =
        |number: u32| Patch::Merge(json!({"metadata": {"labels": {"n": number.to_string()}}}));
    let counted = Arc::clone(&count);
    bench
        .config_maps
        .register_handler("maps", move |cx: Context<ConfigMap>| {
            let number = counted.fetch_add(1, Ordering::SeqCst);
            async move {
                let api: Api<Secret> = Api::namespaced(cx.client(), "default");
                if number < 200 {
                    api.patch("s", &PatchParams::default(), &labelled(number))
                        .await?;
                }
                HandlerResult::Ok(Outcome::done())
            }
        })
        .unwrap();
    secrets
        .register_handler("secrets", move |cx: Context<Secret>| {
            let number = count.load(Ordering::SeqCst);
            async move {
                let api: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
                api.patch("a", &PatchParams::default(), &labelled(number))
                    .await?;
                HandlerResult::Ok(Outcome::done())
            }
        })
        .unwrap();
    bench.create("a").await;
    bench.start().await;
    time::sleep(60 * SECOND).await;
    let found = |status: &lariat_controller::ControllerStatus| {
        let hot_loops = status.hot_loops.iter();
        let named = hot_loops.map(|it| (it.key.to_string(), it.handlers.join(", ")));
        named.collect::<Vec<_>>()
    };
    let named = |key: &str, by: &str| vec![(key.to_owned(), by.to_owned())];
    assert_eq!(found(&bench.status()), named("default/a", "Secret secrets"));
    assert_eq!(
        found(&secrets.status().unwrap()),
        named("default/s", "ConfigMap maps")
    );
}
