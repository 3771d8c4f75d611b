//! One controller per kind, and starts that fail.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{Api, PostParams};
use kube::core::GroupVersionKind;
use lariat_cache::Metadata;
use lariat_cluster::Cluster;
use lariat_controller::{
    Context, HandlerResult, Outcome, RegisterError, SharedController, SharedControllerFactory,
    StartError,
};
use lariat_core::{Gvk, ResourceKind, Scope};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{self, Instant};

use crate::bench::{Bench, SECOND, key, settle};

async fn nothing<K: lariat_cache::View>(_: Context<K>) -> HandlerResult {
    Ok(Outcome::done())
}

#[tokio::test(start_paused = true)]
async fn asking_for_a_kind_opens_nothing() {
    let bench = Bench::new().await;
    let _ = bench
        .factory
        .for_kind(Gvk::new("demo.dev", "v1", "Nothing"));
    let _ = bench.factory.for_object::<Pod>();
    bench.start().await;
    time::sleep(60 * SECOND).await;
    assert!(bench.cluster.journal().requests().is_empty());
    assert!(bench.config_maps.status().is_none());
    assert!(bench.factory.status().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_kind_has_one_watch_with_1_10_and_100_handlers() {
    for handlers in [1, 10, 100] {
        let bench = Bench::new().await;
        let calls: Vec<_> = (0..handlers)
            .map(|n| bench.record(&format!("h{n}")))
            .collect();
        bench.start().await;
        for name in ["a", "b", "c"] {
            bench.create(name).await;
        }
        settle().await;
        assert!(calls.iter().all(|calls| calls.len() == 3));
        let journal = bench.cluster.journal();
        assert_eq!(
            journal.count("watch", "configmaps"),
            1,
            "with {handlers} handlers"
        );
        assert_eq!(
            journal.count("list", "configmaps"),
            0,
            "with {handlers} handlers"
        );
    }
}

/// Requests the controller of Pods in one of several ways.
fn pods_somehow(factory: &SharedControllerFactory, number: usize) -> SharedController<Metadata> {
    let gvk = Gvk::new("", "v1", "Pod");
    match number % 4 {
        0 => factory.for_object::<Pod>().view(),
        1 => factory.for_kind(gvk).view(),
        2 => factory
            .for_kind(GroupVersionKind::gvk("", "v1", "Pod"))
            .view(),
        _ => {
            let pods = ResourceKind::new(gvk, "pods", Scope::Namespaced);
            factory.for_resource_kind(pods).view()
        }
    }
}

/// Runs something on a hundred threads at once, inside the runtime.
fn on_a_hundred_threads<T: Send + 'static>(
    run: impl Fn(usize) -> T + Send + Sync + Clone + 'static,
) -> Vec<T> {
    let handle = tokio::runtime::Handle::current();
    let barrier = Arc::new(std::sync::Barrier::new(100));
    let thread = |number| {
        let (run, handle, barrier) = (run.clone(), handle.clone(), Arc::clone(&barrier));
        std::thread::spawn(move || {
            let _runtime = handle.enter();
            barrier.wait();
            run(number)
        })
    };
    let threads: Vec<_> = (0..100).map(thread).collect();
    threads
        .into_iter()
        .map(|thread| thread.join().expect("no thread panics"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_threads_get_one_controller() {
    let cluster = Cluster::builder().start().await.unwrap();
    let factory = SharedControllerFactory::builder(cluster.client()).build();
    factory.start(2).await.unwrap();
    let called = Arc::new(Mutex::new(HashSet::new()));
    let (asked, calls) = (factory.clone(), Arc::clone(&called));
    let pods = on_a_hundred_threads(move |number| {
        let pods = pods_somehow(&asked, number);
        let calls = Arc::clone(&calls);
        let handler = move |_: Context<Metadata>| {
            calls.lock().insert(number);
            async { Ok(Outcome::done()) }
        };
        pods.register_handler(&number.to_string(), handler).unwrap();
        pods.enqueue(&key("x"));
        pods
    });
    assert!(pods.iter().all(|each| each.is_same(&pods[0])));
    assert!(
        pods.iter()
            .all(|each| Arc::ptr_eq(&each.client(), &pods[0].client()))
    );
    let all_called = async {
        while called.lock().len() < 100 {
            time::sleep(Duration::from_millis(5)).await;
        }
    };
    time::timeout(60 * SECOND, all_called)
        .await
        .expect("every handler is called");
    let journal = cluster.journal();
    assert_eq!(
        (
            journal.count("list", "pods"),
            journal.count("watch", "pods")
        ),
        (0, 1)
    );
    assert_eq!(factory.status().len(), 1);
    factory.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_type_a_kind_and_a_resource_are_the_same_controller() {
    let bench = Bench::new().await;
    let typed = bench.factory.for_object::<Node>();
    let kind = bench.factory.for_kind(Gvk::new("", "v1", "Node"));
    let resource = bench.factory.for_resource("", "v1", "nodes").await.unwrap();
    assert!(typed.is_same(&kind) && typed.is_same(&resource));
    assert!(!typed.is_same(&bench.config_maps));
    let error = bench
        .factory
        .for_resource("apps", "v1", "nothings")
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "nothings is not served by the API server under /apis/apps/v1"
    );
}

#[tokio::test(start_paused = true)]
async fn a_type_needs_no_discovery_and_knows_its_scope() {
    let bench = Bench::new().await;
    let nodes = bench.factory.for_object::<Node>();
    nodes.register_handler("none", nothing).unwrap();
    bench.config_maps.register_handler("none", nothing).unwrap();
    bench.start().await;
    let paths: Vec<String> = bench
        .cluster
        .journal()
        .requests()
        .into_iter()
        .map(|request| request.path)
        .collect();
    assert!(
        paths
            .iter()
            .all(|path| path == "/api/v1/nodes" || path == "/api/v1/configmaps")
    );
}

#[tokio::test(start_paused = true)]
async fn a_name_is_used_once_on_a_kind() {
    let bench = Bench::new().await;
    bench.record("log");
    let error = bench
        .config_maps
        .register_handler("log", nothing)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "v1 ConfigMap already has a handler named \"log\"; choose another name"
    );
    let error = bench.config_maps.register_handler("", nothing).unwrap_err();
    assert!(matches!(error, RegisterError::EmptyName { .. }));
    bench
        .factory
        .for_object::<Pod>()
        .register_handler("log", nothing)
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_start_without_workers_or_a_second_start_is_refused() {
    let bench = Bench::new().await;
    assert_eq!(
        bench.factory.start(0).await.unwrap_err(),
        StartError::NoWorkers { gvk: None }
    );
    bench.start().await;
    assert_eq!(
        bench.factory.start(1).await.unwrap_err(),
        StartError::AlreadyStarted
    );
}

#[tokio::test(start_paused = true)]
async fn an_unknown_kind_fails_the_start_by_name_and_leaves_nothing_behind() {
    let bench = Bench::new().await;
    let widgets = bench.factory.for_kind(Gvk::new("demo.dev", "v1", "Widget"));
    widgets.register_handler("none", nothing).unwrap();
    let calls = bench.record("good");
    bench.create("a").await;
    let error = bench.factory.start(1).await.unwrap_err();
    let text = lariat_core::describe(&error);
    assert!(
        text.starts_with(
            "1 kind cannot be synced: demo.dev/v1 Widget is not \
             served by the API server"
        ),
        "{text}"
    );
    settle().await;
    let requests = bench.cluster.journal().requests().len();
    time::sleep(600 * SECOND).await;
    assert_eq!(
        bench.cluster.journal().requests().len(),
        requests,
        "nothing runs any more"
    );
    assert!(calls.len() <= 1);
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_server_fails_the_start_by_kind_and_reason() {
    // Without a socket: paused time does not wait for one.
    let refused = tower::service_fn(async |_: http::Request<kube::client::Body>| {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        Err::<http::Response<kube::client::Body>, _>(refused)
    });
    let client = kube::Client::new(refused, "default");
    let builder = SharedControllerFactory::builder(client);
    let factory = builder.sync_timeout(Duration::from_secs(5)).build();
    factory
        .for_object::<Pod>()
        .register_handler("none", nothing)
        .unwrap();
    factory
        .for_object::<ConfigMap>()
        .register_handler("none", nothing)
        .unwrap();
    let text = lariat_core::describe(&factory.start(1).await.unwrap_err());
    assert!(
        text.contains("2 kinds not synced after 5s: v1 ConfigMap: watch: no answer"),
        "{text}"
    );
    assert!(
        text.contains("; v1 Pod: watch: no answer from the API server"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn kinds_and_handlers_that_come_later_start_by_themselves() {
    let bench = Bench::new().await;
    bench.create("a").await;
    bench.start().await;
    let calls = bench.record("late");
    settle().await;
    assert_eq!(calls.names(), ["a"]);
    assert_eq!(bench.cluster.journal().count("watch", "configmaps"), 1);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_factory_ends_everything_also_when_handlers_hold_handles() {
    let bench = Bench::new().await;
    let held = Arc::new(());
    let witness = Arc::downgrade(&held);
    let handle = bench.config_maps.clone();
    let handler = move |_: Context<ConfigMap>| {
        let _ = (&held, &handle);
        async { Ok(Outcome::done()) }
    };
    bench
        .config_maps
        .register_handler("holds", handler)
        .unwrap();
    bench.start().await;
    let Bench {
        cluster,
        factory,
        config_maps: outside,
        ..
    } = bench;
    drop(factory);
    settle().await;
    assert!(witness.upgrade().is_none(), "the handler is dropped");
    let requests = cluster.journal().requests().len();
    time::sleep(3600 * SECOND).await;
    assert_eq!(
        cluster.journal().requests().len(),
        requests,
        "the watch is closed and not opened again"
    );
    // A handle that is left is harmless.
    outside.enqueue(&key("a"));
    assert!(outside.status().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_type_whose_kind_is_not_installed_fails_the_start_immediately() {
    let bench = Bench::new().await;
    let widgets = ResourceKind::new(
        Gvk::new("demo.dev", "v1", "Widget"),
        "widgets",
        Scope::Namespaced,
    );
    let widgets = bench.factory.for_resource_kind(widgets);
    widgets.register_handler("none", nothing).unwrap();
    let start = Instant::now();
    let text = lariat_core::describe(&bench.factory.start(1).await.unwrap_err());
    assert!(
        text.contains("demo.dev/v1 Widget: not served by the API server"),
        "{text}"
    );
    assert!(start.elapsed() < SECOND);
}

#[tokio::test(start_paused = true)]
async fn handler_registered_on_a_thread_without_runtime_is_called() {
    let bench = Bench::new().await;
    // The cache of one kind runs already, that of the other kind starts with its handler.
    let _used = bench.config_maps.cache();
    bench.start().await;
    let (config_maps, nodes) = (
        bench.config_maps.clone(),
        bench.factory.for_object::<Node>(),
    );
    let called = Arc::new(Mutex::new(HashSet::new()));
    let (of_map, of_node) = (Arc::clone(&called), Arc::clone(&called));
    let on_map = move |cx: Context<ConfigMap>| {
        of_map.lock().insert(cx.key().to_string());
        async { HandlerResult::Ok(Outcome::done()) }
    };
    let on_node = move |cx: Context<Node>| {
        of_node.lock().insert(cx.key().to_string());
        async { HandlerResult::Ok(Outcome::done()) }
    };
    let plain = std::thread::spawn(move || {
        config_maps.register_handler("map", on_map).map(drop)?;
        nodes.register_handler("node", on_node).map(drop)
    });
    plain.join().expect("no panic").expect("registered");
    bench.create("a").await;
    let node = serde_json::from_value(json!({"metadata": {"name": "b"}})).expect("a Node");
    let nodes = Api::<Node>::all(bench.cluster.client());
    let created = nodes.create(&PostParams::default(), &node).await;
    created.expect("created");
    settle().await;
    let expected = ["default/a", "b"].map(str::to_owned);
    assert_eq!(*called.lock(), HashSet::from(expected));
}
