//! Guards and plans by client: whose writes they see, on which task, and through which handle.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Event};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use lariat_controller::Outcome;
use lariat_core::describe;
use lariat_operator::{
    ApiError, Budget, CachedApi, Desired, Guard, Immutable, Operator, Reconcile,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::bench::{Bench, SECOND, Widget, settle};
use crate::guard::run_once;

fn config(name: &str) -> ConfigMap {
    let object = json!({"metadata": {"name": name, "namespace": "default"}});
    serde_json::from_value(object).expect("a ConfigMap")
}

/// The ways from a call to a write.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    /// The client of the call, in three spawned tasks.
    Spawned,
    /// The client of the call, on a blocking thread.
    Blocking,
    /// A captured handle, on the task of the call.
    Captured,
    /// A captured client of the factory, on the task of the call.
    OfFactory,
    /// A captured handle that is bound to the call, in spawned tasks.
    Within,
    /// A captured handle, in spawned tasks.
    CapturedSpawned,
}

const WAYS: [Way; 6] = [
    Way::Spawned,
    Way::Blocking,
    Way::Captured,
    Way::OfFactory,
    Way::Within,
    Way::CapturedSpawned,
];

/// The handles that a reconciler captures.
#[derive(Clone)]
struct Captured {
    configs: CachedApi<ConfigMap>,
    client: kube::Client,
}

/// Creates three ConfigMaps in a call.
async fn creates(cx: &Reconcile<Widget>, captured: &Captured, way: Way) {
    let mut tasks = JoinSet::new();
    for number in 0..3 {
        let map = config(&format!("m{number}"));
        let (client, configs) = (cx.client(), captured.configs.clone());
        let api: Api<ConfigMap> = Api::namespaced(client, "default");
        let params = PostParams::default();
        match way {
            Way::Spawned => {
                tasks.spawn(async move { api.create(&params, &map).await.is_ok() });
            }
            Way::Blocking => {
                let handle = tokio::runtime::Handle::current();
                let create = move || handle.block_on(api.create(&params, &map)).is_ok();
                tasks.spawn_blocking(create);
            }
            Way::Captured => {
                let _: Result<_, ApiError> = configs.create(&map).await;
            }
            Way::OfFactory => {
                let api: Api<ConfigMap> = Api::namespaced(captured.client.clone(), "default");
                let _ = api.create(&params, &map).await;
            }
            Way::Within => {
                let configs = configs.within(cx);
                tasks.spawn(async move { configs.create(&map).await.is_ok() });
            }
            Way::CapturedSpawned => {
                tasks.spawn(async move { configs.create(&map).await.is_ok() });
            }
        }
    }
    tasks.join_all().await;
}

/// Runs a reconciler that creates three ConfigMaps; returns how many there are.
async fn created(bench: &Bench, guard: &Guard, way: Way) -> usize {
    let captured = Captured {
        configs: bench.operator.api::<ConfigMap>(),
        client: bench.factory.client(),
    };
    run_once(bench, guard, move |cx| {
        let captured = captured.clone();
        async move { creates(&cx, &captured, way).await }
    })
    .await;
    let api: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "default");
    let all = api
        .list(&ListParams::default())
        .await
        .expect("listed")
        .items;
    let is_ours = |map: &&ConfigMap| {
        map.metadata
            .name
            .as_ref()
            .is_some_and(|it| it.starts_with('m'))
    };
    all.iter().filter(is_ours).count()
}

#[tokio::test(start_paused = true)]
async fn guard_counts_writes_of_call_by_every_client() {
    for way in WAYS {
        let bench = Bench::new().await;
        let guard = Guard::new().writes(Budget::rate(1, Duration::MAX));
        let count = created(&bench, &guard, way).await;
        // The documented exception: nothing connects a captured handle on another task with the call.
        let expected = if way == Way::CapturedSpawned { 3 } else { 1 };
        assert_eq!(count, expected, "{way:?}");
        assert_eq!(guard.state().is_tripped(), expected == 1, "{way:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn plan_covers_writes_by_every_client() {
    for way in WAYS {
        let bench = Bench::new().await;
        let operator = bench.operator.clone().plan_only();
        let guard = Guard::new().writes(Budget::rate(0, Duration::MAX));
        assert_eq!(created(&bench, &guard, way).await, 0, "{way:?}");
        let plan = operator.planned();
        assert_eq!(plan.len(), 3, "{way:?}: {plan}");
        let is_known = way != Way::CapturedSpawned;
        for write in &plan {
            assert_eq!(write.reconciler().is_some(), is_known, "{way:?}: {plan}");
        }
        assert!(!guard.state().is_tripped());
    }
}

#[tokio::test(start_paused = true)]
async fn plan_covers_writes_outside_of_calls() {
    let bench = Bench::new().await;
    // Handed out before.
    let (early, captured) = (bench.factory.client(), bench.operator.api::<ConfigMap>());
    let operator = bench.operator.clone().plan_only();
    let mut missing = CustomResourceDefinition::clone(&Widget::crd());
    missing.metadata.name = Some("gadgets.demo.dev".to_owned());
    missing.spec.names.plural = "gadgets".to_owned();
    missing.spec.names.kind = "Gadget".to_owned();
    missing.spec.names.singular = Some("gadget".to_owned());
    operator.installs(missing);
    bench.start().await;
    for client in [
        early,
        bench.factory.client(),
        bench.factory.unfenced_client(),
    ] {
        let api: Api<ConfigMap> = Api::namespaced(client, "default");
        api.create(&PostParams::default(), &config("m"))
            .await
            .expect("a dry run");
    }
    let mut outside = JoinSet::new();
    outside.spawn(async move { captured.create(&config("m")).await.is_ok() });
    assert_eq!(outside.join_all().await, [true], "a dry run");
    let kind = bench.factory.for_object::<ConfigMap>().client();
    let api = kind.api(Some("default")).await.expect("it is served");
    let _ = api.delete("m", &DeleteParams::default()).await;
    let about = k8s_openapi::api::core::v1::ObjectReference::default();
    operator
        .events()
        .publish(&about, lariat_operator::Event::normal("Tested", "nothing"));
    operator.events().flush().await;
    let configs: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "default");
    assert!(configs.get_opt("m").await.unwrap().is_none());
    let crds: Api<CustomResourceDefinition> = Api::all(bench.cluster.client());
    assert!(crds.get_opt("gadgets.demo.dev").await.unwrap().is_none());
    let events: Api<Event> = Api::all(bench.cluster.client());
    assert!(
        events
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    let plan = operator.planned().to_string();
    for expected in [
        "outside of calls: would create v1 ConfigMap default/m, 4 times",
        "would create apiextensions.k8s.io/v1 CustomResourceDefinition gadgets.demo.dev",
        "would delete v1 ConfigMap default/m, but is refused: 404",
    ] {
        assert!(plan.contains(expected), "{expected}: {plan}");
    }
}

/// Applies an immutable ConfigMap with a value, and replaces it if the value differs.
async fn replaces(cx: Reconcile<Widget>, value: &'static str) -> Result<(), String> {
    let web: Value = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "immutable": true,
        "data": {"key": value},
    });
    let set = cx.apply_set("main").on_immutable(Immutable::Replace);
    let applied = set.apply(Desired::new().with_value(web)).await;
    applied
        .map(drop)
        .map_err(|error| describe(&error).to_string())
}

#[tokio::test(start_paused = true)]
async fn guard_does_not_trip_between_deletion_and_creation() {
    for (budget, replaced) in [(1, false), (2, true)] {
        let bench = Bench::new().await;
        let first = Guard::new();
        run_once(&bench, &first, |cx| async move {
            replaces(cx, "1").await.expect("applied")
        })
        .await;
        bench.operator.stop().await.expect("stopped");
        let guard = Guard::new().writes(Budget::rate(budget, 10_000 * SECOND));
        let factory =
            lariat_controller::SharedControllerFactory::builder(bench.cluster.client()).build();
        let operator = Operator::new("widgeteer", &factory);
        let errors = Arc::<Mutex<Vec<String>>>::default();
        let noted = Arc::clone(&errors);
        operator
            .reconciler("once", &factory.for_object::<Widget>())
            .guard(guard.clone())
            .register(move |cx: Reconcile<Widget>| {
                let noted = Arc::clone(&noted);
                async move {
                    let error = replaces(cx, "2").await.err();
                    noted.lock().extend(error);
                    Ok(Outcome::done())
                }
            })
            .expect("registered");
        operator.start(1).await.expect("started");
        settle().await;
        let api: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "default");
        let web = api
            .get_opt("web")
            .await
            .expect("read")
            .expect("it exists in any case");
        let expected = if replaced { "2" } else { "1" };
        assert_eq!(web.data.unwrap()["key"], expected, "{:?}", errors.lock());
        assert_eq!(guard.state().is_tripped(), !replaced);
        operator.stop().await.expect("stopped");
    }
}
