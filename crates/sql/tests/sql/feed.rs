//! What is written of the informer's changes, and when.

use lariat_cache::SharedCacheFactory;
use lariat_sql::{Field, FieldType, Query, QueryError, Schema, SqlCache, SqlError, field};
use serde_json::json;

use crate::bench::{Bench, Folder, maps_kind, names};

#[tokio::test]
async fn queries_see_what_was_written_up_to_the_version_they_ask_for() {
    let bench = Bench::new().await;
    bench
        .create("one", json!({"size": "10", "color": "red"}))
        .await;
    let process = bench.start(None).await;
    let version = bench
        .create("two", json!({"size": "9", "color": "blue"}))
        .await;
    let by_size = || Query::new().sort(field("data.size"));
    let answer = process.at(by_size(), &version).await;
    assert_eq!(names(&answer), ["two", "one"]);
    let version = bench.patch("two", json!({"data": {"size": "11"}})).await;
    let answer = process.at(by_size(), &version).await;
    assert_eq!(names(&answer), ["one", "two"]);
    bench.delete("one").await;
    let version = bench.create("three", json!({})).await;
    let answer = process.at(by_size(), &version).await;
    assert_eq!(names(&answer), ["two", "three"]);
}

#[tokio::test]
async fn a_cache_is_not_filled_with_metadata_alone() {
    let bench = Bench::new().await;
    let version = bench.create("one", json!({"size": "10"})).await;
    // An informer has read metadata already.
    let factory = SharedCacheFactory::new(bench.cluster.client());
    let informer = factory.for_kind(maps_kind());
    factory.start();
    assert!(informer.synced().await);
    // From the moment the cache is there, before any of its tasks has run, content is missing.
    let size = Field::path("data.size", FieldType::Integer).expect("a path");
    let schema = Schema::new(maps_kind(), [size]).expect("a schema");
    let sql = SqlCache::builder(&factory).kind(schema).start().await;
    let sql = sql.expect("started");
    assert!(informer.is_upgrading());
    let maps = sql.kind(&maps_kind()).expect("the kind is there");
    let query = Query::new().filter(field("data.size").equals(10));
    let query = query.at_least(version.parse().expect("a version"));
    assert_eq!(names(&maps.query(&query).await.expect("answered")), ["one"]);
    sql.stop().await;
    factory.stop().await;
}

#[tokio::test]
async fn the_next_process_finds_the_file_and_deletes_rows_of_deleted_objects() {
    let bench = Bench::new().await;
    let folder = Folder::new();
    let file = folder.0.join("cache.db");
    bench.create("stays", json!({"size": "1"})).await;
    let version = bench.create("goes", json!({"size": "2"})).await;
    let process = bench.start(Some(&file)).await;
    assert_eq!(
        names(&process.at(Query::new(), &version).await),
        ["goes", "stays"]
    );
    process.stop().await;
    bench.delete("goes").await;
    let version = bench.create("comes", json!({"size": "3"})).await;
    let process = bench.start(Some(&file)).await;
    assert_eq!(
        names(&process.at(Query::new(), &version).await),
        ["comes", "stays"]
    );
}

#[tokio::test]
async fn a_value_that_cannot_be_indexed_is_counted_and_the_object_is_there() {
    let bench = Bench::new().await;
    let process = bench.start(None).await;
    let version = bench
        .create("odd", json!({"size": "large", "color": "red"}))
        .await;
    let is_red = Query::new().filter(field("data.color").equals("red"));
    assert_eq!(names(&process.at(is_red, &version).await), ["odd"]);
    let unsized_ =
        Query::new().filter(field("data.size").is(lariat_sql::Operator::Missing, [""; 0]));
    assert_eq!(names(&process.at(unsized_, &version).await), ["odd"]);
    let status = process.maps.status();
    assert_eq!(status.unindexable.get("data.size"), Some(&1));
}

#[tokio::test(start_paused = true)]
async fn a_query_waits_for_its_version_and_says_so_if_it_does_not_come() {
    let bench = Bench::new().await;
    let process = bench.start(None).await;
    let version = bench.create("one", json!({})).await;
    process.at(Query::new(), &version).await;
    let later = Query::new().at_least("999999".parse().expect("a version"));
    let error = process
        .maps
        .query(&later)
        .await
        .expect_err("it does not come");
    assert!(
        matches!(error, SqlError::Query(QueryError::Behind { .. })),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_query_of_a_kind_that_is_not_read_says_what_its_informer_is_at() {
    let bench = Bench::new().await;
    let faults = bench.cluster.faults();
    faults.partition("");
    let process = bench.start(None).await;
    let error = process
        .maps
        .query(&Query::new())
        .await
        .expect_err("nothing is read");
    assert!(matches!(error, SqlError::NotSynced { .. }), "{error}");
}

#[tokio::test]
async fn unknown_fields_and_kinds_are_errors_that_name_the_known() {
    let bench = Bench::new().await;
    let process = bench.start(None).await;
    let query = Query::new().filter(field("data.colour").equals("red"));
    let error = process.maps.query(&query).await.expect_err("unknown");
    assert_eq!(
        error.to_string(),
        "v1 ConfigMap has no indexed field \"data.colour\"; it has metadata.namespace, metadata.name, \
         metadata.creationTimestamp, metadata.uid, data.size, data.color"
    );
    let error = process
        .sql
        .kind(&lariat_core::Gvk::new("", "v1", "Pod"))
        .expect_err("unknown");
    assert_eq!(
        error.to_string(),
        format!("the SQL cache has no v1 Pod; it has {}", maps_kind())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_that_never_rests_is_answered() {
    let bench = Bench::new().await;
    let version = bench.create("one", json!({"size": "0"})).await;
    let maps = bench.maps();
    let mut storm = tokio::task::JoinSet::new();
    storm.spawn(async move {
        let params = kube::api::PatchParams::default();
        for number in 0_u64.. {
            let patch = json!({"data": {"size": number.to_string()}});
            let patch = kube::api::Patch::Merge(patch);
            let patched = maps.patch("one", &params, &patch).await;
            patched.expect("patched");
        }
    });
    let process = bench.start(None).await;
    assert_eq!(names(&process.at(Query::new(), &version).await), ["one"]);
}

#[tokio::test]
async fn an_update_of_what_is_not_indexed_changes_the_object() {
    let bench = Bench::new().await;
    bench
        .create("one", json!({"color": "red", "note": "a"}))
        .await;
    let process = bench.start(None).await;
    let red = || Query::new().filter(field("data.color").equals("red"));
    let version = bench.patch("one", json!({"data": {"note": "b"}})).await;
    let answer = process.at(red(), &version).await;
    let [one] = &answer.objects[..] else {
        panic!("{} objects", answer.objects.len());
    };
    let object: serde_json::Value = serde_json::from_slice(&one.json).expect("JSON");
    assert_eq!(object["data"], json!({"color": "red", "note": "b"}));
    assert_eq!(object["metadata"]["resourceVersion"], version.as_str());
    let version = bench.patch("one", json!({"data": {"color": "blue"}})).await;
    assert_eq!(process.at(red(), &version).await.objects.len(), 0);
}
