//! Interleavings that once led to bugs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::networking::v1::IngressClass;
use lariat_cache::{Change, Metadata, Subscriber};
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_controller::{
    Context, Enqueue, HandlerOptions, Ignore, Outcome, Predicate, Relation, SharedController,
    SharedControllerFactory,
};
use lariat_core::{Gvk, ObjectKey};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, SECOND, key, recorder, settle};
use crate::relations::{create, owner, secrets};

#[tokio::test(start_paused = true)]
async fn a_retry_that_waits_for_its_turn_keeps_its_failures() {
    let bench = Bench::new().await;
    let options = HandlerOptions::default().concurrency(1).max_retries(4);
    let attempts: Arc<Mutex<HashMap<String, u32>>> = Arc::default();
    let log = Arc::clone(&attempts);
    bench.on_with("limited", options, move |call| {
        log.lock().insert(call.name.clone(), call.attempt);
        async {
            time::sleep(SECOND / 10).await;
            Err("the API is down".into())
        }
    });
    for number in 0..30 {
        bench.create(&format!("o{number}")).await;
    }
    bench.factory.start(4).await.unwrap();
    time::sleep(600 * SECOND).await;
    assert_eq!(
        bench.status().handlers[0].exhausted,
        30,
        "all of them, in the end"
    );
    assert_eq!(bench.status().handlers[0].calls, 30 * 5);
    assert!(attempts.lock().values().all(|attempt| *attempt == 5));
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_a_place_that_is_kept_for_a_key_in_line() {
    let bench = Bench::new().await;
    let limited = bench.on_with(
        "limited",
        HandlerOptions::default().concurrency(1),
        |_| async {
            time::sleep(SECOND / 100).await;
            Ok(Outcome::done())
        },
    );
    bench.on("free", |_| async {
        time::sleep(SECOND).await;
        Ok(Outcome::done())
    });
    for number in 0..10 {
        bench.create(&format!("o{number}")).await;
    }
    bench.factory.start(2).await.unwrap();
    time::sleep(SECOND * 3 / 2).await;
    let began = Instant::now();
    bench.factory.stop().await.unwrap();
    assert!(began.elapsed() < 10 * SECOND, "{:?}", began.elapsed());
    assert_eq!(limited.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_comes_while_the_last_one_leaves_does_not_share_its_key() {
    let bench = Bench::new().await;
    let inside = Arc::new(AtomicUsize::new(0));
    let (entered, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (count, signal, wait) = (Arc::clone(&inside), Arc::clone(&entered), Arc::clone(&go));
    let (_, handler) = recorder(move |_| {
        let (count, signal, wait) = (Arc::clone(&count), Arc::clone(&signal), Arc::clone(&wait));
        async move {
            count.fetch_add(1, Ordering::SeqCst);
            signal.notify_one();
            wait.notified().await;
            count.fetch_sub(1, Ordering::SeqCst);
            Ok(Outcome::done())
        }
    });
    let scope = CancellationToken::new();
    let until = HandlerOptions::default().until(scope.clone());
    bench
        .config_maps
        .register_handler("old", until.handler(handler))
        .unwrap();
    bench.create("a").await;
    bench.start().await;
    entered.notified().await;
    scope.cancel();
    settle().await;
    let count = Arc::clone(&inside);
    let new = bench.on("new", move |_| {
        let inside = count.load(Ordering::SeqCst);
        async move {
            assert_eq!(inside, 0, "the key is with the old handler");
            Ok(Outcome::done())
        }
    });
    time::sleep(5 * SECOND).await;
    assert_eq!(new.len(), 0);
    go.notify_one();
    settle().await;
    assert_eq!((new.len(), bench.status().handlers[0].panics), (1, 0));
}

/// Enqueues keys when objects of another kind change, as a program may do without a relation.
struct Forwards(SharedController<ConfigMap>);

impl Subscriber for Forwards {
    fn changed(&self, changes: &[Change]) {
        changes
            .iter()
            .for_each(|change| self.0.enqueue(change.key()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn subscribers_that_enqueue_and_first_uses_of_a_kind_do_not_block_each_other() {
    for _ in 0..20 {
        let bench = Bench::new().await;
        let secrets = bench.factory.for_object::<Secret>();
        bench.config_maps.watch_related(
            &secrets,
            Relation::map(|secret: &Metadata| vec![secret.key().clone()]),
        );
        let informer = bench
            .factory
            .caches()
            .for_kind(Gvk::new("", "v1", "Secret"));
        let _forwards = informer.subscribe(Arc::new(Forwards(bench.config_maps.clone())));
        bench.start().await;
        let api: kube::Api<Secret> = kube::Api::namespaced(bench.cluster.client(), "default");
        let creates = async {
            for number in 0..10 {
                let name = format!("s{number}");
                let object = serde_json::json!({"metadata": {"name": name}});
                let object: Secret = serde_json::from_value(object).unwrap();
                api.create(&kube::api::PostParams::default(), &object)
                    .await
                    .unwrap();
            }
        };
        let maps = bench.config_maps.clone();
        let churn = async {
            for number in 0..10 {
                let (_, handler) = recorder(|_| async { Ok(Outcome::done()) });
                let handler = maps
                    .register_handler(&format!("h{number}"), handler)
                    .unwrap();
                tokio::task::yield_now().await;
                handler.deregister().await;
            }
        };
        let both = async { tokio::join!(creates, churn) };
        time::timeout(20 * SECOND, both)
            .await
            .expect("no wait lasts for ever");
        bench.factory.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hundred_tasks_register_enqueue_and_leave_while_the_factory_stops_and_starts() {
    let bench = Bench::new().await;
    let over = Arc::new(AtomicBool::new(false));
    bench.create("a").await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..100 {
        let (maps, over) = (bench.config_maps.clone(), Arc::clone(&over));
        tasks.spawn(async move {
            while !over.load(Ordering::Relaxed) {
                let (calls, handler) = recorder(|_| async { Ok(Outcome::done()) });
                let registered = maps
                    .register_handler(&format!("h{number}"), handler)
                    .unwrap();
                registered.enqueue(&key("a"));
                maps.enqueue(&key(&format!("o{number}")));
                tokio::task::yield_now().await;
                registered.deregister().await;
                let seen = calls.len();
                tokio::task::yield_now().await;
                assert_eq!(calls.len(), seen, "no handler is called once it is gone");
            }
        });
    }
    for _ in 0..20 {
        bench.start().await;
        tokio::task::yield_now().await;
        bench.factory.stop().await.unwrap();
    }
    over.store(true, Ordering::Relaxed);
    let joined = async { while tasks.join_next().await.transpose().unwrap().is_some() {} };
    time::timeout(20 * SECOND, joined)
        .await
        .expect("no wait lasts for ever");
    let calls = bench.record("after");
    bench.start().await;
    bench.change("a", "1").await;
    let seen = async {
        while !calls.values().contains(&"1".to_owned()) {
            time::sleep(Duration::from_millis(1)).await;
        }
    };
    time::timeout(20 * SECOND, seen)
        .await
        .expect("the controller works");
}

#[tokio::test(start_paused = true)]
async fn requests_to_one_handler_do_not_use_up_its_retries() {
    let bench = Bench::new().await;
    let options = HandlerOptions::default().max_retries(2);
    let calls = bench.on_with("fails", options, |_| async { Err("no".into()) });
    bench.start().await;
    for _ in 0..5 {
        let request = Enqueue::rate_limited().to("fails");
        bench.config_maps.enqueue_with(&key("a"), &request).unwrap();
    }
    time::sleep(60 * SECOND).await;
    let attempts: Vec<u32> = calls.all().iter().map(|call| call.attempt).collect();
    assert_eq!(attempts, [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn an_unused_kind_with_an_enqueued_key_ends_after_a_while() {
    let bench = Bench::with(|builder| builder.caches(|caches| caches.idle_grace(SECOND))).await;
    bench.start().await;
    let request = Enqueue::now().to("missing");
    bench
        .config_maps
        .enqueue_with(&key("a"), &request)
        .unwrap_err();
    assert!(
        bench.config_maps.status().is_none(),
        "a refused request opens nothing"
    );
    bench.config_maps.enqueue(&key("absent"));
    settle().await;
    let calls = bench.record("late");
    settle().await;
    assert!(calls.len() <= 1);
    bench.factory.for_object::<Secret>().enqueue(&key("a"));
    time::sleep(120 * SECOND).await;
    let kinds: Vec<_> = bench
        .factory
        .status()
        .iter()
        .map(|s| s.cache.gvk.to_string())
        .collect();
    assert_eq!(kinds, ["v1 ConfigMap"]);
}

#[tokio::test(start_paused = true)]
async fn a_scope_that_ends_before_its_kind_can_be_read_frees_the_kind() {
    let bench = Bench::with(|builder| {
        builder
            .caches(|caches| caches.idle_grace(SECOND))
            .sync_timeout(5 * SECOND)
    })
    .await;
    let forbidden = Refusal::new(http::StatusCode::FORBIDDEN);
    bench
        .cluster
        .faults()
        .add(Rule::new(Action::Refuse(forbidden)).resource("configmaps"));
    bench.start().await;
    let scope = CancellationToken::new();
    bench.record_with("scoped", HandlerOptions::default().until(scope.clone()));
    time::sleep(5 * SECOND).await;
    scope.cancel();
    time::sleep(5 * SECOND).await;
    assert!(bench.config_maps.status().is_none());
    assert!(bench.factory.caches().status().is_empty());
}

#[tokio::test(start_paused = true)]
async fn kinds_that_are_related_to_each_other_go_with_their_factory() {
    let bench = Bench::new().await;
    let witness = Arc::new(());
    {
        let factory = SharedControllerFactory::builder(bench.cluster.client()).build();
        let (maps, secrets) = (
            factory.for_object::<ConfigMap>(),
            factory.for_object::<Secret>(),
        );
        let held = Arc::clone(&witness);
        let handle = maps.clone();
        maps.watch_related(
            &secrets,
            Relation::map(move |_: &Metadata| {
                let _ = (&held, &handle);
                Vec::new()
            }),
        );
        secrets.watch_related(&maps, Relation::controllers());
        maps.watch_related(&maps, Relation::owners());
        let held = Arc::clone(&witness);
        maps.register_handler("log", move |_: Context<ConfigMap>| {
            let _ = &held;
            async { Ok(Outcome::done()) }
        })
        .unwrap();
        factory.start(1).await.unwrap();
    }
    time::sleep(10 * SECOND).await;
    assert_eq!(Arc::strong_count(&witness), 1);
}

#[tokio::test(start_paused = true)]
async fn a_start_does_not_wait_for_kinds_that_linger_or_are_followed() {
    let bench = Bench::new().await;
    let widgets = bench.factory.for_kind(Gvk::new("demo.dev", "v1", "Widget"));
    let handler = |_: Context<kube::api::DynamicObject>| async { Ok(Outcome::done()) };
    let registered = widgets.register_handler("log", handler).unwrap();
    registered.deregister().await;
    bench.start().await;
    bench.factory.stop().await.unwrap();
    let crds = Gvk::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    bench
        .factory
        .for_all_kinds(|_| false)
        .register_handler("none", handler)
        .unwrap();
    bench.start().await;
    settle().await;
    bench.factory.stop().await.unwrap();
    // A start waits for a handler of CRDs, although they are followed too.
    bench
        .factory
        .for_kind(crds)
        .register_handler("log", handler)
        .unwrap();
    let refuse = Refusal::new(http::StatusCode::FORBIDDEN);
    let rule = Rule::new(Action::Refuse(refuse)).resource("customresourcedefinitions");
    bench.cluster.faults().add(rule);
    let error = bench.factory.start(1).await.unwrap_err();
    assert!(
        error.to_string().contains("CustomResourceDefinition"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_error_from_deep_inside_can_say_that_it_is_to_be_ignored() {
    #[derive(Debug, thiserror::Error)]
    #[error("cannot go on")]
    struct Outer(#[source] Ignore);
    let bench = Bench::new().await;
    let calls = bench.on("skips", |_| async {
        Err(Outer(Ignore::because("not ours")).into())
    });
    bench.start().await;
    bench.create("a").await;
    time::sleep(600 * SECOND).await;
    let status = &bench.status().handlers[0];
    assert_eq!((calls.len(), status.failures), (1, 0));
}

/// An error that cannot be printed.
#[derive(Debug, thiserror::Error)]
#[error("{}", words())]
struct Speechless;

fn words() -> String {
    panic!("no words")
}

#[tokio::test(start_paused = true)]
async fn an_error_or_a_limiter_that_panics_leaves_the_workers_alone() {
    let bench = Bench::new().await;
    let once = HandlerOptions::default().max_retries(0);
    bench.on_with("speechless", once, |_| async { Err(Speechless.into()) });
    let broken = HandlerOptions::default().rate_limiter(|| |_: u32| panic!("no idea"));
    let limited = bench.on_with("limited", broken, |_| async { Err("no".into()) });
    let others = bench.record("others");
    bench.factory.start(1).await.unwrap();
    for name in ["a", "b", "c"] {
        bench.create(name).await;
    }
    settle().await;
    assert_eq!(
        (limited.len(), others.len()),
        (3, 3),
        "at once, by one worker"
    );
    time::sleep(31 * SECOND).await;
    assert_eq!(limited.len(), 6, "it is tried again after half a minute");
    let metadata = bench.config_maps.view::<Metadata>();
    assert!(metadata.is_same(&bench.config_maps));
}

/// Returns a predicate that reports the change of a Secret, and holds it until `called` has a message.
fn held_until(called: mpsc::Receiver<()>, held: &Arc<Notify>) -> Predicate {
    let (called, held) = (Mutex::new(called), Arc::clone(held));
    Predicate::new(move |change| {
        if change.key().name() == "s" {
            held.notify_one();
            let _ = called.lock().recv_timeout(30 * SECOND);
        }
        true
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_owner_is_enqueued_in_its_scope_although_that_is_found_out_during_the_change() {
    let bench = Bench::new().await;
    let others = bench.factory.for_object::<Secret>();
    let nothing = |_: Context<Secret>| async { Ok(Outcome::done()) };
    others.register_handler("log", nothing).unwrap();
    let class = serde_json::json!({"metadata": {"name": "n"}, "spec": {"controller": "a.dev/b"}});
    let class = serde_json::from_value(class).unwrap();
    let api: kube::Api<IngressClass> = kube::Api::all(bench.cluster.client());
    let created = api.create(&kube::api::PostParams::default(), &class).await;
    let uid = created.unwrap().metadata.uid;
    bench.start().await;
    let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE);
    let rule = Rule::new(Action::Refuse(refusal));
    let rule = rule.when(|request| request.path.starts_with("/apis"));
    bench.cluster.faults().add(rule);

    let (held, enqueued) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (call, called) = mpsc::channel();
    let keys: Arc<Mutex<Vec<ObjectKey>>> = Arc::default();
    // Without a type, so that discovery tells the scope.
    let gvk = Gvk::new("networking.k8s.io", "v1", "IngressClass");
    let classes = bench.factory.for_kind(gvk);
    let relation = Relation::owners().only(held_until(called, &held));
    classes.watch_related(&others, relation);
    let (log, notify) = (Arc::clone(&keys), Arc::clone(&enqueued));
    let handler = move |cx: Context<kube::api::DynamicObject>| {
        if cx.causes().to_string().contains("Secret") {
            log.lock().push(cx.key().clone());
            notify.notify_one();
        }
        // The first call, for the class itself. No handler is called before the scope is known.
        let _ = call.send(());
        async { Ok(Outcome::done()) }
    };
    classes.register_handler("log", handler).unwrap();
    let mut owner = owner("IngressClass", "networking.k8s.io/v1", "n", true);
    owner["uid"] = serde_json::json!(uid);
    let metadata = serde_json::json!({"name": "s", "ownerReferences": [owner]});
    create(&secrets(&bench), serde_json::json!({"metadata": metadata})).await;
    held.notified().await;
    bench.cluster.faults().clear();
    let waited = time::timeout(30 * SECOND, enqueued.notified()).await;
    assert!(waited.is_ok(), "the owner is enqueued");
    assert_eq!(keys.lock().as_slice(), [ObjectKey::cluster("n")]);
}
