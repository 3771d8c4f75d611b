//! Factories that elect a leader.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use lariat_cluster::faults::{Action, Rule};
use lariat_controller::{
    Context, ControllerOptions, FactoryBuilder, HandlerOptions, HandlerResult, Outcome, RunError,
    SharedControllerFactory, StartError,
};
use lariat_core::Gvk;
use lariat_lease::{LeadershipState, Lease};
use lariat_testing::Logs;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, Calls, SECOND, recorder};
use crate::electing_bench::{Replica, elected, ended};

#[tokio::test(start_paused = true)]
async fn only_the_leader_calls_handlers_and_the_next_one_starts_with_all_objects() {
    let bench = Bench::new().await;
    let mut one = Replica::start(&bench.cluster, "one");
    sleep(SECOND).await;
    let two = Replica::start(&bench.cluster, "two");
    for name in ["a", "b", "c"] {
        bench.create(name).await;
    }
    sleep(60 * SECOND).await;
    assert_eq!((one.leads(), two.leads()), (true, false));
    assert_eq!((one.calls.len(), two.calls.len()), (3, 0));
    assert_eq!(
        two.factory.status()[0].cache.objects,
        3,
        "the cache is warm"
    );
    let began = Instant::now();
    one.stop().await.expect("stopped");
    sleep(SECOND / 100).await;
    assert_eq!(two.calls.len(), 3);
    assert!(two.calls.last().at - began < SECOND / 100);
    assert!(two.leads());
}

#[tokio::test(start_paused = true)]
async fn lease_that_is_lost_while_a_start_waits_for_a_cache_ends_the_run() {
    let bench = Bench::new().await;
    let never = Rule::new(Action::NoAnswer).resource("secrets");
    bench.cluster.faults().add(never);
    let factory = elected(&bench.cluster, "one")
        .sync_timeout(Duration::MAX)
        .build();
    let secrets = factory.for_object::<Secret>();
    let (_, handler) = recorder(|_| async { Ok(Outcome::done()) });
    let config_maps = factory.for_object::<ConfigMap>();
    drop(
        config_maps
            .register_handler("log", handler)
            .expect("registered"),
    );
    let handler = |_: Context<Secret>| async { Ok(Outcome::done()) };
    drop(
        secrets
            .register_handler("log", handler)
            .expect("registered"),
    );
    let mut run = JoinSet::new();
    let running = factory.clone();
    run.spawn(async move { running.run(2, std::future::pending::<()>()).await });
    let leadership = factory.leadership().expect("it takes part");
    assert!(leadership.acquired().await);
    bench.cluster.faults().block_leases("one");
    let ended = timeout(60 * SECOND, run.join_next()).await;
    let ended = ended.expect("it does not wait for Secrets").expect("a run");
    assert!(matches!(ended, Ok(Err(RunError::Lost(_)))), "{ended:?}");
}

/// They wait for the next start.
#[tokio::test(start_paused = true)]
async fn stop_on_standby_counts_no_keys() {
    let bench = Bench::new().await;
    let _one = Replica::start(&bench.cluster, "one");
    sleep(SECOND).await;
    let mut two = Replica::start(&bench.cluster, "two");
    bench.create("a").await;
    sleep(SECOND).await;
    let logs = Logs::begin();
    two.stop().await.expect("nothing hangs");
    let text = logs.text();
    assert!(text.contains("nothing is left to do"), "{text}");
    assert!(!text.contains("were processed"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn what_is_enqueued_on_standby_is_handled_once_by_whoever_takes_over() {
    let bench = Bench::new().await;
    let mut one = Replica::start(&bench.cluster, "one");
    sleep(SECOND).await;
    let two = Replica::start(&bench.cluster, "two");
    bench.create("a").await;
    for value in ["1", "2", "3"] {
        bench.change("a", value).await;
        sleep(10 * SECOND).await;
    }
    one.stop().await.expect("stopped");
    sleep(SECOND).await;
    assert_eq!(two.calls.values(), ["3"]);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_needs_no_leader_is_handled_by_every_replica() {
    let bench = Bench::new().await;
    let everywhere = |builder: FactoryBuilder| {
        let options = ControllerOptions::default().needs_leader(false);
        builder.kind_options(Gvk::new("", "v1", "ConfigMap"), options)
    };
    let one = Replica::start_with(&bench.cluster, "one", everywhere);
    let two = Replica::start_with(&bench.cluster, "two", everywhere);
    bench.create("a").await;
    sleep(10 * SECOND).await;
    assert_eq!((one.calls.len(), two.calls.len()), (1, 1));
    assert!(one.leads() != two.leads());
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_drops_its_calls_before_another_leads_and_its_run_ends() {
    let bench = Bench::new().await;
    let factory = elected(&bench.cluster, "one").build();
    let dropped = Arc::new(Mutex::new(None));
    let note = Arc::clone(&dropped);
    let hanging = move |_: Context<ConfigMap>| {
        let note = DropNote(Arc::clone(&note));
        async move {
            let _note = note;
            std::future::pending::<()>().await;
            Ok(Outcome::done())
        }
    };
    let options = HandlerOptions::default().timeout(Duration::MAX);
    let config_maps = factory.for_object::<ConfigMap>();
    config_maps
        .register_handler("hangs", options.handler(hanging))
        .expect("registered");
    let running = factory.clone();
    let mut run = JoinSet::new();
    run.spawn(async move { running.run(2, std::future::pending::<()>()).await });
    bench.create("a").await;
    sleep(5 * SECOND).await;
    let two = Replica::start(&bench.cluster, "two");
    sleep(10 * SECOND).await;

    bench.cluster.faults().blackhole("one");
    let began = Instant::now();
    let error = ended(&mut run).await.expect_err("the lease is lost");
    assert!(matches!(error, RunError::Lost(_)), "{error}");
    assert!(
        error.to_string().contains("lost the lease default/shop"),
        "{error}"
    );
    let after = dropped.lock().expect("the call was dropped") - began;
    assert!(after <= 10 * SECOND, "{after:?}");
    assert_eq!(
        two.calls.len(),
        0,
        "the other waits until the lease has expired"
    );
    two.factory
        .leadership()
        .expect("it takes part")
        .acquired()
        .await;
    sleep(SECOND).await;
    assert_eq!(two.calls.len(), 1);
    assert!(two.calls.last().at - began >= 12 * SECOND);
}

struct DropNote(Arc<Mutex<Option<Instant>>>);

impl Drop for DropNote {
    fn drop(&mut self) {
        *self.0.lock() = Some(Instant::now());
    }
}

#[tokio::test(start_paused = true)]
async fn a_factory_that_lost_its_lease_can_run_again() {
    let bench = Bench::new().await;
    let mut one = Replica::start(&bench.cluster, "one");
    bench.create("a").await;
    sleep(9 * SECOND).await;
    let cut = bench.cluster.faults().partition("one");
    assert!(one.ended().await.is_err());
    bench.cluster.faults().remove(cut);
    let mut start = pin!(one.factory.start(2));
    // The tasks of this run have not been polled yet, and none of them may find that the election has ended.
    drop(futures::poll!(start.as_mut()));
    let leadership = one.factory.leadership().expect("it takes part");
    assert_eq!(
        leadership.state(),
        LeadershipState::Standby { holder: None }
    );
    start.await.expect("it starts again");
    bench.create("b").await;
    sleep(60 * SECOND).await;
    assert!(one.factory.leadership().expect("it takes part").leads());
    let names: Vec<String> = one.calls.all().into_iter().map(|call| call.name).collect();
    assert!(names.contains(&"b".to_owned()), "{names:?}");
    one.factory.stop().await.expect("stopped");
}

#[tokio::test(start_paused = true)]
async fn a_program_that_runs_its_factory_again_after_a_loss_stands_by_and_leads_again() {
    let bench = Bench::new().await;
    let factory = elected(&bench.cluster, "one").build();
    let (calls, handler) = recorder(|_| async { Ok(Outcome::done()) });
    let config_maps = factory.for_object::<ConfigMap>();
    config_maps
        .register_handler("log", handler)
        .expect("registered");
    let (running, shutdown) = (factory.clone(), CancellationToken::new());
    let stop = shutdown.clone();
    let mut run = JoinSet::new();
    run.spawn(async move {
        let mut losses = 0;
        loop {
            match running.run(2, stop.cancelled()).await {
                Err(RunError::Lost(_)) => losses += 1,
                ended => return ended.map(|()| losses),
            }
        }
    });
    bench.create("a").await;
    sleep(9 * SECOND).await;
    let mut two = Replica::start(&bench.cluster, "two");
    sleep(SECOND).await;

    let cut = bench.cluster.faults().partition("one");
    let other = two.factory.leadership().expect("it takes part");
    assert!(other.acquired().await);
    bench.cluster.faults().remove(cut);
    bench.create("b").await;
    sleep(60 * SECOND).await;
    let leadership = factory.leadership().expect("it takes part");
    let holder = Some("two".into());
    assert_eq!(leadership.state(), LeadershipState::Standby { holder });
    let names = |calls: &Calls| -> Vec<String> {
        let all = calls.all().into_iter();
        all.map(|call| call.name).collect()
    };
    assert_eq!(
        (names(&calls), names(&two.calls).len()),
        (vec!["a".to_owned()], 2)
    );

    two.stop().await.expect("stopped");
    sleep(SECOND).await;
    assert!(leadership.leads());
    assert!(
        names(&calls).contains(&"b".to_owned()),
        "{:?}",
        names(&calls)
    );
    shutdown.cancel();
    let ended = run.join_next().await.expect("it ends once");
    assert_eq!(ended.expect("it does not panic"), Ok(1));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_held_fails_the_start() {
    let bench = Bench::new().await;
    let lease = Lease::new("shop").duration(5 * SECOND);
    let builder = SharedControllerFactory::builder(bench.cluster.client());
    let factory = builder.leader_election(lease).build();
    let error = factory.start(1).await.expect_err("it is refused");
    assert!(matches!(error, StartError::Lease(_)));
    let reason = "invalid configuration of the lease shop: \
               the lease duration 5s is not longer than the renew deadline 10s; set `renew_deadline` too";
    assert_eq!(error.to_string(), reason);
}

#[tokio::test(start_paused = true)]
async fn a_stop_finishes_what_is_due_before_the_lease_is_released() {
    let bench = Bench::new().await;
    let factory = elected(&bench.cluster, "one").build();
    let ended = Arc::new(Mutex::new(None));
    let note = Arc::clone(&ended);
    let slow = move |_: Context<ConfigMap>| {
        let note = Arc::clone(&note);
        async move {
            sleep(12 * SECOND).await;
            *note.lock() = Some(Instant::now());
            Ok(Outcome::done())
        }
    };
    let config_maps = factory.for_object::<ConfigMap>();
    config_maps
        .register_handler("slow", slow)
        .expect("registered");
    factory.start(1).await.expect("started");
    bench.create("a").await;
    sleep(SECOND).await;
    let two = Replica::start(&bench.cluster, "two");
    sleep(SECOND).await;
    factory.stop().await.expect("stopped");
    let ended = ended.lock().expect("the call came to its end");
    sleep(SECOND).await;
    assert_eq!(two.calls.len(), 1);
    assert!(two.calls.last().at >= ended);
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_drops_calls_lets_the_lease_expire() {
    let bench = Bench::new().await;
    let factory = elected(&bench.cluster, "one")
        .grace_period(5 * SECOND)
        .build();
    let config_maps = factory.for_object::<ConfigMap>();
    let hanging = |_: Context<ConfigMap>| std::future::pending::<HandlerResult>();
    config_maps
        .register_handler("hangs", hanging)
        .expect("registered");
    factory.start(1).await.expect("started");
    bench.create("a").await;
    let two = Replica::start(&bench.cluster, "two");
    sleep(10 * SECOND).await;
    let began = Instant::now();
    factory.stop().await.expect_err("the call is dropped");
    let stopped = Instant::now();
    assert_eq!(stopped - began, 5 * SECOND, "the stop does not wait longer");
    let leadership = factory.leadership().expect("it takes part");
    assert!(!leadership.leads());
    assert!(
        two.factory
            .leadership()
            .expect("it takes part")
            .acquired()
            .await
    );
    // A request that the dropped call has sent has this time to arrive.
    let waited = stopped.elapsed();
    assert!(waited >= 5 * SECOND && waited <= 15 * SECOND, "{waited:?}");

    // The lease is released again by a stop that drops no call.
    let mut two = two;
    two.stop().await.expect("stopped");
    let three = Replica::start(&bench.cluster, "three");
    sleep(SECOND).await;
    assert!(three.leads());
}

/// A panic ended the election alone: the process had no lease, no calls and no error.
#[tokio::test(start_paused = true)]
async fn election_that_panics_ends_the_run_with_the_reason() {
    let (breaks, is_broken) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
    let (when, was) = (Rc::clone(&breaks), Rc::clone(&is_broken));
    let _wall = lariat_core::clock::simulate(move || {
        if when.take() {
            was.set(true);
            panic!("the wall clock is broken");
        }
        std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 30)
    });
    let bench = Bench::new().await;
    let mut one = Replica::start(&bench.cluster, "one");
    sleep(10 * SECOND).await;
    assert!(one.leads());
    // Nothing else reads the wall clock now: the next to do so is the renewal.
    breaks.set(true);
    let ended = tokio::time::timeout(30 * SECOND, one.ended()).await;
    assert!(is_broken.get());
    let error = ended
        .expect("the run ends")
        .expect_err("it has lost its lease");
    let text = lariat_core::describe(&error);
    assert!(text.contains("default/"), "{text}");
    assert!(
        text.contains("its renewal panicked: the wall clock is broken"),
        "{text}"
    );
}

/// Its calls are dropped, and its other keys wait for the next leader.
#[tokio::test(start_paused = true)]
async fn lease_that_is_lost_during_a_stop_ends_the_run_with_the_loss() {
    let bench = Bench::new().await;
    let factory = elected(&bench.cluster, "one").build();
    let config_maps = factory.for_object::<ConfigMap>();
    let hangs = |_: Context<ConfigMap>| std::future::pending::<HandlerResult>();
    config_maps
        .register_handler("hangs", hangs)
        .expect("registered");
    let (running, stop) = (factory.clone(), CancellationToken::new());
    let stopped = stop.clone().cancelled_owned();
    let mut run = JoinSet::new();
    run.spawn(async move { running.run(1, stopped).await });
    for name in ["a", "b"] {
        bench.create(name).await;
    }
    sleep(5 * SECOND).await;
    let logs = Logs::begin();
    stop.cancel();
    sleep(SECOND).await;
    bench.cluster.faults().blackhole("one");
    let (stopping, mut stop) = (factory.clone(), JoinSet::new());
    stop.spawn(async move { stopping.stop().await });
    let error = ended(&mut run).await.expect_err("the lease is lost");
    assert!(matches!(error, RunError::Lost(_)), "{error}");
    let text = logs.text();
    assert!(!text.contains("were processed"), "{text}");
    let stopped = stop.join_next().await.expect("a stop").expect("it ends");
    let error = stopped.expect_err("keys are left");
    let mut left: Vec<_> = error.unfinished.iter().map(|it| it.key.name()).collect();
    left.sort_unstable();
    assert_eq!(left, ["a", "b"]);
}

/// Another process leads at once, and need not wait for the calls of kinds that need no lease.
#[tokio::test(start_paused = true)]
async fn standby_that_is_stopping_does_not_take_the_lease() {
    let bench = Bench::new().await;
    let mut one = Replica::start(&bench.cluster, "one");
    sleep(SECOND).await;
    let mut two = Replica::start_with(&bench.cluster, "two", |builder| {
        let everywhere = ControllerOptions::default().needs_leader(false);
        builder.kind_options(Gvk::new("", "v1", "Secret"), everywhere)
    });
    let secrets = two.factory.for_object::<Secret>();
    let hangs = |_: Context<Secret>| std::future::pending::<HandlerResult>();
    secrets
        .register_handler("hangs", hangs)
        .expect("registered");
    let secrets = kube::Api::<Secret>::namespaced(bench.cluster.client(), "default");
    let secret = serde_json::from_value(serde_json::json!({"metadata": {"name": "s"}}));
    let secret = secret.expect("it is one");
    let created = secrets
        .create(&kube::api::PostParams::default(), &secret)
        .await;
    created.expect("created");
    bench.create("a").await;
    sleep(5 * SECOND).await;
    let three = Replica::start(&bench.cluster, "three");
    sleep(5 * SECOND).await;
    two.stop.cancel();
    sleep(SECOND).await;
    one.stop().await.expect("nothing hangs");
    sleep(SECOND).await;
    assert_eq!(three.calls.len(), 1);
    assert!(two.ended().await.is_err(), "the call of the Secret hangs");
    assert_eq!(two.calls.len(), 0);
}
