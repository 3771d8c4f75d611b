//! The promises about handlers, starts and stops that `docs/promises.md` begins with, each by its name.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::Api;
use kube::api::PostParams;
use lariat_cache::{Metadata, MissingKind};
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_controller::{
    Context, ControllerOptions, HandlerError, HandlerOptions, Outcome, Predicate, Relation,
    StartError,
};
use lariat_core::Gvk;
use lariat_queue::Ageing;
use parking_lot::Mutex;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::time::{self, Instant};

use crate::bench::{Bench, Calls, SECOND, key, recorder, settle};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn key_is_with_one_worker_at_a_time() {
    let bench = Bench::new().await;
    let inside: Arc<Mutex<HashSet<String>>> = Arc::default();
    let most = Arc::new(AtomicUsize::new(0));
    let (now, peak) = (Arc::clone(&inside), Arc::clone(&most));
    let calls = bench.on("log", move |call| {
        let (now, peak) = (Arc::clone(&now), Arc::clone(&peak));
        async move {
            let count = {
                let mut now = now.lock();
                assert!(
                    now.insert(call.name.clone()),
                    "{} is with two workers",
                    call.name
                );
                now.len()
            };
            peak.fetch_max(count, Ordering::SeqCst);
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            now.lock().remove(&call.name);
            Ok(Outcome::done())
        }
    });
    bench.factory.start(3).await.unwrap();
    for round in 0..500 {
        bench.config_maps.enqueue(&key(&format!("o{}", round % 5)));
        if round % 50 == 0 {
            tokio::task::yield_now().await;
        }
    }
    bench.factory.stop().await.unwrap();
    assert!(calls.len() >= 5);
    let panics = bench.status().handlers[0].panics;
    assert_eq!(panics, 0);
    assert!(
        most.load(Ordering::SeqCst) <= 3,
        "no more than there are workers"
    );
}

#[tokio::test(start_paused = true)]
async fn keys_run_in_parallel_up_to_the_number_of_workers() {
    let bench = Bench::new().await;
    let calls = bench.on("log", |_| async {
        time::sleep(SECOND).await;
        Ok(Outcome::done())
    });
    for number in 0..9 {
        bench.config_maps.enqueue(&key(&format!("o{number}")));
    }
    let began = Instant::now();
    bench.factory.start(3).await.unwrap();
    time::sleep(5 * SECOND).await;
    let second = |call: &crate::bench::Call| (call.at - began).as_secs();
    let seconds: Vec<u64> = calls.all().iter().map(second).collect();
    assert_eq!(seconds, [0, 0, 0, 1, 1, 1, 2, 2, 2]);
}

/// Returns the last value a handler saw of each object.
fn last_values(calls: &Calls) -> BTreeMap<String, Option<String>> {
    let all = calls.all();
    all.into_iter()
        .map(|call| (call.name, call.value))
        .collect()
}

/// The expected state of the API server in the same form; deleted objects have no value.
struct Truth(BTreeMap<String, Option<String>>);

impl Truth {
    /// Creates, changes or deletes an object at random.
    async fn step(&mut self, bench: &Bench, random: &mut fastrand::Rng) {
        let name = format!("o{}", random.u8(..5));
        let exists = self.0.get(&name).is_some_and(Option::is_some);
        let value = match (exists, random.u8(..4)) {
            (false, _) => {
                bench.create(&name).await;
                Some("-".to_owned())
            }
            (true, 0) => {
                bench.delete(&name).await;
                None
            }
            (true, _) => {
                let value = random.u32(..).to_string();
                bench.change(&name, &value).await;
                Some(value)
            }
        };
        self.0.insert(name, value);
    }
}

#[tokio::test(start_paused = true)]
async fn last_change_reaches_every_handler_through_faults_and_restarts() {
    for seed in 0..8 {
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let bench = Bench::new().await;
        let always = bench.record("always");
        let late: Arc<Mutex<Vec<Calls>>> = Arc::default();
        let mut truth = Truth(BTreeMap::new());
        let mut runs = false;
        for step in 0..120 {
            truth.step(&bench, &mut random).await;
            match random.u8(..12) {
                0 => bench.cluster.cut_watches(),
                1 => bench.cluster.end_watches(),
                2 => {
                    // Events that expire while nothing watches end the next watch with 410.
                    bench.cluster.compact();
                    bench.cluster.cut_watches();
                }
                3 if runs => {
                    bench.factory.stop().await.unwrap();
                    runs = false;
                }
                4 => {
                    if late.lock().len() < 3 {
                        late.lock().push(bench.record(&format!("late {step}")));
                    }
                }
                5 if !runs => {
                    bench.start().await;
                    runs = true;
                }
                _ => time::sleep(Duration::from_millis(random.u64(..2_000))).await,
            }
        }
        if !runs {
            bench.start().await;
        }
        time::sleep(120 * SECOND).await;
        // Objects that were deleted before they were seen need no call.
        let seen = last_values(&always);
        for (name, value) in &truth.0 {
            if value.is_some() || seen.contains_key(name) {
                assert_eq!(seen.get(name), Some(value), "{name}");
            }
        }
        for calls in late.lock().iter() {
            let seen = last_values(calls);
            for (name, value) in truth.0.iter().filter(|(_, value)| value.is_some()) {
                assert_eq!(seen.get(name), Some(value), "{name}, of a late handler");
            }
            for (name, value) in &seen {
                assert_eq!(truth.0.get(name), Some(value), "{name}, of a late handler");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn handler_is_not_called_before_its_cache_is_synced() {
    let bench = Bench::new().await;
    let slow = Rule::new(Action::Delay(30 * SECOND)).resource("configmaps");
    bench.create("a").await;
    bench.cluster.faults().add(slow);
    let cache = bench.config_maps.cache();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let calls = bench.on("log", move |_| {
        log.lock().push(cache.list().count());
        async { Ok(Outcome::done()) }
    });
    for _ in 0..1000 {
        bench.config_maps.enqueue(&key("absent"));
        bench.config_maps.enqueue_after(&key("later"), 10 * SECOND);
    }
    assert_eq!(bench.status().queue.depth(), 1, "once, however often");
    time::sleep(60 * SECOND).await;
    assert_eq!(calls.len(), 0);
    bench.start().await;
    settle().await;
    assert_eq!(calls.len(), 3);
    assert!(
        seen.lock().iter().all(|count| *count == 1),
        "the cache was filled"
    );
}

#[tokio::test(start_paused = true)]
async fn handler_that_misbehaves_delays_only_its_key_and_its_worker() {
    let bench = Bench::new().await;
    let misbehaves = |how: &'static str| {
        move |call: crate::bench::Call| async move {
            match (call.name == "bad", how) {
                (true, "fails") => Err(HandlerError::from("no")),
                (true, "panics") => panic!("no"),
                (true, _) => std::future::pending().await,
                (false, _) => Ok(Outcome::done()),
            }
        }
    };
    let timeout = HandlerOptions::default().timeout(5 * SECOND);
    let fails = bench.on("fails", misbehaves("fails"));
    let panics = bench.on("panics", misbehaves("panics"));
    let times_out = bench.on_with("times out", timeout, misbehaves("hangs"));
    let well = bench.record("well");
    let secrets = bench.factory.for_object::<Secret>();
    secrets
        .register_handler("hangs", |_: lariat_controller::Context<Secret>| async {
            std::future::pending().await
        })
        .unwrap();
    secrets.enqueue(&key("s"));
    bench.factory.start(2).await.unwrap();
    for name in ["bad", "g1", "g2", "g3"] {
        bench.create(name).await;
    }
    settle().await;
    let good = |calls: &Calls| {
        calls
            .names()
            .iter()
            .filter(|name| name.starts_with('g'))
            .count()
    };
    for calls in [&fails, &panics, &times_out, &well] {
        assert_eq!(good(calls), 3, "other keys go on");
    }
    time::sleep(120 * SECOND).await;
    assert_eq!(
        well.len(),
        4,
        "and the other handlers of the key, once each"
    );
    for calls in [&fails, &panics, &times_out] {
        assert!(calls.len() > 6, "each is tried again by itself");
    }
    bench.factory.stop().await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn fresh_changes_overtake_the_initial_list_and_ageing_bounds_its_wait() {
    let ageing = Ageing::new(SECOND, 4);
    let bench = Bench::with(|builder| {
        builder.default_options(ControllerOptions::default().ageing(ageing).workers(1))
    })
    .await;
    for number in 0..50 {
        bench.create(&format!("old{number:02}")).await;
    }
    let calls = bench.on("log", |_| async {
        time::sleep(SECOND / 10).await;
        Ok(Outcome::done())
    });
    bench.factory.start(None).await.unwrap();
    // Fresh changes come faster than they can be handled.
    for number in 0..400 {
        bench
            .config_maps
            .enqueue(&key(&format!("fresh{number:03}")));
        time::sleep(SECOND / 11).await;
    }
    let names = calls.names();
    let first = names
        .iter()
        .position(|name| name.starts_with("fresh"))
        .unwrap();
    assert!(first <= 1, "the first fresh key is next");
    let old = names.iter().filter(|name| name.starts_with("old")).count();
    assert_eq!(
        old, 50,
        "all of the list was handled although fresh keys never ended"
    );
}

#[tokio::test(start_paused = true)]
async fn stopped_factory_starts_again_and_unused_kinds_are_freed() {
    let bench = Bench::with(|builder| builder.caches(|caches| caches.idle_grace(SECOND))).await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    let (calls, handler) = recorder(|_| async { Ok(Outcome::done()) });
    let registration = bench.config_maps.register_handler("log", handler).unwrap();
    for round in 0..3 {
        bench.start().await;
        bench.create(&format!("o{round}")).await;
        settle().await;
        assert_eq!(
            calls.len(),
            round + 1,
            "what was handled is not handled again"
        );
        bench.factory.stop().await.unwrap();
        assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks);
    }
    bench.start().await;
    registration.deregister().await;
    time::sleep(3 * SECOND).await;
    assert!(bench.factory.caches().status().is_empty());
    bench.factory.stop().await.unwrap();
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks);
}

#[tokio::test(start_paused = true)]
async fn missing_kind_is_waited_for_or_refused_by_name() {
    let widget = Gvk::new("demo.dev", "v1", "Widget");
    for policy in [MissingKind::Refuse, MissingKind::Wait] {
        let bench = Bench::with(|builder| builder.missing_kind(policy)).await;
        let calls = bench.record("log");
        bench.create("a").await;
        let widgets = bench.factory.for_kind(widget.clone());
        let handler = |_: Context<Metadata>| async { Ok(Outcome::done()) };
        let registered = widgets.view().register_handler("widgets", handler);
        drop(registered.expect("the name is free"));
        let began = Instant::now();
        let error = bench.factory.start(2).await.unwrap_err();
        let StartError::NotSynced(error) = &error else {
            panic!("{error}");
        };
        assert_eq!(error.kinds.len(), 1, "{error}");
        assert!(error.to_string().contains("demo.dev/v1 Widget"), "{error}");
        let waited = began.elapsed().as_secs();
        let expected = if policy == MissingKind::Wait { 120 } else { 0 };
        assert_eq!(waited, expected);
        let handled = usize::from(policy == MissingKind::Wait);
        assert!(
            calls.len() >= handled,
            "others are handled while one is waited for"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn stop_drains_joins_and_names_unfinished_keys() {
    let bench = Bench::with(|builder| builder.grace_period(10 * SECOND)).await;
    let tasks = Handle::current().metrics().num_alive_tasks();
    let calls = bench.on("log", |call| async move {
        time::sleep(if call.name == "slow" {
            600 * SECOND
        } else {
            SECOND
        })
        .await;
        Ok(Outcome::done())
    });
    for name in ["a", "b", "c", "slow"] {
        bench.create(name).await;
    }
    bench.start().await;
    settle().await;
    let began = Instant::now();
    let error = bench.factory.stop().await.unwrap_err();
    assert_eq!(began.elapsed().as_secs(), 10);
    let left = &error.unfinished[0];
    assert_eq!(
        (&left.gvk, &left.key),
        (&Gvk::new("", "v1", "ConfigMap"), &key("slow"))
    );
    assert_eq!(left.handler.as_deref(), Some("log"));
    assert_eq!(error.unfinished.len(), 1);
    assert_eq!(calls.len(), 4);
    bench.change("a", "1").await;
    time::sleep(60 * SECOND).await;
    assert_eq!(calls.len(), 4, "nothing is taken in any more");
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks);
}

#[tokio::test(start_paused = true)]
async fn outage_of_one_kind_does_not_slow_another() {
    let bench = Bench::new().await;
    let down = Refusal::new(http::StatusCode::SERVICE_UNAVAILABLE);
    let rule = Rule::new(Action::Refuse(down)).resource("secrets");
    let calls = bench.record("log");
    let secrets = bench.factory.for_object::<Secret>();
    let pods = bench.factory.for_object::<Pod>();
    let secret_calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&secret_calls);
    secrets
        .register_handler("log", move |_: lariat_controller::Context<Secret>| {
            count.fetch_add(1, Ordering::SeqCst);
            async { Ok(Outcome::done()) }
        })
        .unwrap();
    let _cache = pods.cache();
    bench.start().await;
    bench.cluster.faults().add(rule);
    bench.cluster.cut_watches();
    time::sleep(60 * SECOND).await;
    let journal = bench.cluster.journal();
    journal.clear();
    for number in 0..10 {
        let began = Instant::now();
        bench.create(&format!("o{number}")).await;
        settle().await;
        assert_eq!(calls.len(), number + 1);
        assert!(began.elapsed() < SECOND / 10);
        time::sleep(30 * SECOND).await;
    }
    let tries = journal.count("watch", "secrets") + journal.count("list", "secrets");
    assert!((5..=40).contains(&tries), "{tries} tries in five minutes");
    assert!(
        journal.count("watch", "configmaps") <= 2,
        "the other kinds just go on"
    );
    let failing = secrets.status().unwrap().cache.last_error;
    assert!(failing.is_some_and(|error| error.contains("503")));
    let _: &lariat_controller::SharedController<ConfigMap> = &bench.config_maps;
}

#[tokio::test(start_paused = true)]
async fn enqueued_key_calls_the_handler_whatever_its_predicate() {
    let bench = Bench::new().await;
    let nothing = HandlerOptions::default().only(Predicate::new(|_| false));
    let calls = bench.on_with("log", nothing, |call| async move {
        if call.attempt == 1 {
            return Err(HandlerError::from("not yet"));
        }
        Ok(Outcome::done())
    });
    let secrets = bench.factory.for_object::<Secret>();
    bench
        .config_maps
        .watch_related(&secrets, Relation::label("of"));
    bench.create("a").await;
    bench.start().await;
    bench.change("a", "1").await;
    settle().await;
    assert_eq!(calls.len(), 0, "the predicate refuses all changes");
    bench.config_maps.enqueue(&key("a"));
    time::sleep(60 * SECOND).await;
    assert_eq!(calls.len(), 2, "the key, and its retry");
    let related = json!({"metadata": {"name": "s", "labels": {"of": "a"}}});
    let related = serde_json::from_value(related).unwrap();
    let api: Api<Secret> = Api::namespaced(bench.cluster.client(), "default");
    api.create(&PostParams::default(), &related).await.unwrap();
    time::sleep(60 * SECOND).await;
    assert_eq!(calls.len(), 4, "a related object, and the retry");
}
