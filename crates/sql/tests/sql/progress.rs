//! How far a kind is: revisions, lag, what waits for other kinds, and objects without content.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, PostParams};
use lariat_cache::{CacheFactoryBuilder, ContentFilter, KindOptions, SharedCacheFactory, Storage};
use lariat_cluster::Cluster;
use lariat_cluster::faults::{Action, Refusal, Rule, StatusCode};
use lariat_core::{Gvk, clock};
use lariat_sql::{Query, Revision, Schema, SqlCache, SqlError, field};
use serde_json::json;
use tokio::sync::watch;
use tokio::time;

use crate::bench::{Bench, Folder, Process, hide, maps_kind, names, schema};

fn namespaces() -> Schema {
    Schema::new(Gvk::new("", "v1", "Namespace"), []).expect("a schema")
}

#[tokio::test(start_paused = true)]
async fn namespaces_that_are_named_by_a_label_are_waited_for() {
    let bench = Bench::new().await;
    let faults = bench.cluster.faults();
    let refused = Action::Refuse(Refusal::new(StatusCode::SERVICE_UNAVAILABLE));
    let rule = faults.add(Rule::new(refused).resource("namespaces").verb("list"));
    let watched = Action::Refuse(Refusal::new(StatusCode::SERVICE_UNAVAILABLE));
    let other = faults.add(Rule::new(watched).resource("namespaces").verb("watch"));
    let process = bench
        .start_with(None, |builder| builder.kind(namespaces()))
        .await;
    let version = bench.create("one", json!({})).await;
    process.at(Query::new(), &version).await;
    let label = "kubernetes.io/metadata.name";
    let of_label = || Query::new().projects_or_namespaces(["default"], label, true);
    let error = process
        .maps
        .query(&of_label())
        .await
        .expect_err("too early");
    assert!(
        matches!(&error, SqlError::NotSynced { kind, .. } if kind.kind() == "Namespace"),
        "{error}"
    );
    faults.remove(rule);
    faults.remove(other);
    // It is read again after a pause.
    time::sleep(Duration::from_secs(120)).await;
    let answer = process.maps.query(&of_label()).await.expect("answered");
    assert_eq!(names(&answer), [""; 0], "all are in the namespace");
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_never_older_than_what_it_was_asked_for() {
    let bench = Bench::new().await;
    let process = bench
        .start_with(None, |builder| {
            builder.wait_timeout(Duration::from_secs(3600))
        })
        .await;
    let mut version = bench.create("one", json!({})).await;
    for round in 0..5 {
        process.at(Query::new(), &version).await;
        // Of another kind: only a bookmark says that nothing of this one is missing up to there.
        let namespace = json!({"metadata": {"name": format!("other-{round}")}});
        let namespace = serde_json::from_value(namespace).expect("a namespace");
        let api: Api<Namespace> = Api::all(bench.cluster.client());
        let created = api.create(&PostParams::default(), &namespace).await;
        drop(created.expect("created"));
        version = bench.cluster.revision().to_string();
        let wanted: Revision = version.parse().expect("a revision");
        let answer = process.maps.query(&Query::new().at_least(wanted)).await;
        let answer = answer.expect("answered");
        assert!(
            answer.revision.version() >= wanted.version(),
            "{}",
            answer.revision
        );
        assert_eq!(answer.revision, process.maps.revision());
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_tried_again_counts_once_and_is_late_meanwhile() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    let process = bench.start(Some(&file)).await;
    let version = bench.create("one", json!({})).await;
    process.at(Query::new(), &version).await;
    hide(&file, true);
    let version = bench.create("odd", json!({"size": "large"})).await;
    while process.maps.status().last_error.is_none() {
        time::sleep(Duration::from_millis(10)).await;
    }
    time::sleep(Duration::from_secs(20)).await;
    let status = process.maps.status();
    assert_eq!(status.unindexable.get("data.size"), Some(&1));
    assert_eq!(status.unwritten, 1);
    assert!(status.lag >= Duration::from_secs(20), "{:?}", status.lag);
    hide(&file, false);
    time::sleep(Duration::from_secs(60)).await;
    let answer = process.at(Query::new(), &version).await;
    assert_eq!(names(&answer), ["odd", "one"]);
    let status = process.maps.status();
    assert_eq!(status.unindexable.get("data.size"), Some(&1));
    assert_eq!((status.unwritten, status.lag), (0, Duration::ZERO));
}

/// Starts a cache of the ConfigMaps of a factory.
async fn start(factory: SharedCacheFactory) -> Process {
    let sql = SqlCache::builder(&factory).kind(schema()).start().await;
    let sql = sql.expect("started");
    factory.start();
    let maps = sql.kind(&maps_kind()).expect("the kind is there");
    Process { factory, sql, maps }
}

fn builder(cluster: &Cluster) -> CacheFactoryBuilder {
    SharedCacheFactory::builder(cluster.client())
}

fn reds() -> Query {
    Query::new().filter(field("data.color").equals("red"))
}

#[tokio::test]
async fn objects_without_content_are_counted() {
    let bench = Bench::new().await;
    let options = KindOptions::default().storage(Storage::OnDemand);
    let factory = builder(&bench.cluster).kind_options(maps_kind(), options);
    let process = start(factory.build()).await;
    let version = bench.create("one", json!({"color": "red"})).await;
    assert_eq!(names(&process.at(reds(), &version).await), [""; 0]);
    assert_eq!(names(&process.at(Query::new(), &version).await), ["one"]);
    let all = process.maps.query(&Query::new()).await.expect("answered");
    assert_eq!(process.maps.status().without_content, all.objects.len());
    bench.delete("one").await;
    let version = bench.create("two", json!({"color": "red"})).await;
    process.at(Query::new(), &version).await;
    assert_eq!(process.maps.status().without_content, all.objects.len());
}

#[tokio::test]
async fn what_was_cached_as_metadata_before_is_indexed_with_its_content() {
    let bench = Bench::new().await;
    let version = bench.create("one", json!({"color": "red"})).await;
    let factory = builder(&bench.cluster).build();
    let informer = factory.for_kind(maps_kind());
    factory.start();
    assert!(informer.synced().await);
    let key = "default/one".parse().expect("a key");
    let cached = informer.store().get(&key).expect("it is there");
    assert!(!cached.has_content());
    let process = start(factory).await;
    assert_eq!(names(&process.at(reds(), &version).await), ["one"]);
    assert_eq!(process.maps.status().without_content, 0);
}

#[tokio::test(start_paused = true)]
async fn an_object_is_indexed_and_watched_when_a_filter_keeps_its_content() {
    let bench = Bench::new().await;
    let version = bench.create("one", json!({"color": "red"})).await;
    let (sender, changed) = watch::channel(0);
    let is_kept = changed.clone();
    let filter = ContentFilter::new(changed, move |_, _| *is_kept.borrow() > 0);
    let process = start(builder(&bench.cluster).content_filter(filter).build()).await;
    assert_eq!(names(&process.at(reds(), &version).await), [""; 0]);
    assert!(process.maps.status().without_content > 0);
    let mut watched = process.maps.watch(&reds(), None).expect("it begins");
    sender.send(1).expect("it is listened to");
    let event = watched.next().await.expect("it goes on").expect("an event");
    assert_eq!(event.watched().object.key().name(), "one");
    assert_eq!(names(&process.at(reds(), &version).await), ["one"]);
    assert_eq!(process.maps.status().without_content, 0);
}

// A wall clock that is set back confuses ages and orders. All times are taken from tokio's clock, which only goes
// forward; what is new is known by resource versions, and no wall clock is read.
#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_changes_nothing() {
    let now = Rc::new(Cell::new(
        SystemTime::UNIX_EPOCH + Duration::from_secs(2_000_000_000),
    ));
    let shown = Rc::clone(&now);
    let _simulated = clock::simulate(move || shown.get());
    let bench = Bench::new().await;
    let process = bench.start(None).await;
    let version = bench.create("one", json!({"color": "red"})).await;
    let answer = process.at(reds(), &version).await;
    let mut watch = process
        .maps
        .watch(&reds(), Some(answer.revision))
        .expect("it begins");
    for round in 0..5_u64 {
        now.set(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 / (round + 1)));
        let name = format!("n{round}");
        let version = bench.create(&name, json!({"color": "red"})).await;
        let event = watch.next().await.expect("it goes on").expect("an event");
        assert_eq!(event.watched().object.key().name(), name);
        let found = process.at(reds(), &version).await;
        assert_eq!(names(&found).len() as u64, round + 2);
        let status = process.maps.status();
        assert_eq!((status.unwritten, status.lag), (0, Duration::ZERO));
    }
    let later = Query::new().at_least("999999".parse().expect("a version"));
    let asked = time::Instant::now();
    assert!(process.maps.query(&later).await.is_err());
    assert!(
        asked.elapsed() >= Duration::from_secs(10),
        "the wait_timeout is as long as ever"
    );
}
