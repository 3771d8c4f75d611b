//! Defects that caches of this kind have had elsewhere, each with a test that this one does not.

use std::time::Duration;

use lariat_core::Gvk;
use lariat_sql::{
    Association, Field, FieldType, Query, Revision, Schema, SqlError, Watch, WatchError,
    WatchEvent, associated, field, label,
};
use serde_json::{Value as Json, json};
use tokio::time;

use crate::bench::{Bench, Folder, Process, hide, maps_kind, names};

fn schema() -> Schema {
    let path = |path, of| Field::path(path, of).expect("a path");
    let fields = [
        path("data.color", FieldType::Text),
        path("data.size", FieldType::Integer),
        path("data.ip", FieldType::Ip),
        path("metadata.finalizers[3]", FieldType::Text),
        path("metadata.ownerReferences[*]", FieldType::Text),
        path("metadata.labels[size]", FieldType::Integer).named("size"),
    ];
    Schema::new(maps_kind(), fields).expect("a schema")
}

/// Creates `n0`, `n1` and so on with this data; returns the version of the last.
async fn create(bench: &Bench, all: impl IntoIterator<Item = Json>) -> String {
    let mut version = String::new();
    for (number, data) in all.into_iter().enumerate() {
        version = bench.create(&format!("n{number}"), data).await;
    }
    version
}

async fn stage() -> (Bench, Process) {
    let bench = Bench::new().await;
    let process = bench.start_kinds(None, vec![schema()]).await;
    (bench, process)
}

/// Returns what the next event of a watch is, of which object, and its color.
async fn next(watch: &mut Watch) -> (&'static str, String, String) {
    let event = watch.next().await.expect("it goes on").expect("an event");
    let what = match &event {
        WatchEvent::Added(_) => "added",
        WatchEvent::Modified(_) => "modified",
        WatchEvent::Deleted(_) => "deleted",
        _ => "other",
    };
    let object = &event.watched().object;
    let json: Json = serde_json::from_slice(&object.json().expect("it is sound")).expect("JSON");
    let color = json["data"]["color"].as_str().unwrap_or_default();
    (what, object.key().name().to_owned(), color.to_owned())
}

fn watch_of(process: &Process, query: &Query, since: Option<Revision>) -> Watch {
    process.maps.watch(query, since).expect("it begins")
}

fn reds() -> Query {
    Query::new().filter(field("data.color").equals("red"))
}

// A removed label still finds the object.
#[tokio::test]
async fn a_removed_label_finds_nothing() {
    let (bench, process) = stage().await;
    bench.create("one", json!({})).await;
    let labelled = || Query::new().filter(label("app").exists());
    let version = bench
        .patch("one", json!({"metadata": {"labels": {"app": "web"}}}))
        .await;
    assert_eq!(names(&process.at(labelled(), &version).await), ["one"]);
    let version = bench
        .patch("one", json!({"metadata": {"labels": {"app": null}}}))
        .await;
    assert_eq!(names(&process.at(labelled(), &version).await), [""; 0]);
}

// An exact comparison escapes or interprets the signs of LIKE, so that a_b does not equal itself, or equals axb.
#[tokio::test]
async fn texts_equal_themselves_whatever_is_in_them() {
    let (bench, process) = stage().await;
    let texts = [
        "a_b", "a%b", "axb", "a\\b", "a'b", "a\"b", "A_B", "*", "[a]", "a\\_b",
    ];
    let version = create(&bench, texts.map(|text| json!({"color": text}))).await;
    for (number, text) in texts.iter().enumerate() {
        let equal = Query::new().filter(field("data.color").equals(text));
        let found = process.at(equal, &version).await;
        assert_eq!(names(&found), [format!("n{number}")], "{text}");
        let part = Query::new().filter(field("data.color").like(text));
        let like = texts
            .iter()
            .filter(|it| it.to_lowercase().contains(&text.to_lowercase()));
        let found = process.at(part, &version).await;
        assert_eq!(names(&found).len(), like.count(), "{text}");
    }
}

// Numbers compare as texts, in labels too, or as floating point numbers of 32 bits.
#[tokio::test]
async fn numbers_compare_as_numbers() {
    let (bench, process) = stage().await;
    let mut version = String::new();
    let sizes = [
        ("a", "5"),
        ("b", "10"),
        ("c", "16777216"),
        ("d", "16777217"),
    ];
    for (name, size) in sizes {
        bench.create(name, json!({"size": size})).await;
        let labels = json!({"metadata": {"labels": {"size": size}}});
        version = bench.patch(name, labels).await;
    }
    for by in ["data.size", "size"] {
        let below = Query::new().filter(field(by).less_than(10));
        assert_eq!(names(&process.at(below, &version).await), ["a"], "{by}");
        let above = Query::new().filter(field(by).greater_than(16_777_216));
        assert_eq!(names(&process.at(above, &version).await), ["d"], "{by}");
        let sorted = Query::new()
            .filter(field(by).exists())
            .sort_descending(field(by));
        assert_eq!(
            names(&process.at(sorted, &version).await),
            ["d", "c", "b", "a"]
        );
    }
}

// A value that cannot be indexed, or a subscript behind the end of an array, loses the object.
#[tokio::test]
async fn an_object_with_a_value_that_cannot_be_indexed_is_there() {
    let (bench, process) = stage().await;
    let data = json!({"size": "many", "ip": "nowhere", "color": "red"});
    bench.create("one", data).await;
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "y"});
    let odd = json!({"metadata": {"ownerReferences": [owner], "finalizers": ["a/b"]}});
    let version = bench.patch("one", odd).await;
    let found = process.at(reds(), &version).await;
    assert_eq!(names(&found), ["one"]);
    let unindexable = process.maps.status().unindexable;
    let fields: Vec<&str> = unindexable.keys().map(String::as_str).collect();
    assert_eq!(
        fields,
        ["data.ip", "data.size", "metadata.ownerReferences[*]"]
    );
}

// After a relist the revision is an arbitrary object's, every object is added again, and none is deleted.
#[tokio::test(start_paused = true)]
async fn a_relist_is_only_what_has_changed() {
    let (bench, process) = stage().await;
    for name in ["changes", "goes", "stays"] {
        bench.create(name, json!({"color": "red"})).await;
    }
    let version = bench.create("last", json!({"color": "red"})).await;
    let answer = process.at(reds(), &version).await;
    let mut watch = watch_of(&process, &reds(), Some(answer.revision));
    let informer = process.factory.for_kind(maps_kind());
    let loads = informer.status().loads;
    // What happens while the watch is down is forgotten, so that it cannot go on.
    bench.cluster.cut_watches();
    bench.delete("goes").await;
    bench.patch("changes", json!({"data": {"size": "2"}})).await;
    let version = bench.create("comes", json!({"color": "red"})).await;
    bench.cluster.compact();
    let answer = process.at(reds(), &version).await;
    assert!(answer.revision.version() >= version.parse().expect("a number"));
    assert!(informer.status().loads > loads, "it has listed again");
    let mut events = Vec::new();
    for _ in 0..3 {
        let (what, name, _) = next(&mut watch).await;
        events.push(format!("{what} {name}"));
    }
    events.sort();
    assert_eq!(events, ["added comes", "deleted goes", "modified changes"]);
    let more = time::timeout(Duration::from_secs(60), watch.next()).await;
    assert!(more.is_err(), "{more:?}");
}

// Events come before their commit, their consumer can hold up the cache, and what leaves a filter is modified.
#[tokio::test(start_paused = true)]
async fn events_come_after_their_commit_and_wait_for_no_reader() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    let process = bench.start_kinds(Some(&file), vec![schema()]).await;
    let version = bench.create("one", json!({"color": "red"})).await;
    let answer = process.at(reds(), &version).await;
    let watch = || watch_of(&process, &reds(), Some(answer.revision));
    let (mut read, _unread) = (watch(), watch());
    hide(&file, true);
    let version = bench.patch("one", json!({"data": {"color": "blue"}})).await;
    let early = time::timeout(Duration::from_secs(20), read.next()).await;
    assert!(early.is_err(), "it is not committed");
    hide(&file, false);
    let (what, name, color) = next(&mut read).await;
    assert_eq!(format!("{what} {name} {color}"), "deleted one red");
    let found = process.maps.query(&reds()).await.expect("answered");
    assert_eq!(names(&found), [""; 0], "a query after the event sees it");
    let mut version = version;
    for number in 0..40 {
        let patch = json!({"data": {"color": (["red", "blue"][number % 2])}});
        version = bench.patch("one", patch).await;
    }
    let found = process.at(reds(), &version).await;
    assert_eq!(names(&found), [""; 0], "no reader holds it up");
}

// A modified object comes in the state before.
#[tokio::test]
async fn a_modified_object_comes_in_its_new_state() {
    let (bench, process) = stage().await;
    let version = bench.create("one", json!({"color": "red"})).await;
    process.at(Query::new(), &version).await;
    let any = Query::new().filter(field("data.color").exists());
    let mut watch = watch_of(&process, &any, None);
    bench.patch("one", json!({"data": {"color": "blue"}})).await;
    let (what, _, color) = next(&mut watch).await;
    assert_eq!((what, color.as_str()), ("modified", "blue"));
}

// Without a tie-break pages repeat or skip objects; lists, totals, counts and associated kinds are of different states.
#[tokio::test]
async fn pages_neither_repeat_nor_skip_and_an_answer_is_of_one_state() {
    let (bench, process) = stage().await;
    let version = create(&bench, vec![json!({"color": "red"}); 25]).await;
    let by_color = || reds().sort_descending(field("data.color"));
    let all = process.at(by_color(), &version).await;
    let mut paged = Vec::new();
    for page in 1..5 {
        let answer = process.at(by_color().page(page, 7), &version).await;
        paged.extend(names(&answer).into_iter().map(str::to_owned));
    }
    assert_eq!(paged, names(&all));
    let mut seen = Vec::new();
    let mut answer = process.at(by_color().limit(4), &version).await;
    for number in 0.. {
        seen.extend(names(&answer).into_iter().map(str::to_owned));
        let Some(next) = &answer.next else { break };
        // One is added in front, and one that was seen is deleted.
        let version = bench
            .create(&format!("a{number}"), json!({"color": "red"}))
            .await;
        bench.delete(&seen[number]).await;
        answer = process.at(by_color().limit(4).after(next), &version).await;
    }
    assert_eq!(seen, names(&all));
    for number in 0..200 {
        let color = if number % 3 == 0 { "red" } else { "blue" };
        let data = json!({"color": color, "size": number.to_string()});
        bench.patch("n24", json!({"data": data})).await;
        let query = reds().page(1, 1000).summarize(field("data.color"));
        let answer = process.maps.query(&query).await.expect("answered");
        let counted: u64 = answer.summaries[0].iter().map(|count| count.objects).sum();
        assert_eq!(answer.total, Some(answer.objects.len() as u64));
        assert_eq!(counted, answer.objects.len() as u64);
    }
}

// A query changes its caller's fields when it is run; addresses are sorted by their first 64 bits.
#[tokio::test]
async fn a_query_stays_as_it_is_and_addresses_are_sorted_as_a_whole() {
    let (bench, process) = stage().await;
    let ips = "fe80::2 10.0.0.10 fe80::1 10.0.0.9 fe80::1:0 ::ffff:10.0.0.1";
    let version = create(&bench, ips.split(' ').map(|ip| json!({"ip": ip}))).await;
    let query = Query::new()
        .filter(field("data.ip").exists())
        .filter(field("metadata.finalizers[3]").is(lariat_sql::Operator::Missing, [""; 0]))
        .sort(field("data.ip"))
        .at_least(version.parse().expect("a version"));
    let before = query.clone();
    for _ in 0..2 {
        let answer = process.maps.query(&query).await.expect("answered");
        assert_eq!(names(&answer), ["n5", "n3", "n1", "n2", "n0", "n4"]);
        assert_eq!(query, before);
    }
}

// The log of the file grows without bound while there are readers.
#[tokio::test]
async fn the_log_is_bounded_while_there_are_readers() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    let process = bench.start_kinds(Some(&file), vec![schema()]).await;
    let log = folder.0.join("cache.db-wal");
    bench.create("one", json!({})).await;
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let maps = process.maps.clone();
        readers.spawn(async move {
            loop {
                let answer = maps.query(&reds().only_counts()).await;
                drop(answer.expect("answered"));
            }
        });
    }
    let (mut longest, mut written) = (0, 0);
    for number in 0..140 {
        let data = "x".repeat(400_000);
        written += data.len() as u64;
        let patch = json!({"data": {"size": number.to_string(), "other": data}});
        let version = bench.patch("one", patch).await;
        process.at(Query::new().only_counts(), &version).await;
        longest = longest.max(std::fs::metadata(&log).map_or(0, |log| log.len()));
    }
    readers.shutdown().await;
    assert!(longest < written * 3 / 4, "{longest} of {written}");
}

// Replicas disagree on revisions, so that what one has answered means nothing to another.
#[tokio::test]
async fn a_revision_and_a_cursor_of_one_process_are_good_in_another() {
    let bench = Bench::new().await;
    let version = create(&bench, vec![json!({"color": "red"}); 3]).await;
    let one = bench.start_kinds(None, vec![schema()]).await;
    let answer = one.at(reds().limit(2), &version).await;
    let other = bench.start_kinds(None, vec![schema()]).await;
    let next = reds().limit(2).after(&answer.next.expect("there are more"));
    let rest = other
        .maps
        .query(&next.namespaces(["default"]).at_least(answer.revision))
        .await;
    let rest = rest.expect("answered");
    assert_eq!(names(&rest), ["n2"]);
    assert!(rest.revision.version() >= answer.revision.version());
}

// A change of one kind's fields resets the whole file.
#[tokio::test]
async fn other_kinds_stay_when_the_fields_of_one_change() {
    let (bench, folder) = (Bench::new().await, Folder::new());
    let file = folder.0.join("cache.db");
    let namespaces = || Schema::new(Gvk::new("", "v1", "Namespace"), []).expect("a schema");
    let version = bench.create("one", json!({"color": "red"})).await;
    let numbers = || {
        let database = rusqlite::Connection::open(&file).expect("opened");
        let number = |kind: &str| -> i64 {
            let sql = "SELECT number FROM kinds WHERE kind = ?1";
            database
                .query_row(sql, [kind], |row| row.get(0))
                .expect("it is there")
        };
        (number("v1 ConfigMap"), number("v1 Namespace"))
    };
    let process = bench
        .start_kinds(Some(&file), vec![schema(), namespaces()])
        .await;
    process.at(reds(), &version).await;
    process.stop().await;
    let before = numbers();
    let fewer = Field::path("data.color", FieldType::Text).expect("a path");
    let fewer = Schema::new(maps_kind(), [fewer]).expect("a schema");
    let process = bench
        .start_kinds(Some(&file), vec![fewer, namespaces()])
        .await;
    assert_eq!(names(&process.at(reds(), &version).await), ["one"]);
    process.stop().await;
    let after = numbers();
    assert_ne!(before.0, after.0);
    assert_eq!(before.1, after.1);
}

// Watches are not notified that the cache stops.
#[tokio::test]
async fn a_stop_ends_watches() {
    let (bench, process) = stage().await;
    let version = bench.create("one", json!({})).await;
    process.at(Query::new(), &version).await;
    let mut watch = watch_of(&process, &Query::new(), None);
    process.sql.stop().await;
    let end = watch.next().await.expect("an end");
    assert!(matches!(end, Err(WatchError::Stopped { .. })), "{end:?}");
}

// A kind that another one needs and that is not served lets everything hang.
#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_is_an_error_of_what_needs_it() {
    let bench = Bench::new().await;
    let missing = Gvk::new("example.com", "v1", "Missing");
    let association = Association::label("missing", missing.clone(), "app");
    let maps = schema().associate(association).expect("a schema");
    let other = Schema::new(missing, []).expect("a schema");
    let process = bench.start_kinds(None, vec![maps, other]).await;
    let version = bench.create("one", json!({"color": "red"})).await;
    assert_eq!(names(&process.at(reds(), &version).await), ["one"]);
    let needs = reds().sort(associated("missing", field("metadata.name")));
    let error = process.maps.query(&needs).await.expect_err("it is missing");
    assert!(
        matches!(&error, SqlError::NotSynced { kind, .. } if kind.kind() == "Missing"),
        "{error}"
    );
    process.stop().await;
}
