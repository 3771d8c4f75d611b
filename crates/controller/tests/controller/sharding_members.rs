//! Members of a ring that fail, stop, lose their lease, or come while others do.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use lariat_cache::Change;
use lariat_cluster::faults::{Action, Rule};
use lariat_controller::{
    Context, Enqueue, HandlerError, HandlerOptions, Outcome, Predicate, RunError,
    SharedControllerFactory,
};
use lariat_lease::{Lease, Sharding};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::bench::{Bench, SECOND, recorder};
use crate::sharding_bench::{Program, WORKERS, Work, client, create_many};

/// The number of objects.
const OBJECTS: usize = 30;

/// A replica whose handler fails while the back end is down.
struct Failing {
    factory: SharedControllerFactory,
    /// Keeps it running.
    _run: JoinSet<Result<(), RunError>>,
}

impl Failing {
    fn start(bench: &Bench, name: &'static str, is_down: &Arc<AtomicBool>) -> Self {
        let ring = Sharding::new(Lease::new("shop").identity(name));
        let builder = SharedControllerFactory::builder(client(&bench.cluster, name));
        let factory = builder.sharding(ring).build();
        let is_down = Arc::clone(is_down);
        let handler = move |_: Context<ConfigMap>| {
            let is_down = is_down.load(Ordering::Relaxed);
            async move {
                if is_down {
                    return Err(HandlerError::from("the back end is down"));
                }
                Ok(Outcome::done())
            }
        };
        let maps = factory.for_object::<ConfigMap>();
        maps.register_handler("fails", handler).expect("registered");
        let running = factory.clone();
        let mut run = JoinSet::new();
        run.spawn(async move { running.run(4, std::future::pending::<()>()).await });
        Self { factory, _run: run }
    }

    /// Returns the number of keys that the handler fails for, which the lists confirm.
    fn failing(&self) -> usize {
        let maps = self.factory.for_object::<ConfigMap>();
        let status = maps.status().expect("it is in use");
        let keys = maps.failing_keys(10 * OBJECTS);
        assert_eq!(status.handlers[0].failing, keys.len());
        keys.len()
    }

    fn is_member(&self) -> bool {
        self.factory.leadership().expect("it takes part").leads()
    }
}

/// The retries of the old member wait for minutes: no worker sees the keys that move.
#[tokio::test(start_paused = true)]
async fn failing_keys_that_move_leave_the_old_member_while_their_retries_wait() {
    let bench = Bench::new().await;
    create_many(&bench, OBJECTS).await;
    let is_down = Arc::new(AtomicBool::new(true));
    let one = Failing::start(&bench, "one", &is_down);
    sleep(900 * SECOND).await;
    assert_eq!(one.failing(), OBJECTS);
    let two = Failing::start(&bench, "two", &is_down);
    sleep(2 * SECOND).await;
    assert!(two.is_member());
    let of_two = two.failing();
    assert!((1..OBJECTS).contains(&of_two), "{of_two} keys fail");
    assert_eq!(one.failing(), OBJECTS - of_two);

    // The keys that come back fail here again, and recover with all others.
    drop(two);
    sleep(60 * SECOND).await;
    assert_eq!(one.failing(), OBJECTS);
    is_down.store(false, Ordering::Relaxed);
    sleep(1_800 * SECOND).await;
    assert_eq!(one.failing(), 0);
}

#[tokio::test(start_paused = true)]
async fn member_that_joins_during_a_stop_has_all_keys_when_it_has_ended() {
    let bench = Bench::new().await;
    create_many(&bench, WORKERS).await;
    let program = Program {
        work: Work::Slow(12 * SECOND),
        ..Program::new(&bench.cluster)
    };
    let mut one = program.start("one");
    sleep(5 * SECOND).await;
    one.stop.cancel();
    sleep(SECOND).await;
    let two = program.start("two");
    sleep(4 * SECOND).await;
    assert!(!two.is_member(), "calls of the first are running");
    one.ended().await.expect("stopped");
    program.ledger.clear();
    // The ledger checks that no key is processed by both.
    sleep(15 * SECOND).await;
    assert!(two.is_member());
    let holders = program.ledger.holders();
    assert_eq!(holders.len(), WORKERS);
    assert!(holders.values().all(|by| *by == "two"), "{holders:?}");
}

#[tokio::test(start_paused = true)]
async fn member_that_lost_its_lease_joins_again_and_has_a_share() {
    let bench = Bench::new().await;
    create_many(&bench, OBJECTS).await;
    let program = Program::new(&bench.cluster);
    let [mut one, two] = program.started(["one", "two"]).await;
    let cut = Rule::new(Action::NoAnswer).client("one");
    let cut = bench.cluster.faults().add(cut);
    let error = one.ended().await.expect_err("it is lost");
    assert!(matches!(error, RunError::Lost(_)), "{error}");
    sleep(20 * SECOND).await;
    bench.cluster.faults().remove(cut);
    let run = one.factory.run(WORKERS, sleep(60 * SECOND));
    let observed = async {
        sleep(30 * SECOND).await;
        assert!(one.is_member() && two.is_member());
        program.ledger.clear();
        for replica in [&one, &two] {
            let all = replica.config_maps.enqueue_all(&Enqueue::now());
            all.expect("enqueued");
        }
        sleep(SECOND).await;
        let holders = program.ledger.holders();
        assert_eq!(holders.len(), OBJECTS);
        let of_one = holders.values().filter(|by| **by == "one").count();
        assert!((1..OBJECTS).contains(&of_one), "one has {of_one}");
    };
    let (ended, ()) = tokio::join!(run, observed);
    ended.expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn member_that_is_started_again_under_its_name_handles_its_share_again() {
    let bench = Bench::new().await;
    create_many(&bench, OBJECTS).await;
    let program = Program::new(&bench.cluster);
    let [mut one, _two] = program.started(["one", "two"]).await;
    one.stop().await.expect("stopped");
    sleep(SECOND).await;
    program.ledger.clear();
    let run = one.factory.run(WORKERS, std::future::pending::<()>());
    let run = timeout(10 * SECOND, run).await;
    assert!(run.is_err(), "it goes on");
    let holders = program.ledger.holders();
    assert!((1..OBJECTS).contains(&holders.len()), "{holders:?}");
    assert!(holders.values().all(|by| *by == "one"), "{holders:?}");
}

/// The former member had selected an update, and had failed for it.
#[tokio::test(start_paused = true)]
async fn key_that_a_replica_gains_is_handled_by_handlers_of_updates() {
    let bench = Bench::new().await;
    create_many(&bench, 30).await;
    let program = Program::new(&bench.cluster);
    let mut replicas = program.started(["one", "two"]).await;
    let calls = replicas.each_ref().map(|replica| {
        let (calls, handler) = recorder(|_| async { Err("no luck".into()) });
        let updates = Predicate::new(|change| matches!(change, Change::Updated { .. }));
        let options = HandlerOptions::default().only(updates);
        let registered = replica
            .config_maps
            .register_handler("picky", options.handler(handler));
        drop(registered.expect("the name is free"));
        calls
    });
    sleep(SECOND).await;
    for number in 0..30 {
        bench.change(&format!("order-{number}"), "1").await;
    }
    sleep(5 * SECOND).await;
    let failed: BTreeSet<String> = calls[0].names().into_iter().collect();
    assert!(!failed.is_empty());
    replicas[0].stop.cancel();
    while replicas[0].run.join_next().await.is_some() {}
    sleep(60 * SECOND).await;
    let handled: BTreeSet<String> = calls[1].names().into_iter().collect();
    assert!(failed.is_subset(&handled), "{failed:?} {handled:?}");
}

#[tokio::test(start_paused = true)]
async fn replica_that_starts_calls_no_handler_for_objects_that_its_predicate_rejects() {
    let bench = Bench::new().await;
    create_many(&bench, 30).await;
    let program = Program::new(&bench.cluster);
    let seen = Seen::default();
    let handlers = seen.clone();
    let picky = move |factory: &SharedControllerFactory| {
        let seen = handlers.clone();
        let handler = move |cx: Context<ConfigMap>| {
            seen.lock().insert(cx.key().name().to_owned());
            async { Ok(Outcome::done()) }
        };
        let wanted = |change: &Change| change.object().key().name().ends_with('7');
        let options = HandlerOptions::default().only(Predicate::new(wanted));
        let config_maps = factory.for_object::<ConfigMap>();
        let registered = config_maps.register_handler("picky", options.handler(handler));
        drop(registered.expect("the name is free"));
    };
    let replicas = ["one", "two"].map(|name| program.start_with(name, |builder| builder));
    replicas.iter().for_each(|replica| picky(&replica.factory));
    sleep(60 * SECOND).await;
    let seen = seen.lock();
    assert!(
        seen.iter().eq(["order-17", "order-27", "order-7"]),
        "{seen:?}"
    );
}

/// The names of the objects that a handler was called for.
type Seen = Arc<Mutex<BTreeSet<String>>>;
