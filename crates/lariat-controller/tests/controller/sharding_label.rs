//! Factories that divide the keys by a label, and watch their own part only.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_cluster::faults::{Action, Rule};
use lariat_controller::{Context, ControllerOptions, HandlerError, Outcome, RunError};
use lariat_core::{Gvk, ObjectKey, ResourceVersion};
use lariat_lease::{Lease, Sharding};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::bench::{Bench, SECOND};
use crate::sharding_bench::{Program, Replica};

const LABEL: &str = "shop.dev/shard";

/// The number of values that are divided.
const SHARDS: usize = 24;

fn ring(name: &str) -> Sharding {
    let ring = Sharding::new(Lease::new("shop").identity(name));
    let values = (0..SHARDS).map(|shard| shard.to_string());
    ring.drain_timeout(20 * SECOND).by_label(LABEL, values)
}

fn start(program: &Program<'_>, name: &'static str) -> Replica {
    program.start_with(name, |builder| builder.sharding(ring(name)))
}

async fn started<const N: usize>(program: &Program<'_>, names: [&'static str; N]) -> [Replica; N] {
    let replicas = names.map(|name| start(program, name));
    sleep(5 * SECOND).await;
    assert!(replicas.iter().all(Replica::is_member));
    replicas
}

/// Creates or changes an object of a shard.
async fn put(bench: &Bench, number: usize, value: &str) {
    let labels = json!({LABEL: (number % SHARDS).to_string()});
    let metadata = json!({"name": format!("order-{number}"), "labels": labels});
    bench
        .apply(json!({"metadata": metadata, "data": {"value": value}}))
        .await;
}

async fn put_many(bench: &Bench, numbers: std::ops::Range<usize>, value: &str) {
    for number in numbers {
        put(bench, number, value).await;
    }
}

/// The calls without an object.
type Gone = Arc<Mutex<Vec<ObjectKey>>>;

/// Records the calls of replicas that get no object.
fn record_gone<'a>(replicas: impl IntoIterator<Item = &'a Replica>) -> Gone {
    let gone = Gone::default();
    for replica in replicas {
        let gone = Arc::clone(&gone);
        let record = move |cx: Context<ConfigMap>| {
            if cx.raw().is_none() {
                gone.lock().push(cx.key().clone());
            }
            async { Ok::<_, HandlerError>(Outcome::done()) }
        };
        let registered = replica.config_maps.register_handler("gone", record);
        registered.expect("registered");
    }
    gone
}

fn cached(replica: &Replica) -> Vec<ObjectKey> {
    let objects = replica.config_maps.cache().snapshot();
    objects.iter().map(|object| object.key().clone()).collect()
}

/// Checks that each replica caches exactly what it handled.
fn check_cached(program: &Program<'_>, replicas: &[&Replica], names: &[&str]) {
    let holders = program.ledger.holders();
    for (replica, name) in replicas.iter().zip(names) {
        let own = holders.iter().filter(|(_, by)| by == &name);
        let own: Vec<_> = own.map(|(key, _)| key.clone()).collect();
        assert_eq!(cached(replica), own, "{name} caches something else");
    }
}

#[tokio::test(start_paused = true)]
async fn each_object_is_cached_and_handled_by_one_replica() {
    let bench = Bench::new().await;
    put_many(&bench, 0..48, "a").await;
    let program = Program::new(&bench.cluster);
    let [one, two, three] = started(&program, ["one", "two", "three"]).await;
    program.ledger.clear();
    put_many(&bench, 0..72, "b").await;
    sleep(SECOND).await;
    assert_eq!(program.ledger.holders().len(), 72);
    check_cached(&program, &[&one, &two, &three], &["one", "two", "three"]);
}

#[tokio::test(start_paused = true)]
async fn what_moves_is_read_before_it_is_handled_and_deletes_nothing() {
    let bench = Bench::new().await;
    put_many(&bench, 0..48, "a").await;
    let program = Program::new(&bench.cluster);
    let [one, two] = started(&program, ["one", "two"]).await;
    let gone = record_gone([&one, &two]);
    sleep(SECOND).await;
    let before = cached(&one).len() + cached(&two).len();
    assert_eq!(before, 48);
    program.ledger.clear();

    let [mut three] = started(&program, ["three"]).await;
    let moved = program.ledger.holders();
    assert!(!moved.is_empty(), "three has a share");
    assert!(moved.values().all(|by| *by == "three"), "{moved:?}");
    assert_eq!(cached(&three).len(), moved.len());
    assert_eq!(cached(&one).len() + cached(&two).len(), 48 - moved.len());

    program.ledger.clear();
    three.stop().await.expect("stopped");
    sleep(SECOND).await;
    let back = program.ledger.holders();
    assert!(back.values().all(|by| *by != "three"));
    assert_eq!(Vec::from_iter(back.keys()), Vec::from_iter(moved.keys()));
    assert_eq!(cached(&one).len() + cached(&two).len(), 48);
    assert_eq!(*gone.lock(), [], "nothing was deleted");
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_replica_had_is_handled_by_the_others_when_its_lease_has_expired() {
    let bench = Bench::new().await;
    put_many(&bench, 0..48, "a").await;
    let program = Program::new(&bench.cluster);
    let [one, two] = started(&program, ["one", "two"]).await;
    let (lost, gone) = (cached(&one), record_gone([&two]));
    assert!(!lost.is_empty(), "one has a share");
    program.ledger.clear();
    // Its lease is not released: a dropped factory would do that.
    let cut = Rule::new(Action::NoAnswer).client("one");
    bench.cluster.faults().add(cut);
    let killed = Instant::now();
    drop(one);
    // They change while they have no holder.
    put_many(&bench, 0..48, "b").await;
    sleep(30 * SECOND).await;
    let holders = program.ledger.holders();
    assert_eq!(holders.len(), 48);
    assert!(holders.values().all(|by| *by == "two"), "{holders:?}");
    assert_eq!(cached(&two).len(), 48);
    assert_eq!(*gone.lock(), [], "nothing was deleted");
    for key in &lost {
        let runs = two.config_maps.history_of(key);
        let last = runs.last().expect("it was handled").began;
        // The lease lasts 15 seconds from its last renewal, which is at most two before.
        assert!(last >= killed + 12 * SECOND, "{key} has two holders");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_handled_where_the_object_was() {
    let bench = Bench::new().await;
    put_many(&bench, 0..24, "a").await;
    let program = Program::new(&bench.cluster);
    let [one, two] = started(&program, ["one", "two"]).await;
    let gone = record_gone([&one, &two]);
    sleep(SECOND).await;
    let before = program.ledger.holders();
    program.ledger.clear();
    for number in 0..24 {
        bench.delete(&format!("order-{number}")).await;
    }
    sleep(SECOND).await;
    assert_eq!(program.ledger.holders(), before);
    assert_eq!(gone.lock().len(), 24);
}

#[tokio::test(start_paused = true)]
async fn what_has_no_divided_value_or_another_replica_is_not_handled() {
    let bench = Bench::new().await;
    bench.create("unlabelled").await;
    let metadata = json!({"name": "other", "labels": {LABEL: SHARDS.to_string()}});
    bench.apply(json!({"metadata": metadata})).await;
    put_many(&bench, 0..24, "a").await;
    let program = Program::new(&bench.cluster);
    let [one, two] = started(&program, ["one", "two"]).await;
    let gone = record_gone([&one, &two]);
    program.ledger.clear();
    let mut names: Vec<String> = (0..24).map(|number| format!("order-{number}")).collect();
    names.extend(["unlabelled", "other", "missing"].map(str::to_owned));
    for name in &names {
        let key = ObjectKey::namespaced("default", name);
        one.config_maps.enqueue(&key);
        two.config_maps.enqueue(&key);
    }
    sleep(SECOND).await;
    assert_eq!(program.ledger.holders().len(), 24, "each by its replica");
    assert_eq!(*gone.lock(), [], "a key of another is no deletion");
}

/// Objects change all the time while replicas come, stop and die.
#[tokio::test(start_paused = true)]
async fn no_change_is_lost_while_values_move() {
    let bench = Bench::new().await;
    let program = Program::new(&bench.cluster);
    let seen: Arc<Mutex<BTreeMap<ObjectKey, ResourceVersion>>> = Arc::default();
    let deletions = Gone::default();
    let begin = |name: &'static str| {
        let replica = start(&program, name);
        let (seen, deletions) = (Arc::clone(&seen), Arc::clone(&deletions));
        let record = move |cx: Context<ConfigMap>| {
            match cx.raw() {
                Some(object) => {
                    let version = object.version().clone();
                    seen.lock().insert(cx.key().clone(), version);
                }
                None => deletions.lock().push(cx.key().clone()),
            }
            async { Ok::<_, HandlerError>(Outcome::done()) }
        };
        let registered = replica.config_maps.register_handler("seen", record);
        registered.expect("registered");
        replica
    };
    let changes = async {
        for round in 0..120 {
            put_many(&bench, 0..48, &round.to_string()).await;
            sleep(SECOND / 2).await;
        }
    };
    let replicas = async {
        let mut one = begin("one");
        sleep(3 * SECOND).await;
        let two = begin("two");
        sleep(5 * SECOND).await;
        let three = begin("three");
        sleep(2 * SECOND).await;
        one.stop().await.expect("stopped");
        let four = begin("four");
        sleep(4 * SECOND).await;
        drop(two);
        sleep(3 * SECOND).await;
        let one = begin("one");
        sleep(40 * SECOND).await;
        [one, three, four]
    };
    let ((), replicas) = tokio::join!(changes, replicas);
    sleep(5 * SECOND).await;
    assert_eq!(*deletions.lock(), [], "nothing is deleted");
    let counts = replicas.each_ref().map(|replica| cached(replica).len());
    assert_eq!(counts.iter().sum::<usize>(), 48, "{counts:?}");
    for object in bench.api.list(&Default::default()).await.expect("listed") {
        let name = object.metadata.name.expect("a name");
        let version = object.metadata.resource_version.expect("a version");
        let last = seen.lock()[&ObjectKey::namespaced("default", &name)].to_string();
        assert_eq!(last, version, "the last state of {name} is handled");
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_every_replica_handles_is_cached_whole() {
    let bench = Bench::new().await;
    put_many(&bench, 0..24, "a").await;
    let program = Program::new(&bench.cluster);
    let replicas = ["one", "two"].map(|name| {
        program.start_with(name, |builder| {
            let all = ControllerOptions::default().needs_leader(false);
            let config_maps = Gvk::new("", "v1", "ConfigMap");
            builder.sharding(ring(name)).kind_options(config_maps, all)
        })
    });
    sleep(5 * SECOND).await;
    for replica in &replicas {
        assert_eq!(cached(replica).len(), 24);
    }
}

#[tokio::test(start_paused = true)]
async fn a_label_that_cannot_be_is_refused() {
    let bench = Bench::new().await;
    let program = Program::new(&bench.cluster);
    let mut replica = program.start_with("one", |builder| {
        let ring = Sharding::new(Lease::new("shop").identity("one"));
        builder.sharding(ring.by_label("no key", ["0"]))
    });
    let error = replica.ended().await.expect_err("it is invalid");
    assert!(matches!(error, RunError::Start(_)), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_divides_otherwise_waits_until_the_others_have_left() {
    let bench = Bench::new().await;
    put_many(&bench, 0..24, "a").await;
    let program = Program::new(&bench.cluster);
    let [mut one, mut two] = program.started(["one", "two"]).await;
    let labelled = ["three", "four"].map(|name| start(&program, name));
    sleep(60 * SECOND).await;
    assert!(labelled.iter().all(|replica| !replica.is_member()));
    assert!(one.is_member() && two.is_member());
    program.ledger.clear();
    one.stop().await.expect("stopped");
    sleep(SECOND).await;
    let holders = program.ledger.holders();
    assert!(holders.values().all(|by| *by == "two"), "{holders:?}");
    program.ledger.clear();
    two.stop().await.expect("stopped");
    sleep(5 * SECOND).await;
    assert!(labelled.iter().all(Replica::is_member));
    let [three, four] = &labelled;
    check_cached(&program, &[three, four], &["three", "four"]);
    assert_eq!(program.ledger.holders().len(), 24);
}
