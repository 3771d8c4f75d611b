//! Tests of guards and plans with writes without effect, and with deletions of containers.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use lariat_controller::{HandlerResult, Outcome, SharedControllerFactory};
use lariat_operator::{Budget, Desired, Guard, Operator, Reconcile};
use serde_json::json;
use tokio::time;

use crate::apply_rig::config;
use crate::bench::{Bench, Widget, settle};
use crate::guard::{Errors, MINUTE, run_once, with_widgets};

async fn apply(cx: Reconcile<Widget>) -> HandlerResult {
    let object = config(cx.key().name(), "1");
    cx.apply(Desired::new().with_value(object)).await?;
    Ok(Outcome::done())
}

/// Creates another process, whose operator has applied nothing yet.
fn another(bench: &Bench, guard: &Guard) -> (Operator, SharedControllerFactory) {
    let factory = SharedControllerFactory::builder(bench.cluster.client()).build();
    let operator = Operator::new("widgeteer", &factory);
    let registered = operator
        .reconciler("applies", &factory.for_object::<Widget>())
        .owns(&factory.for_object::<ConfigMap>())
        .guard(guard.clone())
        .register(apply);
    registered.expect("registered");
    (operator, factory)
}

/// Creates twenty Widgets, each with an applied ConfigMap.
async fn with_applied() -> Bench {
    let bench = with_widgets(20).await;
    let (operator, _factory) = another(&bench, &Guard::new());
    operator.start(2).await.expect("started");
    settle().await;
    operator.stop().await.expect("stopped");
    assert_eq!(bench.cluster.journal().count("patch", "configmaps"), 20);
    bench.cluster.journal().clear();
    bench
}

#[tokio::test(start_paused = true)]
async fn a_process_that_starts_again_does_not_trip_over_what_is_as_wanted() {
    let bench = with_applied().await;
    let guard = Guard::new().writes(Budget::rate(10, MINUTE));
    let (operator, _factory) = another(&bench, &guard);
    operator.start(2).await.unwrap();
    time::sleep(10 * MINUTE).await;
    assert!(!guard.state().is_tripped(), "{}", guard.state());
    assert_eq!(bench.cluster.journal().count("patch", "configmaps"), 0);
    operator.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_plan_of_a_cluster_that_is_as_wanted_is_empty() {
    let bench = with_applied().await;
    let (operator, _factory) = another(&bench, &Guard::new());
    let operator = operator.plan_only();
    operator.start(2).await.unwrap();
    time::sleep(MINUTE).await;
    assert!(operator.planned().is_empty(), "{}", operator.planned());
    operator.stop().await.unwrap();
    // And for one that is not, it has the differences.
    let api: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "default");
    let theirs = Patch::Merge(json!({"data": {"key": "theirs"}}));
    api.patch("w07", &PatchParams::default(), &theirs)
        .await
        .unwrap();
    let (operator, _factory) = another(&bench, &Guard::new());
    let operator = operator.plan_only();
    operator.start(2).await.unwrap();
    time::sleep(MINUTE).await;
    let expected = "applies, for demo.dev/v1 Widget default/w07: would patch v1 ConfigMap default/w07\n    \
                    data.key: \"theirs\" → \"1\"\n";
    assert_eq!(operator.planned().to_string(), expected);
    operator.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_plan_compares_with_what_there_is_whatever_is_cached() {
    let bench = Bench::new().await;
    bench.create("a", 1).await;
    bench.create("b", 1).await;
    let api: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "default");
    let map = serde_json::from_value(config("x", "1")).unwrap();
    api.create(&Default::default(), &map).await.unwrap();
    let operator = bench.operator.clone().plan_only();
    let reconciler = operator.reconciler("writes", &bench.widgets);
    // Their metadata is cached.
    let config_maps = bench.factory.for_object::<ConfigMap>();
    let writes = |cx: Reconcile<Widget>| async move {
        let api: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
        // One of them changes nothing.
        let value = if cx.key().name() == "a" { "1" } else { "2" };
        let patch = Patch::Merge(json!({"data": {"key": value}}));
        api.patch("x", &PatchParams::default(), &patch).await?;
        Ok(Outcome::done())
    };
    reconciler.owns(&config_maps).register(writes).unwrap();
    bench.start().await;
    settle().await;
    let expected = "writes, for demo.dev/v1 Widget default/b: would patch v1 ConfigMap default/x\n    \
                    data.key: \"1\" → \"2\"\n";
    assert_eq!(operator.planned().to_string(), expected);
}

#[tokio::test(start_paused = true)]
async fn what_changes_nothing_uses_no_budget() {
    let bench = Bench::new().await;
    let (errors, guard) = (
        Errors::default(),
        Guard::new().writes(Budget::rate(2, MINUTE)),
    );
    let noted = errors.clone();
    run_once(&bench, &guard, move |cx| {
        let noted = noted.clone();
        async move {
            let api: Api<Widget> = Api::namespaced(cx.client(), "default");
            let label = async |value: usize| {
                let patch =
                    Patch::Merge(json!({"metadata": {"labels": {"app": value.to_string()}}}));
                noted.note(api.patch("a", &PatchParams::default(), &patch).await)
            };
            // Only the first changes something.
            for _ in 0..10 {
                label(1).await;
            }
            label(2).await;
            label(3).await;
        }
    })
    .await;
    let errors = errors.take();
    assert!(errors[0].contains("2 of 2"), "{errors:?}");
    assert_eq!(errors.len(), 1);
    assert_eq!(bench.cluster.journal().count("patch", "widgets"), 11);
    let labels = bench.get("a").await.unwrap().metadata.labels.unwrap();
    assert_eq!(labels["app"], "2");
}

#[tokio::test(start_paused = true)]
async fn what_takes_all_along_that_is_in_it_needs_a_weight() {
    let bench = Bench::new().await;
    let namespaces: Api<Namespace> = Api::all(bench.cluster.client());
    for name in ["one", "two", "three"] {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        namespaces
            .create(&Default::default(), &namespace)
            .await
            .unwrap();
    }
    let (errors, guard) = (
        Errors::default(),
        Guard::new().deletes(Budget::rate(5, MINUTE)),
    );
    let heavy = guard.clone().weight("", "namespaces", 2);
    let (noted, held, weighs) = (errors.clone(), guard.clone(), heavy.clone());
    let delete = async |cx: &Reconcile<Widget>, name: &str| {
        let api: Api<Namespace> = Api::all(cx.client());
        api.delete(name, &DeleteParams::default()).await.map(drop)
    };
    let reconciler = bench.operator.reconciler("weighs", &bench.widgets);
    let counted = errors.clone();
    let registered = reconciler
        .guard(heavy)
        .register(move |cx: Reconcile<Widget>| {
            let (counted, weighs) = (counted.clone(), weighs.clone());
            async move {
                for name in ["one", "two"] {
                    if !weighs.state().is_tripped() {
                        assert!(!counted.note(delete(&cx, name).await));
                    }
                }
                assert!(counted.note(delete(&cx, "three").await));
                Ok(Outcome::done())
            }
        });
    registered.unwrap();
    run_once(&bench, &guard, move |cx| {
        let (noted, held) = (noted.clone(), held.clone());
        async move {
            assert!(noted.note(delete(&cx, "three").await));
            assert!(!held.state().is_tripped(), "others are not refused for it");
        }
    })
    .await;
    let errors = errors.take();
    let has = |text: &str| errors.iter().any(|error| error.contains(text));
    assert!(has("it also deletes everything in it"), "{errors:?}");
    assert!(has("Guard::weight"), "{errors:?}");
    assert!(has("4 of 5 when asked to delete"), "{errors:?}");
    assert_eq!(bench.cluster.journal().count("delete", "namespaces"), 2);
    let three = namespaces.get("three").await.unwrap();
    assert_eq!(three.metadata.deletion_timestamp, None);
}
