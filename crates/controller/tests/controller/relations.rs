//! Keys that are enqueued because objects of another kind changed.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use lariat_cache::{Metadata, Phase};
use lariat_cluster::faults::{Action as Fault, Refusal, Rule, StatusCode};
use lariat_controller::{Context, Outcome, Predicate, Relation};
use lariat_core::{Gvk, ObjectKey};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time;

use crate::bench::{Bench, Calls, SECOND, key, settle};

pub(crate) fn secrets(bench: &Bench) -> Api<Secret> {
    Api::namespaced(bench.cluster.client(), "default")
}

pub(crate) async fn create(api: &Api<Secret>, object: Value) {
    let object: Secret = serde_json::from_value(object).expect("it works");
    api.create(&PostParams::default(), &object)
        .await
        .expect("it works");
    settle().await;
}

pub(crate) async fn patch(api: &Api<Secret>, name: &str, patch: Value) {
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch))
        .await
        .expect("it works");
    settle().await;
}

pub(crate) fn take(calls: &Calls) -> Vec<String> {
    let mut names = calls.names();
    names.sort();
    calls.clear();
    names
}

#[tokio::test(start_paused = true)]
async fn a_label_that_moves_wakes_the_old_key_and_the_new_one_and_so_does_a_deletion() {
    let bench = Bench::new().await;
    let calls = bench.record("log");
    let others = bench.factory.for_object::<Secret>();
    bench
        .config_maps
        .watch_related(&others, Relation::label("of"));
    bench.start().await;
    let api = secrets(&bench);
    create(
        &api,
        json!({"metadata": {"name": "s", "labels": {"of": "a"}}}),
    )
    .await;
    let causes = calls.last().causes;
    assert!(causes.starts_with("Secret default/s added at "), "{causes}");
    assert_eq!(take(&calls), ["a"]);
    patch(&api, "s", json!({"metadata": {"labels": {"of": "b"}}})).await;
    assert_eq!(take(&calls), ["a", "b"]);
    patch(&api, "s", json!({"data": {"x": "eA=="}})).await;
    assert_eq!(take(&calls), ["b"]);
    api.delete("s", &DeleteParams::default()).await.unwrap();
    settle().await;
    assert_eq!(take(&calls), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn an_annotation_names_a_key_in_any_namespace() {
    let bench = Bench::new().await;
    let keys: Arc<Mutex<Vec<ObjectKey>>> = Arc::default();
    let log = Arc::clone(&keys);
    let handler = move |cx: Context<ConfigMap>| {
        log.lock().push(cx.key().clone());
        async { Ok(Outcome::done()) }
    };
    bench.config_maps.register_handler("log", handler).unwrap();
    let others = bench.factory.for_object::<Secret>();
    let relation = Relation::annotation("example.com/owner");
    bench.config_maps.watch_related(&others, relation);
    bench.start().await;
    let api = secrets(&bench);
    let with = |name: &str, owner: &str| json!({"metadata": {"name": name, "annotations": {"example.com/owner": owner}}});
    for (name, owner) in [("s", "shop/a"), ("t", "a/b/c"), ("u", ""), ("v", "cluster")] {
        create(&api, with(name, owner)).await;
    }
    create(&api, json!({"metadata": {"name": "w"}})).await;
    let expected = [key_in("shop", "a"), ObjectKey::cluster("cluster")];
    assert_eq!(std::mem::take(&mut *keys.lock()), expected);
    patch(&api, "s", with("s", "far/b")).await;
    let expected = [key_in("far", "b"), key_in("shop", "a")];
    assert_eq!(std::mem::take(&mut *keys.lock()), expected, "old and new");
}

fn key_in(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::namespaced(namespace, name)
}

pub(crate) fn owner(kind: &str, api_version: &str, name: &str, controller: bool) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": "u", "controller": controller})
}

#[tokio::test(start_paused = true)]
async fn owners_and_controllers_are_found_by_group_and_kind_in_their_scope() {
    let bench = Bench::new().await;
    let calls = bench.record("log");
    let nodes: Arc<Mutex<Vec<ObjectKey>>> = Arc::default();
    let log = Arc::clone(&nodes);
    let node_controller = bench.factory.for_object::<Node>();
    node_controller
        .register_handler("log", move |cx: Context<Node>| {
            log.lock().push(cx.key().clone());
            async { Ok(Outcome::done()) }
        })
        .unwrap();
    let others = bench.factory.for_object::<Secret>();
    bench
        .config_maps
        .watch_related(&others, Relation::controllers());
    node_controller.watch_related(&others, Relation::owners());
    bench.start().await;
    let owners = json!([
        owner("ConfigMap", "v1", "a", true),
        owner("ConfigMap", "v1", "b", false),
        owner("ConfigMap", "other.dev/v1", "c", false),
        owner("Node", "v1beta7", "n", false),
    ]);
    let api = secrets(&bench);
    create(
        &api,
        json!({"metadata": {"name": "s", "ownerReferences": owners}}),
    )
    .await;
    assert_eq!(take(&calls), ["a"]);
    assert_eq!(
        *nodes.lock(),
        [ObjectKey::cluster("n")],
        "of whatever version, and without namespace"
    );
}

#[tokio::test(start_paused = true)]
async fn a_predicate_chooses_the_changes_of_related_objects() {
    let bench = Bench::new().await;
    let calls = bench.record("log");
    let others = bench.factory.for_object::<Secret>();
    let labels = Predicate::labels_changed().or(Predicate::annotations_changed());
    let not_ignored = Predicate::labels("ignored".parse().unwrap()).not();
    let relation = Relation::label("of").only(labels).only(not_ignored);
    bench.config_maps.watch_related(&others, relation);
    let api = secrets(&bench);
    let secret = json!({"metadata": {"name": "s", "labels": {"of": "a"}}});
    create(&api, secret).await;
    bench.start().await;
    settle().await;
    assert_eq!(take(&calls), ["a"], "the initial list passes");
    patch(&api, "s", json!({"data": {"x": "eA=="}})).await;
    assert_eq!(take(&calls), Vec::<String>::new());
    let noted = json!({"metadata": {"annotations": {"note": "x"}}});
    patch(&api, "s", noted).await;
    assert_eq!(take(&calls), ["a"]);
    patch(&api, "s", json!({"metadata": {"labels": {"of": "b"}}})).await;
    assert_eq!(take(&calls), ["a", "b"], "the old state is mapped too");
    let ignored = json!({"metadata": {"labels": {"ignored": "yes"}}});
    patch(&api, "s", ignored).await;
    api.delete("s", &DeleteParams::default()).await.unwrap();
    settle().await;
    assert_eq!(take(&calls), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_map_reads_the_object_as_it_likes_for_one_handler_only() {
    let bench = Bench::new().await;
    let one = bench.record("one");
    let two = bench.record("two");
    let others = bench.factory.for_object::<Secret>();
    let names = Relation::map(|secret: &Secret| {
        let names = secret
            .string_data
            .iter()
            .flatten()
            .map(|(name, _)| key(name));
        let data = secret.data.iter().flatten().map(|(name, _)| key(name));
        names.chain(data).collect()
    });
    bench.config_maps.watch_related(&others, names.to("two"));
    bench.start().await;
    create(
        &secrets(&bench),
        json!({"metadata": {"name": "s"}, "data": {"x": "", "y": ""}}),
    )
    .await;
    assert_eq!(
        (take(&one), take(&two)),
        (vec![], vec!["x".into(), "y".into()])
    );
}

#[tokio::test(start_paused = true)]
async fn labels_may_name_another_namespace() {
    let bench = Bench::new().await;
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&seen);
    bench
        .config_maps
        .register_handler("log", move |cx: Context<ConfigMap>| {
            log.lock().push(cx.key().to_string());
            async { Ok(Outcome::done()) }
        })
        .unwrap();
    let others = bench.factory.for_object::<Secret>();
    let far = Relation::labels("owner-namespace", "owner-name");
    bench.config_maps.watch_related(&others, far);
    bench.start().await;
    let labels = json!({"owner-namespace": "far", "owner-name": "a"});
    create(
        &secrets(&bench),
        json!({"metadata": {"name": "s", "labels": labels}}),
    )
    .await;
    assert_eq!(*seen.lock(), ["far/a"]);
}

#[tokio::test(start_paused = true)]
async fn a_relation_lives_as_long_as_its_kind_is_in_use_or_until_it_is_ended() {
    let bench = Bench::with(|builder| builder.caches(|caches| caches.idle_grace(SECOND))).await;
    let others = bench.factory.for_object::<Secret>();
    let related = bench
        .config_maps
        .watch_related(&others, Relation::label("of"));
    bench.start().await;
    time::sleep(5 * SECOND).await;
    assert!(
        bench.cluster.journal().requests().is_empty(),
        "nothing is opened yet"
    );
    let (calls, handler) = crate::bench::recorder(|_| async { Ok(Outcome::done()) });
    let registration = bench.config_maps.register_handler("log", handler).unwrap();
    let api = secrets(&bench);
    create(
        &api,
        json!({"metadata": {"name": "s", "labels": {"of": "a"}}}),
    )
    .await;
    assert_eq!(take(&calls), ["a"]);
    registration.deregister().await;
    time::sleep(10 * SECOND).await;
    assert!(
        bench.factory.caches().status().is_empty(),
        "both kinds have ended"
    );
    let calls = bench.record("log");
    time::sleep(SECOND).await;
    assert_eq!(take(&calls), ["a"], "the relation is back");
    related.end();
    patch(&api, "s", json!({"data": {"x": ""}})).await;
    assert_eq!(take(&calls), Vec::<String>::new());
    time::sleep(10 * SECOND).await;
    let kinds = bench.factory.caches().status();
    assert_eq!(kinds.len(), 1, "the other kind is not used any more");
}

#[tokio::test(start_paused = true)]
async fn a_map_that_needs_content_gets_it_although_only_metadata_was_watched() {
    let bench = Bench::new().await;
    let others = bench.factory.for_object::<Secret>();
    others
        .view::<Metadata>()
        .register_handler("metadata", |_: Context<Metadata>| async {
            Ok(Outcome::done())
        })
        .unwrap();
    create(
        &secrets(&bench),
        json!({"metadata": {"name": "s"}, "data": {"x": ""}}),
    )
    .await;
    bench.start().await;
    let calls = bench.record("log");
    settle().await;
    let names = Relation::map(|secret: &Secret| {
        secret
            .data
            .iter()
            .flatten()
            .map(|(name, _)| key(name))
            .collect()
    });
    bench.config_maps.watch_related(&others, names);
    time::sleep(5 * SECOND).await;
    assert_eq!(take(&calls), ["x"]);
}

#[tokio::test(start_paused = true)]
async fn relation_map_that_panics_is_logged_and_stops_no_other() {
    let logs = lariat_testing::Logs::begin();
    let bench = Bench::new().await;
    create(
        &secrets(&bench),
        json!({"metadata": {"name": "s", "labels": {"of": "a"}}}),
    )
    .await;
    let calls = bench.record("log");
    let others = bench.factory.for_object::<Secret>();
    let panics = Relation::map(|_: &Metadata| panic!("oh no"));
    bench.config_maps.watch_related(&others, panics);
    bench
        .config_maps
        .watch_related(&others, Relation::label("of"));
    bench.start().await;
    time::sleep(5 * SECOND).await;
    assert_eq!(take(&calls), ["a"]);
    let text = logs.text();
    assert!(text.contains("relation map panicked"), "{text}");
}

/// Starts with a ConfigMap, a Secret of it and a handler, and then sets a fault for all requests of Secrets.
pub(crate) async fn running_with(fault: Fault) -> (Bench, Calls) {
    let bench = Bench::new().await;
    create(
        &secrets(&bench),
        json!({"metadata": {"name": "s", "labels": {"of": "a"}}}),
    )
    .await;
    bench.create("a").await;
    let first = bench.record("first");
    bench.start().await;
    settle().await;
    let rule = Rule::new(fault).resource("secrets");
    bench.cluster.faults().add(rule);
    (bench, first)
}

#[tokio::test(start_paused = true)]
async fn owners_are_enqueued_in_the_scope_of_their_kind_although_it_is_found_out_late() {
    let bench = Bench::new().await;
    let nodes = bench.factory.for_kind(Gvk::new("", "v1", "Node"));
    let keys: Arc<Mutex<Vec<ObjectKey>>> = Arc::default();
    let log = Arc::clone(&keys);
    let handler = move |cx: Context<kube::api::DynamicObject>| {
        log.lock().push(cx.key().clone());
        async { Ok(Outcome::done()) }
    };
    nodes.register_handler("log", handler).unwrap();
    let others = bench.factory.for_object::<Secret>();
    nodes.watch_related(&others, Relation::owners());
    let discovery = Rule::new(Fault::Delay(5 * SECOND))
        .when(|request| request.resource.is_empty() && request.path.starts_with("/api"));
    bench.cluster.faults().add(discovery);
    let api = secrets(&bench);
    let meanwhile = async {
        time::sleep(SECOND).await;
        // There are no such nodes, so the garbage collector deletes what they own at once: the list of what there is
        // when it is known what nodes are does not have it.
        for number in (10..30).rev() {
            let name = format!("n{number}");
            let owners = json!([owner("Node", "v1", &name, true)]);
            let metadata = json!({"name": name, "ownerReferences": owners});
            create(&api, json!({"metadata": metadata})).await;
        }
        time::sleep(SECOND).await;
        assert_eq!(others.cache().store().len(), 0);
    };
    let (started, ()) = tokio::join!(bench.factory.start(1), meanwhile);
    started.unwrap();
    time::sleep(SECOND).await;
    let nodes = (10..30).map(|number| ObjectKey::cluster(&format!("n{number}")));
    assert_eq!(*keys.lock(), nodes.collect::<Vec<_>>(), "sorted");
}

#[tokio::test(start_paused = true)]
async fn owners_keep_the_scope_of_their_kind_while_it_is_not_served() {
    let bench = Bench::new().await;
    let nodes = bench.factory.for_kind(Gvk::new("", "v1", "Node"));
    let keys: Arc<Mutex<Vec<ObjectKey>>> = Arc::default();
    let log = Arc::clone(&keys);
    let handler = move |cx: Context<kube::api::DynamicObject>| {
        log.lock().push(cx.key().clone());
        async { Ok(Outcome::done()) }
    };
    nodes.register_handler("log", handler).unwrap();
    let others = bench.factory.for_object::<Secret>();
    nodes.watch_related(&others, Relation::owners());
    bench.factory.start(1).await.expect("started");
    let missing = || Fault::Refuse(Refusal::new(StatusCode::NOT_FOUND));
    let of_nodes = Rule::new(missing()).resource("nodes");
    bench.cluster.faults().add(of_nodes);
    let discovery = Rule::new(missing()).when(|request| request.path == "/api/v1");
    bench.cluster.faults().add(discovery);
    bench.cluster.cut_watches();
    while !nodes
        .status()
        .is_some_and(|status| status.cache.phase == Phase::Missing)
    {
        time::sleep(SECOND).await;
    }
    let owners = json!([owner("Node", "v1", "n1", true)]);
    let metadata = json!({"name": "s", "ownerReferences": owners});
    create(&secrets(&bench), json!({"metadata": metadata})).await;
    time::sleep(SECOND).await;
    bench.cluster.faults().clear();
    time::sleep(60 * SECOND).await;
    let keys = keys.lock();
    assert!(!keys.is_empty());
    assert!(
        keys.iter().all(|key| *key == ObjectKey::cluster("n1")),
        "{keys:?}"
    );
}
