//! What the next process reads from the file: the watch resumes, and nothing is listed.

use std::path::Path;
use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, PostParams};
use lariat_cache::{KindOptions, Selection, SharedCacheFactory};
use lariat_cluster::faults::{Action, Refusal, Rule};
use lariat_core::Gvk;
use lariat_seal::{LocalKeys, Sealing};
use lariat_sql::{Query, SqlCache, SqlCacheBuilder, WatchError, field};
use serde_json::json;
use tokio::time;

use crate::bench::{Bench, Folder, Process, maps_kind, names, schema};

/// Counts the requests that read all ConfigMaps.
fn lists(bench: &Bench) -> usize {
    let requests = bench.cluster.journal().requests();
    let of_maps = requests.iter().filter(|it| it.resource == "configmaps");
    // One object is listed to see the server's version, which shows whether it was restored from a backup.
    let lists = |query: &str| !query.split('&').any(|each| each == "limit=1");
    let reads = of_maps.filter(|it| {
        it.verb == "list" && lists(&it.query) || it.query.contains("sendInitialEvents")
    });
    reads.count()
}

async fn sorted(process: &Process, version: &str) -> Vec<String> {
    let query = Query::new().sort(field("metadata.name"));
    let answer = process.at(query, version).await;
    names(&answer).into_iter().map(str::to_owned).collect()
}

/// Changes objects while no process runs, and looks what the next one reads.
async fn goes_on(configure: impl Fn(SqlCacheBuilder) -> SqlCacheBuilder, is_dropped: bool) {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    for name in ["changed", "deleted", "same"] {
        bench.create(name, json!({"color": "red"})).await;
    }
    let version = bench.patch("same", json!({"data": {"size": "7"}})).await;
    let process = bench.start_with(Some(&file), &configure).await;
    assert_eq!(
        sorted(&process, &version).await,
        ["changed", "deleted", "same"]
    );
    if is_dropped {
        drop(process);
    } else {
        process.stop().await;
    }
    bench.delete("deleted").await;
    bench
        .patch("changed", json!({"data": {"color": "blue"}}))
        .await;
    let version = bench.create("new", json!({"color": "blue"})).await;
    let before = lists(&bench);
    let process = bench.start_with(Some(&file), &configure).await;
    assert_eq!(sorted(&process, &version).await, ["changed", "new", "same"]);
    let blue = Query::new().filter(field("data.color").equals("blue"));
    assert_eq!(names(&process.at(blue, &version).await), ["changed", "new"]);
    assert_eq!(lists(&bench), before);
    // And once more, from what this process has written.
    process.stop().await;
    let version = bench.create("newer", json!({})).await;
    let process = bench.start_with(Some(&file), &configure).await;
    assert_eq!(
        sorted(&process, &version).await,
        ["changed", "new", "newer", "same"]
    );
    assert_eq!(lists(&bench), before);
}

#[tokio::test]
async fn the_watch_resumes_where_the_file_ends() {
    goes_on(|builder| builder, false).await;
}

#[tokio::test]
async fn the_watch_resumes_after_a_process_that_did_not_stop() {
    goes_on(|builder| builder, true).await;
}

#[tokio::test]
async fn the_watch_resumes_from_an_encrypted_kind() {
    let key = || LocalKeys::from_bytes(&std::array::from_fn::<u8, 32, _>(|place| place as u8));
    goes_on(
        move |builder| builder.sealed(Sealing::of_everything(key().expect("a key"))),
        false,
    )
    .await;
}

/// Starts a process, which finds these objects, and lists them or resumes from the file.
async fn finds(bench: &Bench, file: &Path, version: &str, expected: &[&str], is_listed: bool) {
    let before = lists(bench);
    let process = bench.start(Some(file)).await;
    assert_eq!(sorted(&process, version).await, expected);
    process.stop().await;
    assert_eq!(lists(bench) > before, is_listed);
}

#[tokio::test]
async fn kind_is_listed_after_a_row_was_refused() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    let version = bench.create("good", json!({})).await;
    finds(&bench, &file, &version, &["good"], true).await;
    let database = rusqlite::Connection::open(&file).expect("opened");
    let sql = "SELECT 'row' || number FROM kinds WHERE kind = 'v1 ConfigMap'";
    let rows = database.query_row(sql, [], |row| row.get::<_, String>(0));
    let trigger = format!(
        "CREATE TRIGGER refuse BEFORE INSERT ON {} WHEN NEW.key LIKE '%bad' BEGIN SELECT RAISE(ABORT, 'no'); END",
        rows.expect("it is there")
    );
    database
        .execute_batch(&trigger)
        .expect("refused from now on");
    bench.create("bad", json!({})).await;
    let version = bench.create("more", json!({})).await;
    finds(&bench, &file, &version, &["good", "more"], false).await;
    database
        .execute_batch("DROP TRIGGER refuse")
        .expect("taken");
    finds(&bench, &file, &version, &["bad", "good", "more"], true).await;
}

#[tokio::test]
async fn what_was_read_as_something_else_is_listed() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    bench.create("red", json!({})).await;
    bench
        .patch("red", json!({"metadata": {"labels": {"color": "red"}}}))
        .await;
    let version = bench.create("blue", json!({})).await;
    // Another selection from the beginning.
    let start = async |selection: Option<Selection>| {
        let factory = SharedCacheFactory::new(bench.cluster.client());
        let sql = lariat_sql::SqlCache::builder(&factory)
            .kind(schema())
            .in_file(&file);
        let sql = sql.start().await.expect("started");
        if let Some(selection) = selection {
            factory.for_kind(maps_kind()).select(selection);
        }
        factory.start();
        let maps = sql.kind(&maps_kind()).expect("the kind is there");
        Process { factory, sql, maps }
    };
    let red = || Selection::all().with_labels("color=red".parse().expect("a selector"));
    let process = start(Some(red())).await;
    assert_eq!(sorted(&process, &version).await, ["red"]);
    process.stop().await;
    finds(&bench, &file, &version, &["blue", "red"], true).await;
    // Another selection while it runs.
    let process = start(None).await;
    assert_eq!(sorted(&process, &version).await, ["blue", "red"]);
    process.factory.for_kind(maps_kind()).select(red());
    while sorted(&process, &version).await != ["red"] {
        tokio::task::yield_now().await;
    }
    drop(process);
    finds(&bench, &file, &version, &["blue", "red"], true).await;
    // Nothing is in the way now.
    finds(&bench, &file, &version, &["blue", "red"], false).await;
}

/// Starts a process of two namespaces, which does not wait for a forbidden one.
async fn start_in_two(bench: &Bench, file: &Path) -> Process {
    let selection = Selection::all().in_namespaces(["default", "kube-public"]);
    let options = KindOptions::default().selection(selection);
    let factory = SharedCacheFactory::builder(bench.cluster.client())
        .default_options(options.start_without_forbidden())
        .build();
    let sql = SqlCache::builder(&factory).kind(schema()).in_file(file);
    let sql = sql.start().await.expect("started");
    factory.start();
    let maps = sql.kind(&maps_kind()).expect("the kind is there");
    Process { factory, sql, maps }
}

/// Returns the names of the objects in the namespace `kube-public`.
async fn public(process: &Process) -> Vec<String> {
    let query = Query::new().sort(field("metadata.name"));
    let query = query.namespaces(["kube-public"]);
    let answer = process.maps.query(&query).await.expect("answered");
    names(&answer).into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn rows_of_a_forbidden_namespace_stay_until_it_is_readable() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    let maps: Api<ConfigMap> = Api::namespaced(bench.cluster.client(), "kube-public");
    for name in ["deleted", "kept"] {
        let map = json!({"metadata": {"name": name}});
        let map = serde_json::from_value(map).expect("a ConfigMap");
        let created = maps.create(&PostParams::default(), &map).await;
        created.expect("created");
    }
    let version = bench.create("other", json!({})).await;
    let process = start_in_two(&bench, &file).await;
    assert_eq!(sorted(&process, &version).await, ["other"]);
    assert_eq!(public(&process).await, ["deleted", "kept"]);
    process.stop().await;
    // The next process has to list.
    let database = rusqlite::Connection::open(&file).expect("opened");
    let forget = "UPDATE kinds SET identity = NULL";
    database.execute(forget, []).expect("written");
    drop(database);
    let deleted = maps.delete("deleted", &DeleteParams::default()).await;
    deleted.expect("deleted");
    bench.delete("other").await;
    let version = bench.create("another", json!({})).await;
    let forbidden = Rule::new(Action::Refuse(Refusal::new(StatusCode::FORBIDDEN)));
    let forbidden = forbidden.resource("configmaps").namespace("kube-public");
    bench.cluster.faults().add(forbidden);
    let process = start_in_two(&bench, &file).await;
    assert_eq!(sorted(&process, &version).await, ["another"]);
    assert_eq!(public(&process).await, ["deleted", "kept"]);
    let mut watch = process.maps.watch(&Query::new(), None).expect("it begins");
    bench.cluster.faults().clear();
    while public(&process).await != ["kept"] {
        time::sleep(Duration::from_millis(5)).await;
    }
    // The last state of what is gone is not known, so the watch cannot report it.
    let error = loop {
        match watch.next().await.expect("an error") {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(error, WatchError::TooSlow { .. }), "{error}");
    let version = bench.create("last", json!({})).await;
    assert_eq!(sorted(&process, &version).await, ["another", "last"]);
    process.stop().await;
}

#[tokio::test]
async fn a_file_of_another_cluster_is_compared_with_a_list() {
    let (bench, other, folder) = (Bench::new().await, Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    let version = other.create("there", json!({})).await;
    finds(&other, &file, &version, &["there"], true).await;
    let version = bench.create("here", json!({})).await;
    finds(&bench, &file, &version, &["here"], true).await;
}

#[tokio::test]
async fn a_version_that_has_expired_and_rows_that_cannot_be_read_are_listed() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    for number in 0..3 {
        bench.create(&format!("n{number}"), json!({})).await;
    }
    let version = bench.create("last", json!({})).await;
    finds(&bench, &file, &version, &["last", "n0", "n1", "n2"], true).await;
    bench.delete("n1").await;
    bench.cluster.compact();
    finds(&bench, &file, &version, &["last", "n0", "n2"], true).await;
    let database = rusqlite::Connection::open(&file).expect("opened");
    let json: String = database
        .query_row(
            "SELECT name FROM sqlite_schema WHERE name LIKE 'json%'",
            [],
            |row| row.get(0),
        )
        .expect("it is there");
    let damage =
        format!("UPDATE {json} SET json = x'7b22' WHERE id = (SELECT max(id) FROM {json})");
    database.execute_batch(&damage).expect("written");
    drop(database);
    finds(&bench, &file, &version, &["last", "n0", "n2"], true).await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_is_listed_if_the_api_server_does_not_say_which_cluster_it_is() {
    for code in [StatusCode::FORBIDDEN, StatusCode::INTERNAL_SERVER_ERROR] {
        let (bench, folder) = (Bench::new().await, Folder::new());
        let file = folder.0.join("cache.db");
        let version = bench.create("one", json!({})).await;
        finds(&bench, &file, &version, &["one"], true).await;
        let refused = Rule::new(Action::Refuse(Refusal::new(code)));
        let refused = refused.resource("namespaces").name("kube-system");
        bench.cluster.faults().add(refused);
        let before = lists(&bench);
        let wait_timeout = |builder: SqlCacheBuilder| builder.wait_timeout(Duration::from_secs(60));
        let process = bench.start_with(Some(&file), wait_timeout).await;
        assert_eq!(sorted(&process, &version).await, ["one"], "{code}");
        assert!(lists(&bench) > before, "{code}");
        process.stop().await;
    }
}

/// Another kind finds the restore. ConfigMaps, whose watch gets no answer, are not listed again before the stop.
#[tokio::test]
async fn kind_that_was_not_read_again_after_a_restore_is_listed_by_the_next_start() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    bench.create("kept", json!({})).await;
    let backup = bench.cluster.snapshot();
    bench.create("lost", json!({})).await;
    let mut lost = String::new();
    for number in 0..10 {
        let patch = json!({"data": {"number": number.to_string()}});
        lost = bench.patch("lost", patch).await;
    }
    let process = bench.start(Some(&file)).await;
    assert_eq!(sorted(&process, &lost).await, ["kept", "lost"]);
    let secrets = process.factory.for_kind(Gvk::new("", "v1", "Secret"));
    assert!(secrets.synced().await);
    let never = Rule::new(Action::NoAnswer)
        .verb("watch")
        .resource("configmaps");
    let never = bench.cluster.faults().add(never);
    let rewound = bench.cluster.rewind_to(&backup).await;
    rewound.expect("restored");
    let later: Api<Secret> = Api::namespaced(bench.cluster.client(), "default");
    let secret = serde_json::from_value(json!({"metadata": {"name": "later"}}));
    let secret = secret.expect("a Secret");
    let created = later.create(&PostParams::default(), &secret).await;
    created.expect("created");
    while secrets.store().is_empty() {
        time::sleep(Duration::from_millis(5)).await;
    }
    process.stop().await;
    bench.cluster.faults().remove(never);
    let version = bench.create("new", json!({})).await;
    finds(&bench, &file, &version, &["kept", "new"], true).await;
}
