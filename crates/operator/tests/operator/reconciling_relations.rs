//! Reconcilers are called for what their objects control and watch.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat_cluster::faults::{Action as Fault, Rule};
use lariat_controller::{CallOutcome, HandlerOptions, Outcome, Predicate, Relation};
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, SECOND, Widget, settle};
use crate::reconciling::{Log, logging};

fn config_map(name: &str, owner: &Widget, is_controller: bool) -> ConfigMap {
    let owner = json!({
        "apiVersion": "demo.dev/v1", "kind": "Widget", "name": owner.metadata.name,
        "uid": owner.metadata.uid, "controller": is_controller,
    });
    serde_json::from_value(json!({"metadata": {"name": name, "ownerReferences": [owner]}}))
        .expect("it is one")
}

#[tokio::test(start_paused = true)]
async fn what_an_object_controls_reconciles_it_whatever_happens_to_it() {
    let bench = Bench::new().await;
    let config_maps = bench.factory.for_object::<ConfigMap>();
    let (log, _) = logging(&bench, |reconciler| reconciler.owns(&config_maps));
    bench.start().await;
    let a = bench.create("a", 1).await;
    bench.create("b", 1).await;
    settle().await;
    log.take();
    let api: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "default");
    let (post, patch) = (PostParams::default(), PatchParams::default());
    api.create(&post, &config_map("owned", &a, true))
        .await
        .unwrap();
    settle().await;
    assert_eq!(log.take(), ["a"]);
    let change = Patch::Merge(json!({"data": {"x": "y"}}));
    api.patch("owned", &patch, &change).await.unwrap();
    settle().await;
    assert_eq!(log.take(), ["a"]);
    api.delete("owned", &DeleteParams::default()).await.unwrap();
    settle().await;
    assert_eq!(log.take(), ["a"]);
    api.create(&post, &config_map("uncontrolled", &a, false))
        .await
        .unwrap();
    settle().await;
    assert_eq!(log.take(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn the_old_and_the_new_relative_are_reconciled() {
    let bench = Bench::new().await;
    let config_maps = bench.factory.for_object::<ConfigMap>();
    let (log, _) = logging(&bench, |reconciler| {
        reconciler.watches(&config_maps, Relation::label("widget"))
    });
    let other = bench
        .widgets
        .register_handler(
            "other",
            |cx: lariat_controller::Context<Widget>| async move {
                assert!(
                    !cx.causes().to_string().contains("ConfigMap"),
                    "{}",
                    cx.causes()
                );
                Ok(Outcome::done())
            },
        )
        .unwrap();
    bench.start().await;
    for name in ["a", "b"] {
        bench.create(name, 1).await;
    }
    let api: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "default");
    let labelled = |widget: &str| json!({"metadata": {"name": "m", "labels": {"widget": widget}}});
    let created = serde_json::from_value(labelled("a")).unwrap();
    api.create(&PostParams::default(), &created).await.unwrap();
    settle().await;
    log.take();
    let moved = Patch::Merge(labelled("b"));
    api.patch("m", &PatchParams::default(), &moved)
        .await
        .unwrap();
    settle().await;
    let mut both = log.take();
    both.sort();
    assert_eq!(both, ["a", "b"]);
    assert_eq!(
        other.status().ended(CallOutcome::Done),
        2,
        "only for the Widgets themselves"
    );
}

#[tokio::test(start_paused = true)]
async fn a_predicate_is_about_the_kind_itself() {
    let bench = Bench::new().await;
    let options = HandlerOptions::default().only(Predicate::generation_changed());
    let (log, _) = logging(&bench, |reconciler| reconciler.options(options));
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    bench
        .merge("a", json!({"metadata": {"labels": {"x": "y"}}}))
        .await;
    settle().await;
    assert_eq!(log.take(), ["a"]);
    bench.resize("a", 2).await;
    settle().await;
    assert_eq!(log.take(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_that_is_taken_away_watches_nothing_any_more() {
    let bench = Bench::new().await;
    let pods = bench.factory.for_object::<Pod>();
    let (log, registration) = logging(&bench, |reconciler| {
        reconciler.watches(&pods, Relation::label("widget"))
    });
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    assert_eq!(log.take(), ["a"]);
    registration.deregister().await;
    bench.resize("a", 2).await;
    // Unused kinds are kept for a while.
    time::sleep(600 * SECOND).await;
    assert_eq!(log.take(), [""; 0]);
    let watches = bench.factory.caches().status();
    assert!(watches.is_empty(), "{watches:?}");
}

#[tokio::test(start_paused = true)]
async fn a_late_reconciler_is_not_called_before_the_cache_of_what_it_owns_is_filled() {
    let bench = Bench::new().await;
    let maps: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "default");
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "x"}})).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    let first = bench.operator.reconciler("first", &bench.widgets);
    first.register(|_| async { Ok(Outcome::done()) }).unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    let slow = Rule::new(Fault::Delay(5 * SECOND)).resource("configmaps");
    bench.cluster.faults().add(slow);
    let config_maps = bench.factory.for_object::<ConfigMap>();
    let log = Log::default();
    let (seen, reads) = (log.clone(), config_maps.clone());
    let began = time::Instant::now();
    bench
        .operator
        .reconciler("second", &bench.widgets)
        .owns(&config_maps)
        .register(move |_| {
            let count = reads.cache().store().len();
            seen.add(format!("{count} after {} s", began.elapsed().as_secs()));
            async { Ok(Outcome::done()) }
        })
        .unwrap();
    time::sleep(60 * SECOND).await;
    assert_eq!(log.take(), ["1 after 5 s"]);
}
