//! Lasso's guarantees, and defects of lasso that Lariat does not have.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use lariat_cache::ClientIdentity;
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_controller::{Context, HandlerResult, Outcome, SharedControllerFactory};
use lariat_core::Gvk;
use parking_lot::Mutex;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{self, Instant};

use crate::bench::{Bench, SECOND, key, recorder, settle};

/// §2, 1: lasso compacts the list of handlers while a run iterates over it.
#[tokio::test(start_paused = true)]
async fn deregistering_during_a_run_neither_skips_nor_repeats_the_others() {
    let bench = Bench::new().await;
    let (entered, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (signal, wait) = (Arc::clone(&entered), Arc::clone(&go));
    let (_, handler) = recorder(move |_| {
        let (signal, wait) = (Arc::clone(&signal), Arc::clone(&wait));
        async move {
            signal.notify_one();
            wait.notified().await;
            Ok(Outcome::done())
        }
    });
    let first = bench
        .config_maps
        .register_handler("first", handler)
        .unwrap();
    let rest: Vec<_> = (0..5).map(|n| bench.record(&format!("h{n}"))).collect();
    bench.create("a").await;
    bench.start().await;
    entered.notified().await;
    let mut leaving = JoinSet::new();
    leaving.spawn(first.deregister());
    settle().await;
    go.notify_one();
    leaving.join_next().await.unwrap().unwrap();
    settle().await;
    let counts: Vec<usize> = rest.iter().map(|calls| calls.len()).collect();
    assert_eq!(counts, [1; 5]);
}

/// §2, 2: lasso's record of deletions starves objects that change while they are being deleted.
#[tokio::test(start_paused = true)]
async fn terminating_pods_are_handled_immediately_with_every_change() {
    let bench = Bench::new().await;
    let pods = bench.factory.for_object::<Pod>();
    let seen: Arc<Mutex<Vec<(bool, String)>>> = Arc::default();
    let log = Arc::clone(&seen);
    pods.register_handler("log", move |cx: Context<Pod>| {
        let pod = cx.object().ok().flatten();
        let phase = |pod: &Pod| pod.metadata.annotations.clone().unwrap_or_default();
        let note = pod
            .as_deref()
            .map(phase)
            .and_then(|notes| notes.get("note").cloned());
        let deleting = pod.is_some_and(|pod| pod.metadata.deletion_timestamp.is_some());
        log.lock().push((deleting, note.unwrap_or_default()));
        async { Ok(Outcome::done()) }
    })
    .unwrap();
    bench.start().await;
    let api: Api<Pod> = Api::namespaced(bench.cluster.client(), "default");
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "p"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    }))
    .unwrap();
    api.create(&PostParams::default(), &pod).await.unwrap();
    api.delete("p", &DeleteParams::default().grace_period(600))
        .await
        .unwrap();
    settle().await;
    seen.lock().clear();
    for note in ["1", "2", "3"] {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"note": note}}}));
        api.patch("p", &PatchParams::default(), &patch)
            .await
            .unwrap();
        settle().await;
    }
    let expected = ["1", "2", "3"].map(|note| (true, note.to_owned()));
    assert_eq!(*seen.lock(), expected);
}

/// §2, 2, for Namespaces, whose finalizers are in the spec.
#[tokio::test(start_paused = true)]
async fn terminating_namespaces_are_handled_immediately_with_every_change() {
    let bench = Bench::new().await;
    let namespaces = bench.factory.for_object::<Namespace>();
    let changes = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&changes);
    namespaces
        .register_handler("log", move |cx: Context<Namespace>| {
            let deleting = cx.raw().is_some_and(|namespace| namespace.is_deleting());
            count.fetch_add(usize::from(deleting), Ordering::SeqCst);
            async { Ok(Outcome::done()) }
        })
        .unwrap();
    bench.start().await;
    let api: Api<Namespace> = Api::all(bench.cluster.client());
    let held = json!({"metadata": {"name": "n", "finalizers": ["demo.dev/hold"]}});
    let held: Namespace = serde_json::from_value(held).unwrap();
    api.create(&PostParams::default(), &held).await.unwrap();
    api.delete("n", &DeleteParams::default()).await.unwrap();
    time::sleep(5 * SECOND).await;
    changes.store(0, Ordering::SeqCst);
    for note in ["1", "2", "3"] {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"note": note}}}));
        api.patch("n", &PatchParams::default(), &patch)
            .await
            .unwrap();
        settle().await;
    }
    assert_eq!(changes.load(Ordering::SeqCst), 3);
}

/// §3, `multiple_finalizers_race`: the race for which lasso records deletions.
#[tokio::test(start_paused = true)]
async fn two_finalizers_are_taken_off_once_each_and_the_last_call_has_no_object() {
    let bench = Bench::new().await;
    let cleaned = Arc::new(Mutex::new(Vec::new()));
    for name in ["one", "two"] {
        let log = Arc::clone(&cleaned);
        let handler = move |cx: Context<ConfigMap>| {
            let log = Arc::clone(&log);
            async move {
                let Some(object) = cx.object()? else {
                    return Ok(Outcome::done());
                };
                let mut finalizers = object.metadata.finalizers.clone().unwrap_or_default();
                let mine = format!("demo.dev/{name}");
                if object.metadata.deletion_timestamp.is_none() || !finalizers.contains(&mine) {
                    return Ok(Outcome::done());
                }
                log.lock().push(name);
                finalizers.retain(|each| *each != mine);
                let version = object.metadata.resource_version.clone();
                let metadata = json!({"finalizers": finalizers, "resourceVersion": version});
                let patch = Patch::Merge(json!({"metadata": metadata}));
                let api: Api<ConfigMap> = Api::namespaced(cx.client(), "default");
                let updated = api
                    .patch(cx.key().name(), &PatchParams::default(), &patch)
                    .await?;
                HandlerResult::Ok(Outcome::done().with_updated(updated))
            }
        };
        bench.config_maps.register_handler(name, handler).unwrap();
    }
    let calls = bench.record("log");
    // The watch is late, as in lasso's test.
    let late = Action::Delay(Duration::from_millis(200));
    bench.start().await;
    bench
        .cluster
        .faults()
        .add(Rule::new(late).resource("configmaps").verb("watch"));
    bench
        .apply(json!({"metadata": {"name": "a", "finalizers": ["demo.dev/one", "demo.dev/two"]}}))
        .await;
    settle().await;
    bench.delete("a").await;
    time::sleep(5 * SECOND).await;
    assert_eq!(*cleaned.lock(), ["one", "two"], "once each");
    assert_eq!(calls.last().value, None);
    let failures: u64 = bench
        .status()
        .handlers
        .iter()
        .map(|handler| handler.failures)
        .sum();
    assert_eq!(
        failures, 0,
        "no conflict: each saw what the other had written"
    );
}

/// §3, `no_registered_handlers`.
#[tokio::test(start_paused = true)]
async fn a_deletion_without_handlers_is_dropped() {
    let bench = Bench::new().await;
    bench.config_maps.enqueue(&key("a"));
    bench.start().await;
    bench.create("a").await;
    bench.delete("a").await;
    settle().await;
    assert_eq!(bench.status().queue.depth(), 1, "the key that was enqueued");
    time::sleep(61 * SECOND).await;
    assert!(bench.config_maps.status().is_none(), "no handler came");
}

/// §2, 4: lasso keeps every enqueue before the start, duplicates included.
#[tokio::test(start_paused = true)]
async fn what_comes_before_the_start_takes_no_more_room_than_its_keys() {
    let bench = Bench::new().await;
    bench.record("log");
    for number in 0..100_000_u32 {
        bench
            .config_maps
            .enqueue(&key(&format!("o{}", number % 10)));
    }
    let queue = bench.status().queue;
    assert_eq!((queue.depth(), queue.delayed), (10, 0));
}

/// §2, 5: lasso's health loop outlives the factory of a removed cluster.
#[tokio::test(start_paused = true)]
async fn an_unreachable_cluster_leaves_nothing_behind_when_its_factory_is_dropped() {
    let bench = Bench::new().await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    let down = Refusal::new(http::StatusCode::SERVICE_UNAVAILABLE);
    bench.cluster.faults().add(Rule::new(Action::Refuse(down)));
    {
        let factory = SharedControllerFactory::builder(bench.cluster.client())
            .sync_timeout(5 * SECOND)
            .build();
        let maps = factory.for_object::<ConfigMap>();
        maps.register_handler("log", |_: Context<ConfigMap>| async { Ok(Outcome::done()) })
            .unwrap();
        factory.start(2).await.unwrap_err();
        maps.register_handler("late", |_: Context<ConfigMap>| async {
            Ok(Outcome::done())
        })
        .unwrap();
    }
    time::sleep(60 * SECOND).await;
    let left = Handle::current().metrics().num_alive_tasks();
    assert_eq!(left, tasks);
}

/// §2, 8: lasso loses the user agent of a factory when a controller is requested by its object.
#[tokio::test(start_paused = true)]
async fn an_identity_holds_however_the_controller_was_asked_for() {
    let bench = Bench::new().await;
    let agent = || ClientIdentity::default().user_agent("ours/1");
    let gvk = Gvk::new("", "v1", "ConfigMap");
    let by_type = bench
        .factory
        .for_object::<ConfigMap>()
        .with_identity(agent())
        .unwrap();
    let by_kind = bench.factory.for_kind(gvk).with_identity(agent()).unwrap();
    assert!(
        Arc::ptr_eq(&by_type.client(), &by_kind.client()),
        "and one client serves both"
    );
    assert!(!Arc::ptr_eq(&by_type.client(), &bench.config_maps.client()));
}

/// §2, 9: in lasso one slow or failing handler delays and replays every other of its kind.
#[tokio::test(start_paused = true)]
async fn one_failing_handler_does_not_call_the_others_again() {
    let bench = Bench::new().await;
    let others: Vec<_> = (0..3).map(|n| bench.record(&format!("o{n}"))).collect();
    let fails = bench.on("fails", |_| async { Err("no".into()) });
    bench.create("a").await;
    bench.start().await;
    time::sleep(60 * SECOND).await;
    assert!(fails.len() > 10);
    assert!(others.iter().all(|calls| calls.len() == 1));
}

/// §2, 10: in lasso a start waits forever, and a kind that fails at first is lost until the next start.
#[tokio::test(start_paused = true)]
async fn what_fails_at_first_is_tried_again_and_named_meanwhile() {
    let bench = Bench::with(|builder| builder.sync_timeout(20 * SECOND)).await;
    let down = Refusal::new(http::StatusCode::INTERNAL_SERVER_ERROR);
    let rule = bench.cluster.faults().add(Rule::new(Action::Refuse(down)));
    let calls = bench.record("log");
    let widgets = bench.factory.for_kind(Gvk::new("apps", "v1", "Deployment"));
    widgets
        .register_handler("log", |_: Context<DynamicObject>| async {
            Ok(Outcome::done())
        })
        .unwrap();
    let began = Instant::now();
    let error = bench.factory.start(2).await.unwrap_err().to_string();
    assert_eq!(began.elapsed().as_secs(), 20);
    for part in ["apps/v1 Deployment", "v1 ConfigMap", "500"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let starts = bench.factory.clone();
    let mut starting = JoinSet::new();
    starting.spawn(async move { starts.start(2).await });
    time::sleep(5 * SECOND).await;
    assert!(
        widgets.status().unwrap().cache.last_error.is_some(),
        "named in the status"
    );
    bench.cluster.faults().remove(rule);
    starting.join_next().await.unwrap().unwrap().unwrap();
    bench.create("a").await;
    settle().await;
    assert_eq!(calls.len(), 1, "nothing is dead for good");
}

/// §2, 11: in lasso caches can be neither stopped nor inspected one by one.
#[tokio::test(start_paused = true)]
async fn caches_are_stopped_one_by_one_and_can_be_looked_for() {
    let bench = Bench::with(|builder| builder.caches(|caches| caches.idle_grace(SECOND))).await;
    bench.record("log");
    let secrets = bench.factory.for_object::<Secret>();
    let cache = secrets.view::<lariat_cache::Metadata>().cache();
    bench.start().await;
    let kinds = || -> Vec<String> {
        let status = bench.factory.caches().status();
        status
            .iter()
            .map(|kind| kind.gvk.kind().to_owned())
            .collect()
    };
    assert_eq!(kinds(), ["ConfigMap", "Secret"]);
    drop(cache);
    // A controller that was only looked at has no handler that could end it.
    time::sleep(5 * SECOND).await;
    assert!(secrets.status().is_none(), "the kind is not used");
    assert_eq!(kinds(), ["ConfigMap"]);
}

/// §2, 12: lasso's resyncs brought storms.
#[tokio::test(start_paused = true)]
async fn nothing_resyncs_unless_it_is_asked_for() {
    let bench = Bench::new().await;
    let calls = bench.record("log");
    bench.create("a").await;
    bench.start().await;
    time::sleep(48 * 3600 * SECOND).await;
    assert_eq!(calls.len(), 1);
}

/// §2, 15: objects of lists have no kind in Go.
#[tokio::test(start_paused = true)]
async fn objects_of_lists_know_their_kind() {
    let bench = Bench::new().await;
    bench.create("a").await;
    let kinds = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&kinds);
    let dynamic = bench.config_maps.view::<DynamicObject>();
    dynamic
        .register_handler("log", move |cx: Context<DynamicObject>| {
            let types = cx
                .object()
                .ok()
                .flatten()
                .and_then(|object| object.types.clone());
            log.lock()
                .extend(types.map(|types| (types.api_version, types.kind)));
            async { Ok(Outcome::done()) }
        })
        .unwrap();
    bench.start().await;
    settle().await;
    assert_eq!(*kinds.lock(), [("v1".to_owned(), "ConfigMap".to_owned())]);
}

/// "Dynamic": lasso's dynamic controller blocks all reads while a new kind is being filled.
#[tokio::test(start_paused = true)]
async fn a_kind_that_is_syncing_blocks_no_other() {
    let bench = Bench::new().await;
    let slow = Rule::new(Action::Delay(900 * SECOND)).resource("secrets");
    bench.cluster.faults().add(slow);
    let called = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&called);
    bench
        .factory
        .for_all_kinds(|kind| ["ConfigMap", "Secret"].contains(&kind.gvk().kind()))
        .register_handler("audit", move |_: Context<DynamicObject>| {
            flag.store(true, Ordering::SeqCst);
            async { Ok(Outcome::done()) }
        })
        .unwrap();
    bench.start().await;
    time::sleep(SECOND).await;
    bench.create("a").await;
    settle().await;
    assert!(called.load(Ordering::SeqCst));
    assert_eq!(bench.config_maps.cache().len(), 1);
}

/// "Dynamic": in lasso a later handler gets no existing objects, and a failed discovery is not repeated.
#[tokio::test(start_paused = true)]
async fn later_handlers_of_all_kinds_see_what_there_is_also_if_the_first_look_failed() {
    let bench = Bench::new().await;
    bench.create("a").await;
    bench.start().await;
    let down = Refusal::new(http::StatusCode::SERVICE_UNAVAILABLE);
    bench
        .cluster
        .faults()
        .add(Rule::new(Action::Refuse(down)).times(4));
    for name in ["one", "two"] {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        bench
            .factory
            .for_all_kinds(|kind| kind.gvk().kind() == "ConfigMap")
            .register_handler(name, move |_: Context<DynamicObject>| {
                counted.fetch_add(1, Ordering::SeqCst);
                async { Ok(Outcome::done()) }
            })
            .unwrap();
        time::sleep(60 * SECOND).await;
        assert_eq!(count.load(Ordering::SeqCst), 1, "{name}");
    }
}
