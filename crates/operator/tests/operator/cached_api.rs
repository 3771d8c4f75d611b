//! Tests of reads and writes through a handle of a kind.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use lariat_cache::Query;
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_controller::{CallOutcome, Outcome};
use lariat_core::{Gvk, ObjectKey};
use lariat_operator::CachedApi;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time;

use crate::bench::{Bench, SECOND, Widget, WidgetSpec, WidgetStatus, key, settle};

fn config_map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({
        "metadata": {"namespace": "default", "name": name, "labels": {"app": value}},
        "data": {"value": value},
    }))
    .expect("it is one")
}

fn value(object: &ConfigMap) -> &str {
    object.data.as_ref().map_or("", |data| &data["value"])
}

#[tokio::test(start_paused = true)]
async fn reads_send_nothing_and_are_never_older_than_own_writes() {
    let bench = Bench::new().await;
    let api = bench.operator.api::<ConfigMap>();
    bench.start().await;
    // The watch sends nothing any more.
    let rule = Rule::new(Action::Freeze)
        .verb("watch")
        .resource("configmaps");
    bench.cluster.faults().add(rule);
    api.create(&config_map("a", "1")).await.unwrap();
    assert_eq!(value(&api.get(&key("a")).await.unwrap()), "1");
    let patch = Patch::Merge(json!({"data": {"value": "2"}}));
    let patched = api.patch(&key("a"), &PatchParams::default(), &patch).await;
    assert_eq!(value(&patched.unwrap()), "2");
    assert_eq!(value(&api.get(&key("a")).await.unwrap()), "2");
    let replaced = api.replace(&config_map("a", "3")).await.unwrap();
    assert_eq!(value(&replaced), "3");
    let labelled = Query::in_namespace("default").labels("app=3".parse().unwrap());
    assert_eq!(api.list(&labelled).await.unwrap().len(), 1);
    api.delete(&key("a"), &DeleteParams::default())
        .await
        .unwrap();
    assert!(api.get_opt(&key("a")).await.unwrap().is_none());
    assert_eq!(bench.cluster.journal().count("get", "configmaps"), 0);
    assert_eq!(bench.cluster.journal().count("list", "configmaps"), 0);
}

#[tokio::test(start_paused = true)]
async fn the_first_read_waits_until_the_cache_is_filled() {
    let bench = Bench::new().await;
    bench.create("a", 1).await;
    bench.start().await;
    // The kind is first used now.
    let widgets = CachedApi::new(&bench.widgets);
    assert_eq!(widgets.get(&key("a")).await.unwrap().spec.size, 1);
    assert_eq!(widgets.list(&Query::all()).await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_miss_asks_the_api_server_where_that_is_wanted() {
    let bench = Bench::new().await;
    let cached = bench.operator.api::<Widget>();
    let falls_back = cached.clone().with_fallback();
    let rule = Rule::new(Action::Freeze).verb("watch").resource("widgets");
    bench.cluster.faults().add(rule);
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    assert!(cached.get_opt(&key("a")).await.unwrap().is_none());
    assert_eq!(falls_back.get(&key("a")).await.unwrap().spec.size, 1);
    assert_eq!(bench.cluster.journal().count("get", "widgets"), 1);
    let error = falls_back.get(&key("b")).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    assert_eq!(
        error.to_string(),
        "there is no demo.dev/v1 Widget default/b"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_names_verb_kind_and_key() {
    let bench = Bench::new().await;
    let api = bench.operator.api::<ConfigMap>();
    bench.start().await;
    let created = api.create(&config_map("a", "1")).await.unwrap();
    let error = api.create(&config_map("a", "1")).await.unwrap_err();
    assert!(error.is_already_exists());
    let text = lariat_core::describe(&error);
    assert!(
        text.starts_with("cannot create v1 ConfigMap default/a: "),
        "{text}"
    );
    let mut stale = created.clone();
    api.replace(&config_map("a", "2")).await.unwrap();
    stale.data = None;
    let error = api.replace(&stale).await.unwrap_err();
    assert!(error.is_conflict(), "{error:?}");
    let other = DeleteParams::default().preconditions(Preconditions {
        uid: Some("other".to_owned()),
        resource_version: None,
    });
    assert!(
        api.delete(&key("a"), &other)
            .await
            .unwrap_err()
            .is_conflict()
    );
    let gone = api.delete(&key("b"), &DeleteParams::default()).await;
    assert!(gone.unwrap_err().is_not_found());
    let nowhere: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "a"}})).unwrap();
    let error = api.create(&nowhere).await.unwrap_err().to_string();
    assert_eq!(error, "v1 ConfigMap \"a\" needs a namespace");
}

#[tokio::test(start_paused = true)]
async fn names_are_generated_and_status_is_a_part_of_its_own() {
    let bench = Bench::new().await;
    let api = bench.operator.api::<Widget>();
    bench.start().await;
    let mut widget = Widget::new("", WidgetSpec { size: 1 });
    widget.metadata.namespace = Some("default".to_owned());
    widget.metadata.name = None;
    widget.metadata.generate_name = Some("gen-".to_owned());
    let mut widget = api.create(&widget).await.unwrap();
    let name = widget.metadata.name.clone().unwrap();
    assert!(name.starts_with("gen-") && name.len() > 4, "{name}");
    widget.spec.size = 7;
    let size = |widget: &Widget| widget.status.as_ref().and_then(|status| status.size);
    widget.status = Some(WidgetStatus {
        size: Some(1),
        ..WidgetStatus::default()
    });
    let widget = api.replace_status(&widget).await.unwrap();
    assert_eq!((widget.spec.size, size(&widget)), (1, Some(1)));
    let patch = Patch::Merge(json!({"status": {"size": 2}}));
    let (name, params) = (key(&name), PatchParams::default());
    let widget = api.patch_status(&name, &params, &patch).await.unwrap();
    assert_eq!(size(&widget), Some(2));
    assert_eq!(size(&api.get(&name).await.unwrap()), Some(2));
}

#[tokio::test(start_paused = true)]
async fn dynamic_kinds_and_those_without_namespaces_are_the_same() {
    let bench = Bench::new().await;
    let namespaces = bench.operator.api::<Namespace>();
    let widgets: CachedApi<DynamicObject> =
        CachedApi::new(&bench.factory.for_kind(Gvk::new("demo.dev", "v1", "Widget")));
    bench.start().await;
    let shop: Namespace = serde_json::from_value(json!({"metadata": {"name": "shop"}})).unwrap();
    namespaces.create(&shop).await.unwrap();
    let found = namespaces.get(&ObjectKey::cluster("shop")).await.unwrap();
    assert_eq!(found.metadata.name.as_deref(), Some("shop"));
    let widget: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "demo.dev/v1", "kind": "Widget",
        "metadata": {"namespace": "shop", "name": "w"}, "spec": {"size": 3},
    }))
    .unwrap();
    widgets.create(&widget).await.unwrap();
    let shop = ObjectKey::namespaced("shop", "w");
    assert_eq!(widgets.get(&shop).await.unwrap().data["spec"]["size"], 3);
    // Typed and dynamic handles share a cache.
    let typed = bench.operator.api::<Widget>();
    assert_eq!(typed.get(&shop).await.unwrap().spec.size, 3);
    assert_eq!(bench.cluster.journal().count("watch", "widgets"), 1);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_decode_is_an_error_of_its_own() {
    #[derive(Debug, serde::Deserialize)]
    struct Odd {
        #[serde(rename = "spec")]
        _spec: Vec<String>,
    }
    let bench = Bench::new().await;
    let pods = bench.operator.api::<Pod>();
    let odd: CachedApi<Odd> = CachedApi::new(&bench.widgets.view());
    bench.start().await;
    bench.create("a", 1).await;
    settle().await;
    let error = odd.get(&key("a")).await.unwrap_err().to_string();
    assert!(
        error.contains("demo.dev/v1 Widget") && error.contains("default/a"),
        "{error}"
    );
    assert!(pods.list(&Query::all()).await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_decode_ends_the_tries_as_where_the_cache_is_read() {
    #[derive(Debug, serde::Deserialize)]
    struct Odd {
        #[serde(rename = "spec")]
        _spec: Vec<String>,
    }
    let bench = Bench::new().await;
    let odd: CachedApi<Odd> = CachedApi::new(&bench.widgets.view());
    bench
        .operator
        .reconciler("reads", &bench.widgets)
        .register(move |_| {
            let odd = odd.clone();
            async move {
                odd.get(&key("own")).await?;
                Ok(Outcome::done())
            }
        })
        .unwrap();
    bench.start().await;
    bench.create("own", 1).await;
    bench.create("reader", 1).await;
    settle().await;
    let ended = |name: &str| bench.widgets.history_of(&key(name)).pop().unwrap().calls[0].outcome;
    assert_eq!(ended("own"), CallOutcome::Terminal);
    assert_eq!(ended("reader"), CallOutcome::Failed, "own may be corrected");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_is_an_error_that_says_so() {
    let bench = Bench::new().await;
    bench.start().await;
    let gadgets: CachedApi<DynamicObject> =
        CachedApi::new(&bench.factory.for_kind(Gvk::new("demo.dev", "v1", "Gadget")));
    let error = gadgets.get(&key("a")).await.unwrap_err().to_string();
    assert!(error.contains("demo.dev/v1 Gadget"), "{error}");
    assert!(
        error.contains("is its CRD installed and established?"),
        "{error}"
    );
    let error = gadgets
        .delete(&key("a"), &DeleteParams::default())
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("demo.dev/v1 Gadget"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_that_finishes_while_the_caches_have_stopped_still_reads() {
    let bench = Bench::new().await;
    let config_maps = bench.operator.api::<ConfigMap>();
    let (began, seen) = (Arc::new(Notify::new()), Arc::new(Mutex::new(None)));
    let (begin, see) = (Arc::clone(&began), Arc::clone(&seen));
    bench
        .operator
        .reconciler("reads", &bench.widgets)
        .register(move |_| {
            let (config_maps, begin, see) =
                (config_maps.clone(), Arc::clone(&begin), Arc::clone(&see));
            async move {
                begin.notify_one();
                time::sleep(SECOND).await;
                let found = config_maps.get(&key("a")).await?;
                *see.lock() = Some(value(&found).to_owned());
                Ok(Outcome::done())
            }
        })
        .unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(bench.cluster.client());
    let created = config_map("a", "1");
    api.create(&PostParams::default(), &created).await.unwrap();
    bench.start().await;
    bench.create("a", 1).await;
    began.notified().await;
    // Within the second the reconciler takes, not the grace period of 30 seconds.
    bench.operator.stop().await.unwrap();
    assert_eq!(seen.lock().as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn content_that_is_not_cached_is_fetched() {
    use lariat_cache::{KindOptions, Storage};
    use lariat_controller::{ControllerOptions, SharedControllerFactory};

    let bench = Bench::new().await;
    bench.create("a", 1).await;
    let on_demand =
        ControllerOptions::default().cache(KindOptions::default().storage(Storage::OnDemand));
    let factory = SharedControllerFactory::builder(bench.cluster.client())
        .default_options(on_demand)
        .build();
    let widgets = CachedApi::new(&factory.for_object::<Widget>());
    factory.start(1).await.unwrap();
    assert_eq!(widgets.get(&key("a")).await.unwrap().spec.size, 1);
    let all = widgets.list(&Query::all()).await.unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(bench.cluster.journal().count("get", "widgets"), 2);
    assert!(widgets.get_opt(&key("b")).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn content_of_many_objects_is_fetched_by_one_list() {
    use lariat_cache::{KindOptions, Storage};
    use lariat_controller::{ControllerOptions, SharedControllerFactory};

    let bench = Bench::new().await;
    for size in 0..20 {
        bench.create(&format!("w{size:02}"), size).await;
    }
    let label = json!({"metadata": {"labels": {"app": "web"}}});
    for size in 10..20 {
        bench.merge(&format!("w{size:02}"), label.clone()).await;
    }
    let on_demand =
        ControllerOptions::default().cache(KindOptions::default().storage(Storage::OnDemand));
    let factory = SharedControllerFactory::builder(bench.cluster.client())
        .default_options(on_demand)
        .build();
    let widgets = CachedApi::new(&factory.for_object::<Widget>());
    factory.start(1).await.unwrap();
    let journal = bench.cluster.journal();
    let before = (
        journal.count("get", "widgets"),
        journal.count("list", "widgets"),
    );
    let web = Query::in_namespace("default").labels("app=web".parse().unwrap());
    for (query, expected) in [(Query::all(), 0..20), (web, 10..20)] {
        let all = widgets.list(&query).await.unwrap();
        let sizes: Vec<i64> = all.iter().map(|widget| widget.spec.size).collect();
        assert_eq!(sizes, expected.collect::<Vec<_>>(), "{query:?}");
    }
    let journal = bench.cluster.journal();
    let after = (
        journal.count("get", "widgets"),
        journal.count("list", "widgets"),
    );
    assert_eq!(after, (before.0, before.1 + 2));
    let lists = journal.select().verb("list").resource("widgets");
    let last = lists.requests().pop().map(|request| request.query);
    assert_eq!(last.as_deref(), Some("limit=500&labelSelector=app%3Dweb"));

    for size in 20..520 {
        bench.create(&format!("w{size:03}"), size).await;
    }
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let before = bench.cluster.journal().count("list", "widgets");
    assert_eq!(widgets.list(&Query::all()).await.unwrap().len(), 520);
    let pages = bench.cluster.journal().count("list", "widgets") - before;
    assert_eq!(pages, 2, "500 objects in a page");
}

#[tokio::test(start_paused = true)]
async fn values_of_secrets_stay_out_of_errors_of_writes() {
    use k8s_openapi::api::core::v1::Secret;
    let bench = Bench::new().await;
    let api = bench.operator.api::<Secret>();
    bench.start().await;
    let rejects = Rule::new(Action::Reject("hunter2 is no password".to_owned()));
    bench
        .cluster
        .faults()
        .add(rejects.resource("secrets").verb("create"));
    let secret = json!({"metadata": {"name": "key", "namespace": "default"},
        "stringData": {"password": "hunter2"}});
    let secret: Secret = serde_json::from_value(secret).unwrap();
    let error = api.create(&secret).await.expect_err("refused");
    let text = format!("{error:?}");
    assert!(
        text.contains("cannot create v1 Secret default/key"),
        "{text}"
    );
    assert!(text.contains("may quote the Secret"), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    // The error of a read names the missing permission.
    let refuses = Rule::new(Action::Refuse(Refusal::new(http::StatusCode::FORBIDDEN)));
    bench
        .cluster
        .faults()
        .add(refuses.resource("secrets").verb("get"));
    let error = api.get_live(&key("key")).await.expect_err("refused");
    assert!(!format!("{error:?}").contains("may quote"), "{error:?}");
}
