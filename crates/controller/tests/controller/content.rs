//! Handlers of metadata and of content, and reads of own writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use lariat_cache::{KindOptions, Metadata, Storage};
use lariat_cluster::faults::{Action, After, Refusal, Rule, StatusCode};
use lariat_controller::{Context, HandlerOptions, HandlerResult, Outcome};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, Call, Calls, SECOND, key, settle};

async fn nothing(_: Context<Metadata>) -> HandlerResult {
    Ok(Outcome::done())
}

/// Counts requests for single objects.
fn gets(bench: &Bench) -> usize {
    bench.cluster.journal().count("get", "configmaps")
}

#[tokio::test(start_paused = true)]
async fn handlers_of_metadata_watch_metadata_until_one_comes_that_reads_objects() {
    let bench = Bench::new().await;
    let metadata = bench.config_maps.view::<Metadata>();
    metadata.register_handler("metadata", nothing).unwrap();
    for number in 0..50 {
        let name = format!("o{number}");
        bench.create(&name).await;
        bench.change(&name, "value").await;
    }
    bench.start().await;
    time::sleep(SECOND).await;
    let small = bench.status().cache.bytes;

    let calls = bench.record("late");
    time::sleep(10 * SECOND).await;
    assert_eq!(
        calls.len(),
        50,
        "it is called for every object, with its content"
    );
    assert!(
        calls
            .all()
            .iter()
            .all(|call| call.value.as_deref() == Some("value"))
    );
    assert_eq!(gets(&bench), 0, "one list rather than a request for each");
    assert!(bench.status().cache.bytes > small);
    assert_eq!(
        bench.status().handlers[0].calls,
        50,
        "the others are not called again"
    );
    assert_eq!(bench.cluster.journal().count("watch", "configmaps"), 2);
}

#[tokio::test(start_paused = true)]
async fn content_on_demand_is_fetched_once_for_all_handlers_of_a_run() {
    let on_demand = KindOptions::default().storage(Storage::OnDemand);
    let bench =
        Bench::with(|builder| builder.caches(|caches| caches.default_options(on_demand))).await;
    let calls: Vec<_> = ["a", "b", "c"]
        .iter()
        .map(|name| bench.record(name))
        .collect();
    let metadata = bench.config_maps.view::<Metadata>();
    metadata.register_handler("metadata", nothing).unwrap();
    bench.create("one").await;
    bench.change("one", "value").await;
    bench.start().await;
    time::sleep(SECOND).await;
    for calls in &calls {
        assert_eq!(calls.all()[0].value.as_deref(), Some("value"));
    }
    assert_eq!(gets(&bench), 1);
    assert_eq!(bench.status().cache.storage, Storage::OnDemand);
}

/// The second handler of a run was called with the object fetched for the first, which had deleted the object.
#[tokio::test(start_paused = true)]
async fn an_object_a_handler_deletes_does_not_exist_for_those_after_it_even_if_it_was_fetched() {
    let on_demand = KindOptions::default().storage(Storage::OnDemand);
    let bench =
        Bench::with(|builder| builder.caches(|caches| caches.default_options(on_demand))).await;
    let api: Api<ConfigMap> = Api::namespaced(bench.factory.client(), "default");
    let deletes = bench.on("deletes", move |call| {
        let api = api.clone();
        async move {
            if call.value.is_some() {
                api.delete(&call.name, &DeleteParams::default()).await?;
            }
            Ok(Outcome::done())
        }
    });
    let calls = bench.record("looks");
    bench.create("one").await;
    bench.change("one", "value").await;
    bench.start().await;
    time::sleep(SECOND).await;
    assert_eq!(deletes.all()[0].value.as_deref(), Some("value"));
    assert!(calls.all().iter().all(|call| call.value.is_none()));
    assert!(!calls.all().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_a_fetch_is_a_failure_of_that_handler_alone() {
    let on_demand = KindOptions::default().storage(Storage::OnDemand);
    let bench =
        Bench::with(|builder| builder.caches(|caches| caches.default_options(on_demand))).await;
    let refusal = Action::Refuse(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR));
    bench.cluster.faults().add(
        Rule::new(refusal)
            .verb("get")
            .resource("configmaps")
            .times(2),
    );
    let calls = bench.record("reads");
    let metadata = bench.config_maps.view::<Metadata>();
    metadata.register_handler("metadata", nothing).unwrap();
    bench.create("one").await;
    bench.start().await;
    time::sleep(SECOND).await;
    assert_eq!(calls.len(), 1);
    assert_eq!(calls.all()[0].attempt, 3);
    assert_eq!(bench.status().handlers[1].calls, 1);
}

/// A handler of metadata was called with a newer state, then with an older one.
///
/// The newer one was fetched for another handler, and the older one cached.
#[tokio::test(start_paused = true)]
async fn handlers_of_metadata_are_called_with_what_is_cached_whatever_was_fetched_for_others() {
    let on_demand = KindOptions::default().storage(Storage::OnDemand);
    let bench =
        Bench::with(|builder| builder.caches(|caches| caches.default_options(on_demand))).await;
    let silent = Rule::new(Action::HangWatch(After::Time(SECOND))).verb("watch");
    bench.cluster.faults().add(silent.resource("configmaps"));
    let reads = bench.record("reads");
    let versions: Arc<Mutex<Vec<Option<u64>>>> = Arc::default();
    let notes = Arc::clone(&versions);
    let looks = move |cx: Context<Metadata>| {
        let version = cx.raw().and_then(|object| object.version().number().ok());
        notes.lock().push(version);
        async { Ok(Outcome::done()) }
    };
    let metadata = bench.config_maps.view::<Metadata>();
    metadata.register_handler("looks", looks).unwrap();
    bench.create("one").await;
    bench.start().await;
    time::sleep(2 * SECOND).await;
    // The watch does not show it.
    bench.change("one", "new").await;
    for _ in 0..2 {
        bench.config_maps.enqueue(&key("one"));
        settle().await;
        let refused = Action::Refuse(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR));
        bench.cluster.faults().add(Rule::new(refused).verb("get"));
    }
    assert_eq!(reads.all()[1].value.as_deref(), Some("new"));
    let versions = versions.lock().clone();
    // Both are called once more, because the fetched state is cached; the watch will report nothing new then.
    assert_eq!((versions.len(), reads.len()), (4, 3));
    assert!(versions.is_sorted(), "{versions:?}");
    assert_eq!(versions[2], versions[3]);
}

#[tokio::test(start_paused = true)]
async fn handler_reads_own_writes_while_the_watch_lags() {
    let bench = Bench::new().await;
    let client = bench.factory.client();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let (api, notes): (Api<ConfigMap>, _) = (Api::namespaced(client, "default"), Arc::clone(&seen));
    let handler = move |cx: Context<ConfigMap>| {
        let (api, notes) = (api.clone(), Arc::clone(&notes));
        async move {
            let value = |object: &ConfigMap| object.data.as_ref().map(|data| data["n"].clone());
            let before = cx.object()?.and_then(|object| value(&object));
            let next = before.map_or(1, |n| n.parse::<u32>().unwrap_or(0) + 1);
            if next <= 20 {
                let patch = Patch::Merge(json!({"data": {"n": next.to_string()}}));
                api.patch(cx.key().name(), &PatchParams::default(), &patch)
                    .await?;
                let cached = cx.cache().get(cx.key())?.and_then(|object| value(&object));
                notes.lock().push(cached.unwrap_or_default());
            }
            Ok(Outcome::done())
        }
    };
    bench
        .config_maps
        .register_handler("counts", handler)
        .unwrap();
    bench.create("one").await;
    bench.start().await;
    // A watch that lags must not let the handler count twice from the same number.
    bench.cluster.cut_watches();
    time::sleep(Duration::from_secs(60)).await;
    let expected: Vec<String> = (1..=20).map(|n| n.to_string()).collect();
    assert_eq!(*seen.lock(), expected);
    assert!(
        bench
            .config_maps
            .cache()
            .get(&key("one"))
            .unwrap()
            .is_some()
    );
}

/// Counts how often it is decoded.
#[derive(Debug)]
struct Counted;

static DECODED: AtomicUsize = AtomicUsize::new(0);

impl<'de> serde::Deserialize<'de> for Counted {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        DECODED.fetch_add(1, Ordering::Relaxed);
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_is_decoded_once_for_all_handlers_of_a_run() {
    let bench = Bench::new().await;
    let counted = bench.config_maps.view::<Counted>();
    for number in 0..10 {
        let handler = |cx: Context<Counted>| async move {
            let (first, again) = (cx.object()?, cx.object()?);
            assert_eq!(first.is_some(), again.is_some());
            Ok(Outcome::done())
        };
        counted
            .register_handler(&format!("h{number}"), handler)
            .unwrap();
    }
    bench.create("one").await;
    bench.start().await;
    time::sleep(SECOND).await;
    bench.change("one", "value").await;
    time::sleep(SECOND).await;
    assert!(
        bench
            .status()
            .handlers
            .iter()
            .all(|handler| handler.calls == 2)
    );
    assert_eq!(DECODED.load(Ordering::Relaxed), 2, "once for each state");
}

/// Begins with ten objects and two workers, a handler of metadata, and another of objects that comes when watches and
/// lists take this long.
async fn upgrading(slow: Duration) -> (Bench, Calls) {
    let bench = Bench::new().await;
    let metadata = bench.config_maps.view::<Metadata>();
    metadata
        .register_handler("metadata", nothing)
        .expect("registered");
    for number in 0..10 {
        let name = format!("o{number}");
        bench.create(&name).await;
        bench.change(&name, "value").await;
    }
    bench.start().await;
    settle().await;
    for verb in ["watch", "list"] {
        let slow = Rule::new(Action::Delay(slow)).verb(verb);
        bench.cluster.faults().add(slow.resource("configmaps"));
    }
    let late = bench.record("late");
    settle().await;
    (bench, late)
}

fn calls_of_metadata(bench: &Bench) -> u64 {
    bench.status().handlers[0].calls
}

#[tokio::test(start_paused = true)]
async fn handlers_of_metadata_are_called_while_content_is_read_for_others() {
    let (bench, late) = upgrading(15 * SECOND).await;
    let before = calls_of_metadata(&bench);
    bench.config_maps.enqueue(&key("o3"));
    settle().await;
    assert_eq!(calls_of_metadata(&bench), before + 1, "workers are free");
    assert_eq!((late.len(), bench.status().handlers[1].waiting), (0, 10));
    time::sleep(20 * SECOND).await;
    assert_eq!(
        late.len(),
        10,
        "each once, although one was asked for twice"
    );
    let is_whole = |call: &Call| call.value.as_deref() == Some("value") && call.attempt == 1;
    assert!(late.all().iter().all(is_whole));
    assert_eq!((gets(&bench), bench.status().handlers[1].waiting), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn objects_are_fetched_one_by_one_if_content_takes_long() {
    let (bench, late) = upgrading(300 * SECOND).await;
    time::sleep(19 * SECOND).await;
    assert_eq!((late.len(), gets(&bench)), (0, 0));
    time::sleep(2 * SECOND).await;
    assert_eq!((late.len(), gets(&bench)), (10, 10));
    bench.config_maps.enqueue(&key("o3"));
    settle().await;
    assert_eq!(late.len(), 11, "without another wait");
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_content_when_a_factory_stops_is_handled_after_the_next_start() {
    let (bench, late) = upgrading(15 * SECOND).await;
    bench.factory.stop().await.unwrap();
    assert_eq!(late.len(), 0);
    bench.cluster.faults().clear();
    bench.start().await;
    settle().await;
    assert_eq!(late.len(), 10);
}

/// A handler that was not called has not failed.
#[tokio::test(start_paused = true)]
async fn fetches_that_fail_do_not_use_up_the_retries_of_a_handler() {
    let on_demand = KindOptions::default().storage(Storage::OnDemand);
    let bench =
        Bench::with(|builder| builder.caches(|caches| caches.default_options(on_demand))).await;
    let refusal = Action::Refuse(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR));
    let refused = Rule::new(refusal).verb("get").resource("configmaps");
    bench.cluster.faults().add(refused.times(10));
    let calls = bench.record_with("reads", HandlerOptions::default().max_retries(2));
    bench.create("one").await;
    bench.start().await;
    time::sleep(60 * SECOND).await;
    assert_eq!(calls.len(), 1);
}
