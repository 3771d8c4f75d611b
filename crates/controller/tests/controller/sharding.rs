//! Factories that divide the keys among them.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use lariat_cache::{Change, KindOptions, Storage};
use lariat_cluster::faults::{Action, After, Rule};
use lariat_controller::{
    Context, ControllerOptions, Enqueue, FactoryBuilder, HandlerError, HandlerOptions, Outcome,
    Predicate, RunError, SharedControllerFactory,
};
use lariat_core::{Gvk, ObjectKey};
use lariat_lease::{Lease, ShardKey, Sharding};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::bench::{Bench, Calls, SECOND, recorder};
use crate::sharding_bench::{Ledger, Program, Replica, WORKERS, Work, client, create_many};

#[tokio::test(start_paused = true)]
async fn three_replicas_handle_each_object_once() {
    let bench = Bench::new().await;
    create_many(&bench, 60).await;
    let program = Program::new(&bench.cluster);
    let _replicas = program.started(["one", "two", "three"]).await;
    program.ledger.clear();
    create_many_more(&bench, 60..120).await;
    sleep(SECOND).await;
    let holders = program.ledger.holders();
    assert_eq!(holders.len(), 60, "each new object is handled");
    for name in ["one", "two", "three"] {
        let count = holders.values().filter(|by| **by == name).count();
        assert!((3..46).contains(&count), "{name} handled {count} of 60");
    }
}

async fn create_many_more(bench: &Bench, numbers: std::ops::Range<usize>) {
    for number in numbers {
        bench.create(&format!("order-{number}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_moves_to_a_new_replica_is_handled_there_and_nothing_else_is() {
    let bench = Bench::new().await;
    create_many(&bench, 60).await;
    let program = Program::new(&bench.cluster);
    let _old = program.started(["one", "two"]).await;
    program.ledger.clear();
    let [three] = program.started(["three"]).await;
    let holders = program.ledger.holders();
    assert!(holders.values().all(|by| *by == "three"), "{holders:?}");
    assert!(
        (3..46).contains(&holders.len()),
        "{} keys moved",
        holders.len()
    );
    drop(three);
}

#[tokio::test(start_paused = true)]
async fn keys_of_a_stopping_replica_are_handled_by_the_others_immediately() {
    let bench = Bench::new().await;
    create_many(&bench, 60).await;
    let program = Program::new(&bench.cluster);
    let [mut one, _two, _three] = program.started(["one", "two", "three"]).await;
    let before = last_holders(&program.ledger);
    program.ledger.clear();
    one.stop().await.expect("stopped");
    sleep(SECOND).await;
    let holders = program.ledger.holders();
    let of_one = before.iter().filter(|(_, by)| **by == "one");
    let of_one: Vec<_> = of_one.map(|(key, _)| key.clone()).collect();
    assert_eq!(holders.keys().cloned().collect::<Vec<_>>(), of_one);
    assert!(holders.values().all(|by| *by != "one"));
}

fn last_holders(ledger: &Ledger) -> BTreeMap<ObjectKey, &'static str> {
    ledger.inner.lock().ended.iter().cloned().collect()
}

#[tokio::test(start_paused = true)]
async fn keys_of_a_replica_that_dies_are_handled_within_two_lease_durations() {
    let bench = Bench::new().await;
    create_many(&bench, 60).await;
    let program = Program::new(&bench.cluster);
    let [one, _two, _three] = program.started(["one", "two", "three"]).await;
    let before = last_holders(&program.ledger);
    program.ledger.clear();
    drop(one);
    sleep(30 * SECOND).await;
    let lost = before.values().filter(|by| **by == "one").count();
    let holders = program.ledger.holders();
    assert_eq!(holders.len(), lost);
    assert!(lost > 0 && holders.values().all(|by| *by != "one"));
}

#[tokio::test(start_paused = true)]
async fn a_key_moves_when_the_call_for_it_has_ended() {
    let bench = Bench::new().await;
    create_many(&bench, WORKERS).await;
    let program = Program {
        work: Work::Slow(12 * SECOND),
        ..Program::new(&bench.cluster)
    };
    let _one = program.start("one");
    sleep(15 * SECOND).await;
    assert_eq!(program.ledger.holders().len(), WORKERS);
    for number in 0..WORKERS {
        let labels = json!({"metadata": {"name": format!("order-{number}"), "labels": {"a": "b"}}});
        bench.apply(labels).await;
    }
    sleep(SECOND).await;
    program.ledger.clear();
    let two = program.start("two");
    sleep(5 * SECOND).await;
    assert!(!two.is_member(), "calls of its keys are under way");
    // The ledger checks that no key is processed by both.
    sleep(60 * SECOND).await;
    assert!(two.is_member());
    let counts = program.ledger.counts();
    let by_two = counts.keys().filter(|(_, by)| *by == "two").count();
    assert!(by_two > 0, "{counts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_outlasts_the_drain_timeout_is_dropped_and_begins_again_elsewhere() {
    let bench = Bench::new().await;
    create_many(&bench, WORKERS).await;
    let program = Program {
        work: Work::Slow(100 * SECOND),
        ..Program::new(&bench.cluster)
    };
    let one = program.start("one");
    sleep(5 * SECOND).await;
    let two = program.start("two");
    sleep(24 * SECOND).await;
    assert!(!two.is_member(), "writes that were sent have five seconds");
    sleep(3 * SECOND).await;
    assert!(two.is_member());
    let moved: Vec<_> = program.ledger.inner.lock().ended.clone();
    assert!(!moved.is_empty() && moved.iter().all(|(_, by)| *by == "one"));
    let under_way = program.ledger.inner.lock().under_way.clone();
    let of_two = under_way.values().filter(|by| **by == "two").count();
    assert_eq!((of_two, under_way.len()), (moved.len(), WORKERS));
    drop((one, two));
}

#[tokio::test(start_paused = true)]
async fn an_object_is_handled_where_its_controller_is() {
    let bench = Bench::new().await;
    let program = Program::new(&bench.cluster);
    let _replicas = program.started(["one", "two", "three"]).await;
    for number in 0..20 {
        for child in ["a", "b", "c"] {
            let owner = format!("order-{number}");
            let name = format!("{owner}-{child}");
            bench.apply(controlled(&name, &owner)).await;
        }
    }
    sleep(SECOND).await;
    let holders = program.ledger.holders();
    let shares: Vec<_> = _replicas
        .iter()
        .map(|it| it.factory.shards().unwrap())
        .collect();
    let orders = Gvk::new("shop.dev", "v1", "Order");
    for number in 0..20 {
        let owner = ObjectKey::namespaced("default", &format!("order-{number}"));
        let owner = ShardKey::of_key(&orders, &owner);
        let place = shares
            .iter()
            .position(|it| it.share().holds(owner))
            .unwrap();
        for child in ["a", "b", "c"] {
            let key = ObjectKey::namespaced("default", &format!("order-{number}-{child}"));
            assert_eq!(holders[&key], ["one", "two", "three"][place]);
        }
    }
}

/// Fetched content had another controlling owner than the metadata by which its key was admitted, and two replicas
/// processed it at the same time.
/// Returns a ConfigMap of the first replica, and an Order of the second one.
fn key_of_one_with_owner_of_two(replicas: &[Replica; 2]) -> (ObjectKey, ObjectKey) {
    let [one, two] = replicas.each_ref().map(|it| {
        let shards = it.factory.shards().expect("it is in a ring");
        shards.share()
    });
    let (config_maps, orders) = (
        Gvk::new("", "v1", "ConfigMap"),
        Gvk::new("shop.dev", "v1", "Order"),
    );
    let mut keys = (0..).map(|number| ObjectKey::namespaced("default", &format!("order-{number}")));
    let owner = keys
        .clone()
        .find(|key| two.holds(ShardKey::of_key(&orders, key)));
    let key = keys.find(|key| one.holds(ShardKey::of_key(&config_maps, key)));
    (key.expect("there is one"), owner.expect("there is one"))
}

#[tokio::test(start_paused = true)]
async fn content_that_is_fetched_is_handled_where_its_controller_is() {
    let bench = Bench::new().await;
    create_many(&bench, 30).await;
    let program = Program::new(&bench.cluster);
    silence_watches_of_one(&bench);
    let replicas = ["one", "two"].map(|name| program.start_with(name, on_demand));
    sleep(7 * SECOND).await;
    let (key, owner) = key_of_one_with_owner_of_two(&replicas);
    program.ledger.clear();
    bench.cluster.journal().clear();
    replicas[0].config_maps.enqueue(&key);
    sleep(SECOND / 10).await;
    assert_eq!(program.ledger.holders()[&key], "one");

    program.ledger.clear();
    bench.apply(controlled(key.name(), owner.name())).await;
    replicas[0].config_maps.enqueue(&key);
    sleep(SECOND).await;
    let journal = bench.cluster.journal();
    let fetched = journal.select().client("one").verb("get");
    let fetched = fetched.resource("configmaps").name(key.name());
    assert_eq!(fetched.count(), 2, "it was admitted both times");
    assert_eq!(program.ledger.holders(), BTreeMap::from([(key, "two")]));
}

/// The owner is metadata, so the predicate of the other member says nothing about the change.
#[tokio::test(start_paused = true)]
async fn key_that_moves_with_its_owner_is_handled_as_a_gain() {
    let bench = Bench::new().await;
    create_many(&bench, 30).await;
    let program = Program::new(&bench.cluster);
    let replicas = program.started(["one", "two"]).await;
    let calls = replicas.each_ref().map(|replica| {
        let (calls, handler) = recorder(|_| async { Ok(Outcome::requeue_after(60 * SECOND)) });
        let options = HandlerOptions::default().only(Predicate::labels_changed());
        let registered = replica
            .config_maps
            .register_handler("picky", options.handler(handler));
        drop(registered.expect("the name is free"));
        calls
    });
    let (key, owner) = key_of_one_with_owner_of_two(&replicas);
    sleep(SECOND).await;
    let of = |calls: &Calls| {
        calls
            .names()
            .iter()
            .filter(|name| *name == key.name())
            .count()
    };
    let before = [of(&calls[0]), of(&calls[1])];
    bench.apply(controlled(key.name(), owner.name())).await;
    sleep(90 * SECOND).await;
    assert_eq!(of(&calls[0]), before[0], "the key has moved");
    assert!(of(&calls[1]) > before[1], "and is handled where it is now");
}

/// One update changes the owner and the rest.
#[tokio::test(start_paused = true)]
async fn update_with_which_a_key_moves_is_handled_by_handlers_of_updates() {
    let bench = Bench::new().await;
    create_many(&bench, 30).await;
    let program = Program::new(&bench.cluster);
    let replicas = program.started(["one", "two"]).await;
    let calls = replicas.each_ref().map(|replica| {
        let (calls, handler) = recorder(|_| async { Ok(Outcome::done()) });
        let updates = Predicate::new(|change| matches!(change, Change::Updated { .. }));
        let options = HandlerOptions::default().only(updates);
        let registered = replica
            .config_maps
            .register_handler("updates", options.handler(handler));
        drop(registered.expect("the name is free"));
        calls
    });
    let (key, owner) = key_of_one_with_owner_of_two(&replicas);
    bench.apply(controlled(key.name(), owner.name())).await;
    sleep(SECOND).await;
    assert_eq!(calls[1].names(), [key.name()]);
}

/// A call for fetched content had the permission for the owner in the cached metadata, so that the key of the owner in
/// the content was handed over during the call.
#[tokio::test(start_paused = true)]
async fn key_of_the_owner_in_fetched_content_moves_after_the_call() {
    let bench = Bench::new().await;
    create_many(&bench, WORKERS).await;
    let program = Program::new(&bench.cluster);
    silence_watches_of_one(&bench);
    let one = program.start_with("one", on_demand);
    sleep(7 * SECOND).await;
    program.ledger.clear();
    for number in 0..WORKERS {
        let name = format!("order-{number}");
        bench.apply(controlled(&name, &name)).await;
        let key = ObjectKey::namespaced("default", &name);
        program.ledger.inner.lock().held.insert(key.clone());
        one.config_maps.enqueue(&key);
    }
    sleep(SECOND).await;
    assert_eq!(program.ledger.inner.lock().under_way.len(), WORKERS);
    let two = program.start_with("two", on_demand);
    sleep(5 * SECOND).await;
    let share = one.factory.shards().expect("it is in a ring").share();
    assert_eq!(share.members(), 2);
    // By the metadata in the cache, no call is for a key that moves any more.
    let config_maps = Gvk::new("", "v1", "ConfigMap");
    let stays = |key: &ObjectKey| share.holds(ShardKey::of_key(&config_maps, key));
    program.ledger.inner.lock().held.retain(stays);
    sleep(5 * SECOND).await;
    program.ledger.counts();
    program.ledger.inner.lock().held.clear();
    sleep(5 * SECOND).await;
    assert!(two.is_member());
    let counts = program.ledger.counts();
    let by_two = counts.keys().filter(|(_, by)| *by == "two").count();
    assert!(by_two > 0, "{counts:?}");
}

/// Returns a ConfigMap that an Order controls.
fn controlled(name: &str, order: &str) -> Value {
    let owner = json!({
        "apiVersion": "shop.dev/v1", "kind": "Order", "name": order, "uid": order, "controller": true,
    });
    json!({"metadata": {"name": name, "ownerReferences": [owner]}})
}

/// Keeps changes from the cache of the first replica, which begins now, from six seconds on.
fn silence_watches_of_one(bench: &Bench) {
    let silent = Rule::new(Action::HangWatch(After::Time(6 * SECOND))).verb("watch");
    let silent = silent.resource("configmaps").client("one");
    bench.cluster.faults().add(silent);
}

/// Lets caches hold metadata, so that content is fetched.
fn on_demand(builder: FactoryBuilder) -> FactoryBuilder {
    let on_demand = KindOptions::default().storage(Storage::OnDemand);
    builder.caches(|caches| caches.default_options(on_demand))
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_handled_by_the_replica_that_has_the_object() {
    let bench = Bench::new().await;
    create_many(&bench, 30).await;
    let program = Program::new(&bench.cluster);
    let _replicas = program.started(["one", "two", "three"]).await;
    let before = last_holders(&program.ledger);
    program.ledger.clear();
    for number in 0..30 {
        bench.delete(&format!("order-{number}")).await;
    }
    sleep(SECOND).await;
    assert_eq!(program.ledger.holders(), before);
}

#[tokio::test(start_paused = true)]
async fn what_is_enqueued_or_resynced_elsewhere_is_not_handled() {
    let bench = Bench::new().await;
    create_many(&bench, 30).await;
    let program = Program::new(&bench.cluster);
    let replicas = program.started(["one", "two", "three"]).await;
    program.ledger.clear();
    for replica in &replicas {
        for number in 0..30 {
            let key = ObjectKey::namespaced("default", &format!("order-{number}"));
            replica.config_maps.enqueue(&key);
        }
    }
    sleep(SECOND).await;
    assert_eq!(program.ledger.holders().len(), 30);
    program.ledger.clear();
    let counts = replicas.each_ref().map(|it| {
        it.config_maps
            .enqueue_all(&Enqueue::now())
            .expect("enqueued")
    });
    sleep(SECOND).await;
    assert_eq!(program.ledger.holders().len(), 30);
    assert_eq!(counts.iter().sum::<usize>(), 30);
}

#[tokio::test(start_paused = true)]
async fn kinds_that_need_no_leader_are_handled_by_every_replica() {
    let bench = Bench::new().await;
    create_many(&bench, 10).await;
    let program = Program::new(&bench.cluster);
    let seen = Arc::new(Mutex::new(0));
    let mut replicas = Vec::new();
    for name in ["one", "two"] {
        let secrets = ControllerOptions::default().needs_leader(false);
        let replica = program.start_with(name, |builder| {
            builder.kind_options(Gvk::new("", "v1", "Secret"), secrets)
        });
        let seen = Arc::clone(&seen);
        let count = move |_: Context<Secret>| {
            *seen.lock() += 1;
            async { Ok::<_, HandlerError>(Outcome::done()) }
        };
        let secrets = replica.factory.for_object::<Secret>();
        secrets
            .register_handler("count", count)
            .expect("registered");
        replicas.push(replica);
    }
    sleep(5 * SECOND).await;
    let secret = serde_json::from_value(json!({"metadata": {"name": "key"}})).expect("it is one");
    let api = kube::Api::<Secret>::namespaced(bench.cluster.client(), "default");
    api.create(&kube::api::PostParams::default(), &secret)
        .await
        .expect("created");
    sleep(SECOND).await;
    assert_eq!(*seen.lock(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_is_cut_off_stops_before_others_have_its_keys() {
    let bench = Bench::new().await;
    create_many(&bench, 30).await;
    let program = Program {
        work: Work::Slow(SECOND),
        ..Program::new(&bench.cluster)
    };
    let [mut one, two] = ["one", "two"].map(|name| program.start(name));
    sleep(20 * SECOND).await;
    let cut = Rule::new(Action::NoAnswer).client("one");
    bench.cluster.faults().add(cut);
    let began = Instant::now();
    // Both have keys to process all the time.
    let enqueue = async {
        loop {
            let _ = one.config_maps.enqueue_all(&Enqueue::now());
            let _ = two.config_maps.enqueue_all(&Enqueue::now());
            sleep(SECOND).await;
        }
    };
    let _ = tokio::time::timeout(31 * SECOND, enqueue).await;
    let error = one.ended().await.expect_err("it is lost");
    assert!(matches!(error, RunError::Lost(_)), "{error}");
    program.ledger.clear();
    two.config_maps
        .enqueue_all(&Enqueue::now())
        .expect("enqueued");
    sleep(20 * SECOND).await;
    let holders = last_holders(&program.ledger);
    assert_eq!(holders.len(), 30, "after {:?}", began.elapsed());
    assert!(holders.values().all(|by| *by == "two"));
}

#[tokio::test(start_paused = true)]
async fn a_replica_joins_when_its_caches_are_filled() {
    let bench = Bench::new().await;
    create_many(&bench, 10).await;
    let program = Program::new(&bench.cluster);
    let [_one] = program.started(["one"]).await;
    let slow = Rule::new(Action::Delay(20 * SECOND)).client("two");
    bench.cluster.faults().add(slow.resource("configmaps"));
    program.ledger.clear();
    let two = program.start("two");
    sleep(15 * SECOND).await;
    let _ = program.cluster;
    bench
        .apply(json!({"metadata": {"name": "order-1", "labels": {"a": "b"}}}))
        .await;
    sleep(SECOND).await;
    assert!(!two.is_member());
    assert_eq!(program.ledger.holders().len(), 1, "nothing waits for it");
    sleep(30 * SECOND).await;
    assert!(two.is_member());
}

#[tokio::test(start_paused = true)]
async fn a_start_whose_future_is_dropped_joins_the_ring_when_the_caches_are_synced() {
    let bench = Bench::new().await;
    bench.create("a").await;
    let slow = Rule::new(Action::Delay(60 * SECOND)).resource("configmaps");
    let slow = bench.cluster.faults().add(slow);
    let ring = Sharding::new(Lease::new("shop").identity("one"));
    let builder = SharedControllerFactory::builder(client(&bench.cluster, "one"));
    let factory = builder.sharding(ring).build();
    let (calls, handler) = recorder(|_| async { Ok(Outcome::done()) });
    let config_maps = factory.for_object::<ConfigMap>();
    config_maps
        .register_handler("log", handler)
        .expect("registered");
    let start = timeout(30 * SECOND, factory.start(1)).await;
    assert!(start.is_err(), "it still waits");
    assert!(!factory.leadership().expect("it takes part").leads());
    bench.cluster.faults().remove(slow);
    sleep(60 * SECOND).await;
    assert!(factory.leadership().expect("it takes part").leads());
    assert_eq!(calls.names(), ["a"]);
    factory.stop().await.expect("stopped");
}
