//! How much starts at once.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::client::Body;
use lariat_cache::{
    GateDecision, Informer, InitialList, KindOptions, PendingWrite, Phase, RestMapper, Selection,
    SharedCacheFactory, WriteGate,
};
use lariat_cluster::Cluster;
use lariat_core::{Gvk, ObjectKey, describe};
use parking_lot::Mutex;
use serde_json::json;
use tokio::time;
use tower_service::Service;

use crate::bench::{MINUTE, any_body, cluster, config_maps, no_client};
use crate::script::{Answer, BodyEnd, Script, list, quiet};

fn namespaces(count: usize) -> Selection {
    Selection::all().in_namespaces((0..count).map(|number| format!("n{number}")))
}

fn start(script: &Script, options: KindOptions) -> (SharedCacheFactory, Informer) {
    let factory = SharedCacheFactory::builder(no_client())
        .default_options(options.initial_list(InitialList::List))
        .build();
    let informer = factory.for_source(config_maps(), Arc::new(script.clone()));
    factory.start();
    (factory, informer)
}

#[tokio::test(start_paused = true)]
async fn lists_of_many_namespaces_start_ten_at_a_time() {
    let script = Script::new(|_| Answer::Never);
    let options = KindOptions::default().selection(namespaces(100));
    let _started = start(&script, options);
    for lists in [10, 20, 30] {
        time::sleep(Duration::from_secs(9)).await;
        assert_eq!(script.lists(), lists);
        time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn lost_watches_of_a_kind_share_one_request_for_the_version() {
    let bookmark =
        "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"11\"}}}\n";
    let script = Script::new(move |ask| match (ask.watch, ask.number) {
        (false, _) => list(10, "", &[]),
        (true, 0..100) => Answer::Pieces(vec![bookmark.to_owned()], BodyEnd::Cut),
        (true, _) => quiet(),
    });
    let script = script.checked(|_| list(20, "", &[]));
    let options = KindOptions::default().selection(namespaces(100));
    let (_factory, informer) = start(&script, options);
    time::sleep(MINUTE).await;
    assert_eq!(informer.status().phase, Phase::Synced);
    assert_eq!((script.lists(), script.watches()), (100, 200));
    // The namespaces that lose their watch after the request need another one.
    let checks = script.checks().len();
    assert!((1..=10).contains(&checks), "{checks}");
}

#[tokio::test(start_paused = true)]
async fn failed_request_for_the_version_is_repeated_by_each_namespace() {
    let script = Script::new(|ask| match (ask.watch, ask.number) {
        (false, _) => list(10, "", &[]),
        (true, 0..20) => Answer::Pieces(Vec::new(), BodyEnd::Cut),
        (true, _) => quiet(),
    });
    let script = script.checked(|ask| match ask.number {
        0..5 => Answer::Nothing,
        _ => list(20, "", &[]),
    });
    let options = KindOptions::default().selection(namespaces(20));
    let _started = start(&script, options);
    time::sleep(MINUTE).await;
    assert_eq!((script.lists(), script.watches()), (20, 40));
}

async fn create(cluster: &Cluster, namespace: &str) {
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(), namespace);
    let object = json!({"metadata": {"name": namespace}});
    let object = serde_json::from_value(object).expect("it is one");
    let created = api.create(&PostParams::default(), &object).await;
    created.expect("created");
}

/// Starts a cache of ConfigMaps that leaves out forbidden namespaces.
fn started_without(client: Client, namespaces: &[&str]) -> (SharedCacheFactory, Informer) {
    let selection = Selection::all().in_namespaces(namespaces.iter().copied());
    let options = KindOptions::default().selection(selection);
    let factory = SharedCacheFactory::builder(client)
        .default_options(options.start_without_forbidden())
        .build();
    let informer = factory.for_kind(config_maps());
    factory.start();
    (factory, informer)
}

#[tokio::test(start_paused = true)]
async fn forbidden_namespace_is_left_out_until_it_is_readable() {
    let cluster = cluster().await;
    let all = ["default", "kube-public", "kube-system"];
    for namespace in all {
        create(&cluster, namespace).await;
    }
    let forbidden = Arc::new(Mutex::new(vec!["kube-public"]));
    let start = || started_without(forbidding(&cluster, &forbidden), &all);
    let (factory, informer) = start();
    let synced = factory.wait_for_sync(MINUTE).await;
    synced.expect("the others are readable");
    let keys = informer.store().keys();
    let mut names: Vec<&str> = keys.iter().map(|key| key.name()).collect();
    names.sort_unstable();
    assert_eq!(names, ["default", "kube-system"]);
    let status = informer.status();
    assert_eq!(status.forbidden_namespaces, ["kube-public"]);
    assert!(status.last_error.is_some(), "it is shown");
    // It becomes readable, and its list does not interrupt the others.
    forbidden.lock().clear();
    let mut phases = Vec::new();
    while informer.store().len() < 3 {
        phases.push(informer.status().phase);
        time::sleep(Duration::from_millis(100)).await;
    }
    phases.dedup();
    assert_eq!(phases, [Phase::Synced]);
    assert!(informer.status().forbidden_namespaces.is_empty());
    // All of them: there is nothing to start with.
    forbidden.lock().extend(all);
    let (factory, _informer) = start();
    let synced = factory.wait_for_sync(MINUTE).await;
    synced.expect_err("all are forbidden");
}

/// One was never readable, and another one loses its Role before content is needed.
#[tokio::test(start_paused = true)]
async fn content_upgrade_leaves_forbidden_namespaces_out() {
    for revoked in [None, Some("kube-system")] {
        let cluster = cluster().await;
        let all = ["default", "kube-public", "kube-system"];
        for namespace in all {
            create(&cluster, namespace).await;
        }
        let forbidden = Arc::new(Mutex::new(vec!["kube-public"]));
        let (factory, informer) = started_without(forbidding(&cluster, &forbidden), &all);
        let synced = factory.wait_for_sync(MINUTE).await;
        synced.expect("the others are readable");
        forbidden.lock().extend(revoked);
        let typed = informer.cache::<ConfigMap>();
        assert!(time::timeout(MINUTE, informer.content_synced()).await == Ok(true));
        let left_out: Vec<&str> = [Some("kube-public"), revoked]
            .into_iter()
            .flatten()
            .collect();
        assert_eq!(informer.status().forbidden_namespaces, left_out);
        let key = ObjectKey::namespaced("default", "default");
        assert!(typed.get(&key).expect("it has content").is_some());
        // Once they are readable, they are read as all others are.
        forbidden.lock().clear();
        time::sleep(10 * MINUTE).await;
        let readable = typed.list().filter(Result::is_ok).count();
        assert_eq!(
            (readable, informer.status().forbidden_namespaces.len()),
            (3, 0)
        );
    }
}

/// Writes down how many objects each write affects.
struct Counts(Arc<Mutex<Vec<Option<usize>>>>);

impl WriteGate for Counts {
    fn admit(&self, write: &PendingWrite<'_>) -> GateDecision {
        self.0.lock().push(write.objects());
        GateDecision::Refuse("only asked".into())
    }
}

#[tokio::test(start_paused = true)]
async fn collection_of_a_forbidden_namespace_has_an_unknown_size() {
    let cluster = cluster().await;
    let all = ["default", "kube-public"];
    for namespace in all {
        create(&cluster, namespace).await;
    }
    let forbidden = Arc::new(Mutex::new(vec!["kube-public"]));
    let (factory, _informer) = started_without(forbidding(&cluster, &forbidden), &all);
    let synced = factory.wait_for_sync(MINUTE).await;
    synced.expect("one is readable");
    let counts = Arc::default();
    let gate = Counts(Arc::clone(&counts));
    assert!(factory.clients().set_gate(Arc::new(gate)));
    for namespace in all {
        let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), namespace);
        let (delete, list) = (DeleteParams::default(), ListParams::default());
        let deleted = api.delete_collection(&delete, &list).await.map(drop);
        deleted.expect_err("it is refused");
    }
    assert_eq!(*counts.lock(), [Some(1), None]);
}

#[tokio::test(start_paused = true)]
async fn collection_has_an_unknown_size_while_the_cache_is_stale() {
    let cluster = cluster().await;
    create(&cluster, "default").await;
    let factory = SharedCacheFactory::new(cluster.client());
    let informer = factory.for_kind(config_maps());
    factory.start();
    factory.wait_for_sync(MINUTE).await.expect("it is readable");
    let counts = Arc::default();
    assert!(
        factory
            .clients()
            .set_gate(Arc::new(Counts(Arc::clone(&counts))))
    );
    let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), "default");
    let delete = async || {
        let (delete, list) = (DeleteParams::default(), ListParams::default());
        let deleted = api.delete_collection(&delete, &list).await.map(drop);
        deleted.expect_err("it is refused");
    };
    delete().await;
    cluster.faults().partition("");
    time::sleep(MINUTE).await;
    assert_eq!(informer.status().phase, Phase::Synced);
    assert!(informer.status().is_stale());
    delete().await;
    assert_eq!(*counts.lock(), [Some(1), None]);
}

/// A client of a cluster that forbids ConfigMaps of some namespaces.
fn forbidding(cluster: &Cluster, namespaces: &Arc<Mutex<Vec<&'static str>>>) -> Client {
    let (service, namespaces) = (cluster.service(), Arc::clone(namespaces));
    let service = tower::service_fn(move |request: Request<Body>| {
        let mut service = service.clone();
        let path = request.uri().path().to_owned();
        let is_of = |name: &&str| path.contains(&format!("/namespaces/{name}/configmaps"));
        let is_forbidden = namespaces.lock().iter().any(is_of);
        async move {
            if !is_forbidden {
                let answer = service.call(request).await?;
                return Ok::<_, tower::BoxError>(answer.map(any_body));
            }
            let status = json!({"kind": "Status", "status": "Failure", "code": 403,
                "reason": "Forbidden", "message": "configmaps is forbidden"});
            let mut answer = Response::new(any_body(Body::from(status.to_string().into_bytes())));
            *answer.status_mut() = StatusCode::FORBIDDEN;
            Ok(answer)
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn forbidden_namespace_delays_the_start_by_default() {
    let cluster = cluster().await;
    let forbidden = Arc::new(Mutex::new(vec!["kube-public"]));
    let selection = Selection::all().in_namespaces(["default", "kube-public"]);
    let factory = SharedCacheFactory::builder(forbidding(&cluster, &forbidden))
        .default_options(KindOptions::default().selection(selection))
        .build();
    let informer = factory.for_kind(config_maps());
    factory.start();
    let synced = factory.wait_for_sync(MINUTE).await;
    synced.expect_err("one is forbidden");
    assert!(informer.status().forbidden_namespaces.is_empty());
}

/// Discovery hangs.
#[tokio::test(start_paused = true)]
async fn lookups_share_the_failure_that_they_waited_for() {
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let asked = Arc::clone(&count);
    let service = tower::service_fn(move |_: Request<Body>| {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        std::future::pending::<
            Result<Response<http_body_util::Empty<bytes::Bytes>>, std::convert::Infallible>,
        >()
    });
    let mapper = RestMapper::new(Client::new(service, "default"));
    let kinds = (0..50).map(|number| Gvk::new("demo.dev", "v1", &format!("Kind{number}")));
    let lookups = kinds.map(|kind| {
        let mapper = mapper.clone();
        async move { mapper.kind(&kind).await }
    });
    let answers = futures::future::join_all(lookups).await;
    for answer in answers {
        let error = describe(&answer.expect_err("nothing is answered"));
        assert!(
            error.contains("no answer from the API server within 30s"),
            "{error}"
        );
    }
    assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 1);
    // A later lookup asks again, and no hint is looked for.
    let later = mapper.kind(&Gvk::new("demo.dev", "v1", "Kind")).await;
    assert!(later.is_err());
    assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 2);
}

/// No watch would report its end.
#[tokio::test(start_paused = true)]
async fn own_write_into_a_forbidden_namespace_is_not_cached() {
    let cluster = cluster().await;
    let forbidden = Arc::new(Mutex::new(vec!["kube-public"]));
    let selection = Selection::all().in_namespaces(["default", "kube-public"]);
    let options = KindOptions::default().selection(selection);
    let factory = SharedCacheFactory::builder(forbidding(&cluster, &forbidden))
        .default_options(options.start_without_forbidden())
        .build();
    let informer = factory.for_kind(config_maps());
    factory.start();
    let synced = factory.wait_for_sync(MINUTE).await;
    synced.expect("one is readable");
    let own: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "own"}})).unwrap();
    for (namespace, is_cached) in [("default", true), ("kube-public", false)] {
        let api: Api<ConfigMap> = Api::namespaced(factory.clients().client(), namespace);
        let known = std::mem::take(&mut *forbidden.lock());
        let created = api.create(&PostParams::default(), &own).await;
        created.expect("the program may create");
        *forbidden.lock() = known;
        let key = ObjectKey::namespaced(namespace, "own");
        assert_eq!(
            informer.store().get(&key).is_some(),
            is_cached,
            "{namespace}"
        );
    }
}
