//! Relations that read content of kinds that are stored on demand, or beyond a memory budget.

use k8s_openapi::api::core::v1::Secret;
use kube::api::DeleteParams;
use lariat_cache::{KindOptions, KindStatus, Storage};
use lariat_cluster::faults::{Action as Fault, Rule};
use lariat_controller::{
    Context, ControllerOptions, FactoryBuilder, Outcome, Related, Relation, SharedController,
};
use lariat_core::Gvk;
use lariat_testing::Logs;
use serde_json::{Value, json};
use tokio::time;

use crate::bench::{Bench, Calls, SECOND, key, settle};
use crate::relations::{create, patch, secrets, take};

/// Sets the cache options of Secrets.
fn of_secrets(options: KindOptions) -> impl FnOnce(FactoryBuilder) -> FactoryBuilder {
    let options = ControllerOptions::default().cache(options);
    |builder| builder.kind_options(Gvk::new("", "v1", "Secret"), options)
}

fn others(bench: &Bench) -> SharedController<Secret> {
    bench.factory.for_object()
}

/// Enqueues the ConfigMaps that the keys of a Secret name.
fn relate(bench: &Bench) -> Related {
    let names = Relation::map(|secret: &Secret| {
        let data = secret.data.iter().flatten();
        data.map(|(name, _)| key(name)).collect()
    });
    bench.config_maps.watch_related(&others(bench), names)
}

fn naming(name: &str, names: &[&str]) -> Value {
    let data: serde_json::Map<String, Value> = names
        .iter()
        .map(|name| ((*name).to_owned(), json!("eA==")))
        .collect();
    json!({"metadata": {"name": name}, "data": data})
}

fn of(bench: &Bench) -> KindStatus {
    others(bench).cache().status()
}

async fn delete(bench: &Bench, name: &str) {
    let deleted = secrets(bench).delete(name, &DeleteParams::default()).await;
    deleted.expect("deleted");
    settle().await;
}

/// Changes and deletes the Secret `s`, which names `a`, and checks the called keys.
async fn check_calls(bench: &Bench, calls: &Calls) {
    let api = secrets(bench);
    patch(&api, "s", json!({"data": {"a": "eQ=="}})).await;
    assert_eq!(take(calls), ["a"]);
    patch(&api, "s", json!({"data": {"a": null, "b": "eA=="}})).await;
    assert_eq!(take(calls), ["a", "b"], "of the old and of the new state");
    delete(bench, "s").await;
    assert_eq!(take(calls), ["b"], "of the deleted state");
}

#[tokio::test(start_paused = true)]
async fn relation_reads_content_of_kind_stored_on_demand() {
    let logs = Logs::begin();
    let bench = Bench::with(of_secrets(
        KindOptions::default().storage(Storage::OnDemand),
    ))
    .await;
    create(&secrets(&bench), naming("s", &["a"])).await;
    let calls = bench.record("log");
    relate(&bench);
    bench.start().await;
    settle().await;
    assert_eq!(take(&calls), ["a"], "of the initial list");
    assert_eq!(
        (of(&bench).storage, of(&bench).holds_content),
        (Storage::Compressed, true)
    );
    let text = logs.text();
    assert!(
        text.contains("stored compressed instead of on demand"),
        "{text}"
    );
    check_calls(&bench, &calls).await;
}

#[tokio::test(start_paused = true)]
async fn relation_reads_content_beyond_the_memory_budget_of_the_kind() {
    let logs = Logs::begin();
    let bench = Bench::with(of_secrets(KindOptions::default().memory_budget(2_000))).await;
    create(&secrets(&bench), naming("s", &["a"])).await;
    let calls = bench.record("log");
    relate(&bench);
    bench.start().await;
    settle().await;
    assert_eq!(take(&calls), ["a"]);
    for number in 0..40 {
        create(&secrets(&bench), naming(&format!("more-{number}"), &[])).await;
    }
    assert!(of(&bench).bytes > 2_000);
    assert_ne!(of(&bench).storage, Storage::OnDemand);
    let text = logs.text();
    assert!(text.contains("the memory budget is exceeded"), "{text}");
    check_calls(&bench, &calls).await;
    assert_eq!(
        logs.text().matches("the memory budget is exceeded").count(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn relation_brings_content_back_that_a_budget_has_taken_away() {
    let bench = Bench::with(of_secrets(KindOptions::default().memory_budget(0))).await;
    create(&secrets(&bench), naming("s", &["a"])).await;
    let calls = bench.record("log");
    let reads = |_: Context<Secret>| async { Ok(Outcome::done()) };
    others(&bench)
        .register_handler("reads", reads)
        .expect("registered");
    bench.start().await;
    settle().await;
    assert_eq!(of(&bench).storage, Storage::OnDemand);
    for _ in 0..2 {
        let related = relate(&bench);
        time::sleep(2 * SECOND).await;
        assert_eq!(take(&calls), ["a"], "as the relation begins");
        patch(
            &secrets(&bench),
            "s",
            json!({"metadata": {"labels": {"x": "y"}}}),
        )
        .await;
        assert_eq!(take(&calls), ["a"]);
        assert_eq!(of(&bench).storage, Storage::Compressed);
        related.end();
        patch(
            &secrets(&bench),
            "s",
            json!({"metadata": {"labels": {"x": "z"}}}),
        )
        .await;
        assert_eq!(
            of(&bench).storage,
            Storage::OnDemand,
            "the budget is kept again"
        );
        assert!(!of(&bench).holds_content);
        assert!(take(&calls).is_empty());
    }
    relate(&bench);
    time::sleep(2 * SECOND).await;
    take(&calls);
    check_calls(&bench, &calls).await;
}

#[tokio::test(start_paused = true)]
async fn relation_reads_the_last_state_of_objects_deleted_during_a_restart() {
    for options in [
        KindOptions::default().memory_budget(0),
        KindOptions::default().storage(Storage::OnDemand),
    ] {
        let bench = Bench::with(of_secrets(options)).await;
        for (name, names) in [("s", "a"), ("moved", "b"), ("stays", "d")] {
            create(&secrets(&bench), naming(name, &[names])).await;
        }
        let calls = bench.record("log");
        relate(&bench);
        bench.start().await;
        settle().await;
        assert_eq!(take(&calls), ["a", "b", "d"]);
        bench.factory.stop().await.expect("stopped");
        delete(&bench, "s").await;
        patch(
            &secrets(&bench),
            "moved",
            json!({"data": {"b": null, "c": "eA=="}}),
        )
        .await;
        bench.start().await;
        settle().await;
        assert_eq!(take(&calls), ["a", "b", "c"]);
    }
}

#[tokio::test(start_paused = true)]
async fn factory_budget_passes_over_the_largest_kind_if_a_relation_reads_it() {
    let bench = Bench::with(|builder| {
        let plain = KindOptions::default().storage(Storage::Plain);
        builder.caches(|caches| caches.default_options(plain).memory_budget(20_000))
    })
    .await;
    create(&secrets(&bench), naming("s", &["a"])).await;
    let calls = bench.record("log");
    relate(&bench);
    for number in 0..60 {
        bench.create(&format!("c{number}")).await;
        for part in 0..3 {
            create(&secrets(&bench), naming(&format!("s{number}-{part}"), &[])).await;
        }
    }
    bench.start().await;
    settle().await;
    let small = bench.status().cache;
    assert!(small.bytes < of(&bench).bytes);
    assert_eq!(small.storage, Storage::OnDemand);
    assert_eq!(of(&bench).storage, Storage::Compressed);
    take(&calls);
    check_calls(&bench, &calls).await;
}

/// An upgrade that never ends must not keep the keys of objects that come and go meanwhile.
#[tokio::test(start_paused = true)]
async fn objects_deleted_before_their_content_is_cached_do_not_wait_for_it() {
    let bench = Bench::with(of_secrets(KindOptions::default().memory_budget(0))).await;
    let calls = bench.record("log");
    let reads = |_: Context<Secret>| async { Ok(Outcome::done()) };
    others(&bench)
        .register_handler("reads", reads)
        .expect("registered");
    create(&secrets(&bench), naming("s", &["a"])).await;
    create(&secrets(&bench), naming("t", &["b"])).await;
    bench.start().await;
    settle().await;
    assert_eq!(of(&bench).storage, Storage::OnDemand);
    let slow = Rule::new(Fault::Delay(60 * SECOND))
        .resource("secrets")
        .times(1);
    bench.cluster.faults().add(slow);
    relate(&bench);
    settle().await;
    let unread = || {
        let mut sizes = bench.factory.table_sizes().into_iter();
        let unread = sizes.find(|size| size.name == "unread related objects");
        unread.expect("it is reported").entries
    };
    assert_eq!(unread(), 2);
    // The answer to the deletion removes it from the cache.
    let own: kube::Api<Secret> = kube::Api::namespaced(bench.factory.client(), "default");
    own.delete("t", &DeleteParams::default())
        .await
        .expect("deleted");
    settle().await;
    assert_eq!((unread(), take(&calls).len()), (1, 0));
    time::sleep(90 * SECOND).await;
    assert_eq!((unread(), take(&calls)), (0, vec!["a".to_owned()]));
}
