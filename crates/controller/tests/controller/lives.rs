//! Handlers and kinds that are added and removed.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use lariat_cache::Phase;
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_controller::{Context, HandlerOptions, HandlerResult, Outcome, RegisterError};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time;
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, SECOND, key, recorder, settle};

async fn nothing<K: lariat_cache::View>(_: Context<K>) -> HandlerResult {
    Ok(Outcome::done())
}

#[tokio::test(start_paused = true)]
async fn a_scoped_handler_is_called_until_its_token_is_cancelled() {
    let bench = Bench::new().await;
    let scope = CancellationToken::new();
    let scoped = bench.record_with("scoped", HandlerOptions::default().until(scope.clone()));
    let others = bench.record("others");
    bench.start().await;
    bench.create("a").await;
    settle().await;
    scope.cancel();
    // At once, without waiting for others.
    bench.change("a", "1").await;
    settle().await;
    assert_eq!((scoped.len(), others.len()), (1, 2));
    let names: Vec<_> = bench
        .status()
        .handlers
        .iter()
        .map(|each| each.name.to_string())
        .collect();
    assert_eq!(names, ["others"], "it is taken out by itself");
    let again = bench.record("scoped");
    settle().await;
    assert_eq!(again.len(), 1, "its name is free");
}

#[tokio::test(start_paused = true)]
async fn on_end_is_called_once_however_a_handler_ends() {
    let bench = Bench::new().await;
    let scope = CancellationToken::new();
    let ends: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let register = |name: &'static str, options: HandlerOptions| {
        let (ends, panics) = (Arc::clone(&ends), name == "swept");
        let options = options.on_end(move || {
            ends.lock().push(name);
            assert!(!panics, "as the test wants");
        });
        let handler = nothing::<ConfigMap>;
        let registered = bench
            .config_maps
            .register_handler(name, options.handler(handler));
        registered.expect("registered")
    };
    let scoped = || HandlerOptions::default().until(scope.clone());
    let swept = register("swept", scoped());
    let _also = register("also swept", scoped());
    let left = register("left", HandlerOptions::default());
    let _kept = register("kept", HandlerOptions::default());
    assert!(ends.lock().is_empty());
    scope.cancel();
    bench.config_maps.sweep();
    assert_eq!(*ends.lock(), ["swept", "also swept"]);
    swept.deregister().await;
    left.deregister().await;
    assert_eq!(*ends.lock(), ["swept", "also swept", "left"]);
    drop(bench);
    assert_eq!(*ends.lock(), ["swept", "also swept", "left", "kept"]);
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_ends_while_nothing_runs_is_known_at_the_next_start() {
    let bench = Bench::new().await;
    let scope = CancellationToken::new();
    let scoped = bench.record_with("scoped", HandlerOptions::default().until(scope.clone()));
    scope.cancel();
    bench.create("a").await;
    bench.start().await;
    settle().await;
    assert_eq!(scoped.len(), 0);
    assert!(
        bench.config_maps.status().is_none(),
        "the kind is not needed"
    );
    bench.factory.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_last_scoped_handler_takes_its_kind_with_it() {
    let bench = Bench::with(|builder| builder.caches(|caches| caches.idle_grace(5 * SECOND))).await;
    let scope = CancellationToken::new();
    let (_, handler) = recorder(|_| async { Ok(Outcome::done()) });
    let options = HandlerOptions::default().until(scope.clone());
    let kept = bench
        .config_maps
        .register_handler("scoped", options.handler(handler));
    bench.start().await;
    bench.create("a").await;
    scope.cancel();
    time::sleep(10 * SECOND).await;
    assert!(bench.config_maps.status().is_none());
    assert!(
        bench.factory.caches().status().is_empty(),
        "its memory is freed"
    );
    // A registration keeps nothing alive.
    kept.unwrap().deregister().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_ends_with_its_last_handler_and_comes_back_with_the_next() {
    let bench = Bench::with(|builder| builder.caches(|caches| caches.idle_grace(5 * SECOND))).await;
    let (first, handler) = recorder(|_| async { Ok(Outcome::done()) });
    let one = bench.config_maps.register_handler("one", handler).unwrap();
    let (second, handler) = recorder(|_| async { Ok(Outcome::done()) });
    let two = bench.config_maps.register_handler("two", handler).unwrap();
    bench.start().await;
    bench.create("a").await;
    settle().await;
    one.deregister().await;
    time::sleep(60 * SECOND).await;
    bench.change("a", "1").await;
    settle().await;
    assert_eq!(
        (first.len(), second.len()),
        (1, 2),
        "one handler is enough to go on"
    );
    two.deregister().await;
    assert!(bench.config_maps.status().is_none());
    time::sleep(10 * SECOND).await;
    assert!(bench.factory.caches().status().is_empty());
    let watches = bench.cluster.journal().count("watch", "configmaps");
    bench.change("a", "2").await;
    let (third, handler) = recorder(|_| async { Ok(Outcome::done()) });
    bench.config_maps.register_handler("one", handler).unwrap();
    settle().await;
    assert_eq!(third.values(), ["2"]);
    assert_eq!(
        bench.cluster.journal().count("watch", "configmaps"),
        watches + 1
    );
    bench.factory.stop().await.unwrap();
    assert_eq!(second.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_kind_used_again_within_the_grace_period_keeps_its_watch() {
    let bench = Bench::new().await;
    let (_, handler) = recorder(|_| async { Ok(Outcome::done()) });
    let first = bench.config_maps.register_handler("one", handler).unwrap();
    bench.create("a").await;
    bench.start().await;
    settle().await;
    first.deregister().await;
    time::sleep(10 * SECOND).await;
    let second = bench.record("two");
    settle().await;
    assert_eq!(second.len(), 1);
    assert_eq!(bench.cluster.journal().count("watch", "configmaps"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cache_keeps_its_kind_without_handlers() {
    let bench = Bench::with(|builder| builder.caches(|caches| caches.idle_grace(SECOND))).await;
    let (_, handler) = recorder(|_| async { Ok(Outcome::done()) });
    let only = bench.config_maps.register_handler("one", handler).unwrap();
    let cache = bench.config_maps.cache();
    bench.start().await;
    only.deregister().await;
    time::sleep(60 * SECOND).await;
    bench.create("a").await;
    settle().await;
    assert!(cache.get(&key("a")).unwrap().is_some());
    let phases: Vec<_> = bench
        .factory
        .caches()
        .status()
        .iter()
        .map(|kind| kind.phase.clone())
        .collect();
    assert_eq!(phases, [Phase::Synced]);
}

#[tokio::test(start_paused = true)]
async fn a_transaction_registers_all_or_none_and_a_rollback_creates_nothing() {
    let bench = Bench::new().await;
    let secrets = bench.factory.for_object::<Secret>();
    bench.start().await;
    let mut plan = bench.factory.transaction();
    plan.register_handler(&bench.config_maps, "one", nothing::<ConfigMap>);
    plan.register_handler(&secrets, "one", nothing::<Secret>);
    plan.rollback();
    settle().await;
    assert!(bench.config_maps.status().is_none() && secrets.status().is_none());
    assert!(bench.cluster.journal().requests().is_empty());

    bench.record("taken");
    let mut plan = bench.factory.transaction();
    plan.register_handler(&secrets, "one", nothing::<Secret>);
    plan.register_handler(&bench.config_maps, "taken", nothing::<ConfigMap>);
    let error = plan.commit().unwrap_err();
    assert!(
        matches!(&error, RegisterError::NameTaken { name, .. } if name == "taken"),
        "{error}"
    );
    assert!(
        secrets.status().is_none(),
        "the one before it was not registered either"
    );

    let other = lariat_controller::SharedControllerFactory::builder(bench.cluster.client()).build();
    let mut plan = other.transaction();
    plan.register_handler(&secrets, "foreign", nothing::<Secret>);
    let error = plan.commit().unwrap_err();
    assert!(
        matches!(error, RegisterError::ForeignController { .. }),
        "{error}"
    );

    let mut plan = bench.factory.transaction();
    plan.register_handler(&secrets, "twice", nothing::<Secret>);
    plan.register_handler(&secrets, "twice", nothing::<Secret>);
    assert!(plan.commit().is_err(), "names are taken within it too");

    let mut plan = bench.factory.transaction();
    let (calls, handler) = recorder(|_| async { Ok(Outcome::done()) });
    plan.register_handler(&bench.config_maps, "two", handler);
    plan.register_handler(&secrets, "one", nothing::<Secret>);
    assert_eq!(calls.len(), 0);
    let registrations = plan.commit().unwrap();
    let names: Vec<_> = registrations
        .iter()
        .map(|each| (each.gvk().kind(), each.name()))
        .collect();
    assert_eq!(names, [("ConfigMap", "two"), ("Secret", "one")]);
    bench.create("a").await;
    settle().await;
    assert_eq!(calls.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_come_and_go_one_after_the_other_during_ten_thousand_changes() {
    let bench = Bench::new().await;
    let stays = bench.record("stays");
    bench.start().await;
    let factory = bench.factory.clone();
    let churn = async {
        for round in 0..100 {
            let (calls, handler) = recorder(|_| async { Ok(Outcome::done()) });
            let maps = factory.for_object::<ConfigMap>();
            let registered = maps
                .register_handler(&format!("h{round}"), handler)
                .unwrap();
            time::sleep(SECOND / 100).await;
            registered.deregister().await;
            let before = calls.len();
            tokio::task::yield_now().await;
            assert_eq!(calls.len(), before, "it is not called any more");
        }
    };
    let changes = async {
        for number in 0..10_000_u32 {
            let name = format!("o{}", number % 10);
            bench
                .apply(serde_json::json!({"metadata": {"name": name}, "data": {"value": number.to_string()}}))
                .await;
        }
    };
    tokio::join!(churn, changes);
    time::sleep(SECOND).await;
    let last = |name: String| {
        let all = stays.all();
        all.iter()
            .rev()
            .find(|call| call.name == name)
            .and_then(|call| call.value.clone())
    };
    for number in 0..10 {
        assert_eq!(
            last(format!("o{number}")),
            Some((9990 + number).to_string())
        );
    }
    assert_eq!(bench.status().handlers.len(), 1);
    assert_eq!(bench.cluster.journal().count("watch", "configmaps"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_register_another() {
    let bench = Bench::new().await;
    let factory = bench.factory.clone();
    let (late, handler) = recorder(|_| async { Ok(Outcome::done()) });
    let handler = Arc::new(parking_lot::Mutex::new(Some(handler)));
    bench.on("first", move |_| {
        let maps = factory.for_object::<ConfigMap>();
        if let Some(handler) = handler.lock().take() {
            maps.register_handler("late", handler).expect("registered");
        }
        async { Ok(Outcome::done()) }
    });
    bench.create("a").await;
    bench.start().await;
    settle().await;
    assert_eq!(late.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn kind_has_no_task_after_its_last_handler_has_ended() {
    let bench = Bench::with(|builder| builder.caches(|caches| caches.idle_grace(SECOND))).await;
    bench.start().await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    for round in 0..3 {
        let (calls, handler) = recorder(|_| async { Ok(Outcome::done()) });
        let registered = bench.config_maps.register_handler("log", handler);
        bench.create(&format!("o{round}")).await;
        settle().await;
        assert_eq!(calls.len(), round + 1);
        registered.expect("the name is free").deregister().await;
        time::sleep(3 * SECOND).await;
        assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks);
    }
}

#[tokio::test(start_paused = true)]
async fn start_does_not_wait_for_a_kind_whose_last_handler_is_deregistered_meanwhile() {
    let bench = Bench::new().await;
    let refused = Action::Refuse(Refusal::too_many_requests());
    let rule = Rule::new(refused).resource("secrets");
    bench.cluster.faults().add(rule);
    let secrets = bench.factory.for_object::<Secret>();
    let handler = |_: Context<Secret>| async { Ok(Outcome::done()) };
    let registered = secrets.register_handler("log", handler);
    bench.record("other");
    let mut start = JoinSet::new();
    let factory = bench.factory.clone();
    start.spawn(async move { factory.start(1).await });
    time::sleep(10 * SECOND).await;
    assert!(start.try_join_next().is_none(), "it waits for Secrets");
    registered.expect("registered").deregister().await;
    time::sleep(2 * SECOND).await;
    let started = start.try_join_next().expect("it has ended");
    assert!(matches!(started, Ok(Ok(()))), "{started:?}");
}
