//! Watches of what a query finds.

use std::collections::BTreeMap;

use lariat_sql::{Query, QueryResult, Revision, Watch, WatchError, WatchEvent, field};
use serde_json::{Value as Json, json};

use crate::bench::{Bench, Process, maps_kind};

/// Returns what the next event is, and of which object.
async fn next(watch: &mut Watch) -> String {
    let event = watch.next().await.expect("it goes on").expect("an event");
    let what = match &event {
        WatchEvent::Added(_) => "added",
        WatchEvent::Modified(_) => "modified",
        WatchEvent::Deleted(_) => "deleted",
        _ => "other",
    };
    format!("{what} {}", event.watched().object.key().name())
}

fn reds() -> Query {
    Query::new().filter(field("data.color").equals("red"))
}

#[tokio::test]
async fn objects_come_into_a_filter_and_leave_it() {
    let bench = Bench::new().await;
    let process = bench.start(None).await;
    let version = bench.create("one", json!({"color": "red"})).await;
    let answer = process.at(reds(), &version).await;
    let mut watch = process
        .maps
        .watch(&reds(), Some(answer.revision))
        .expect("it begins");
    let steps = [
        ("one", json!({"data": {"size": "1"}}), "modified one"),
        ("one", json!({"data": {"color": "blue"}}), "deleted one"),
        ("one", json!({"data": {"color": "red"}}), "added one"),
    ];
    for (name, patch, seen) in steps {
        bench.patch(name, patch).await;
        assert_eq!(next(&mut watch).await, seen);
    }
    bench.create("blue", json!({"color": "blue"})).await;
    bench.create("two", json!({"color": "red"})).await;
    assert_eq!(next(&mut watch).await, "added two");
    bench.delete("two").await;
    assert_eq!(next(&mut watch).await, "deleted two");
    // Another one resumes from an answer.
    let mut again = process
        .maps
        .watch(&reds(), Some(answer.revision))
        .expect("it begins");
    for seen in [
        "modified one",
        "deleted one",
        "added one",
        "added two",
        "deleted two",
    ] {
        assert_eq!(next(&mut again).await, seen);
    }
    assert_eq!(again.revision(), watch.revision());
}

#[tokio::test]
async fn what_is_read_after_an_event_has_it() {
    let bench = Bench::new().await;
    let process = bench.start(None).await;
    let version = bench.create("zero", json!({})).await;
    process.at(Query::new(), &version).await;
    let mut watch = process.maps.watch(&reds(), None).expect("it begins");
    for number in 0..20 {
        bench
            .create(&format!("n{number}"), json!({"color": "red"}))
            .await;
        next(&mut watch).await;
        let answer = process.maps.query(&reds()).await.expect("answered");
        assert_eq!(answer.objects.len(), number + 1);
    }
}

#[tokio::test]
async fn a_reader_that_is_too_slow_is_cut_off_and_an_old_revision_is_refused() {
    let bench = Bench::new().await;
    let process = bench.start_with(None, |builder| builder.history(3)).await;
    let version = bench.create("zero", json!({"color": "red"})).await;
    let answer = process.at(reds(), &version).await;
    let mut watch = process
        .maps
        .watch(&reds(), Some(answer.revision))
        .expect("it begins");
    let mut last = String::new();
    for number in 0..5 {
        last = bench
            .patch("zero", json!({"data": {"size": number.to_string()}}))
            .await;
        process.at(reds(), &last).await;
    }
    let error = watch.next().await.expect("an error").expect_err("too slow");
    assert!(matches!(error, WatchError::TooSlow { .. }), "{error}");
    assert!(watch.next().await.is_none());
    let error = process
        .maps
        .watch(&reds(), Some(answer.revision))
        .expect_err("too old");
    assert!(matches!(error, WatchError::TooOld { .. }), "{error}");
    let other = last.parse().expect("a version");
    let error = process
        .maps
        .watch(&reds(), Some(other))
        .expect_err("of no history");
    assert!(matches!(error, WatchError::TooOld { .. }), "{error}");
}

/// The naive evaluation of what the query below asks for, over the informer's store.
fn expected(process: &Process) -> BTreeMap<String, String> {
    let informer = process.factory.for_kind(maps_kind());
    let snapshot = informer.store().snapshot();
    let found = snapshot.iter().filter(|object| {
        let json = object.json().expect("it is sound");
        let json: Json = serde_json::from_slice(&json).expect("JSON");
        let size = json["data"]["size"]
            .as_str()
            .and_then(|size| size.parse::<i64>().ok());
        let is_red = json["data"]["color"]
            .as_str()
            .is_some_and(|color| color.to_ascii_lowercase().contains("red"));
        is_red || size.is_some_and(|size| size > 4)
    });
    found
        .map(|object| (object.key().to_string(), object.version().to_string()))
        .collect()
}

/// Returns which change of the cache a revision is of.
fn place(revision: Revision) -> String {
    let text = revision.to_string();
    let (_, place) = text.split_once('-').expect("a place");
    place.to_owned()
}

/// Takes an event into what was listed.
fn apply(known: &mut BTreeMap<String, String>, event: &WatchEvent) {
    let object = &event.watched().object;
    let (key, version) = (object.key().to_string(), object.version().to_string());
    let before = match event {
        WatchEvent::Deleted(_) => known.remove(&key),
        _ => known.insert(key, version),
    };
    let is_new = matches!(event, WatchEvent::Added(_));
    assert_eq!(before.is_none(), is_new, "{event:?}");
}

/// Changes objects at random; returns the version of the last one.
async fn change(bench: &Bench, random: &mut fastrand::Rng) -> String {
    let mut version = bench.create("first", json!({"color": "red"})).await;
    let mut names: Vec<String> = vec!["first".to_owned()];
    for number in 0..300 {
        let color = random
            .choice(["red", "Infrared", "blue", ""])
            .expect("a color");
        let data = json!({"color": color, "size": random.i64(0..9).to_string()});
        let place = random.usize(..names.len());
        match random.u8(..3) {
            0 => {
                names.push(format!("n{number}"));
                version = bench.create(&format!("n{number}"), data).await;
            }
            1 if names.len() > 1 => bench.delete(&names.swap_remove(place)).await,
            _ => version = bench.patch(&names[place], json!({"data": data})).await,
        }
        // In steps of any size, so that changes are merged, too.
        if random.u8(..4) == 0 {
            tokio::task::yield_now().await;
        }
    }
    let last = json!({"color": "red", "size": version});
    bench.create("last", last).await
}

#[tokio::test]
async fn a_list_and_what_a_watch_says_since_are_the_next_list_and_what_the_store_has() {
    let seed = std::env::var("LARIAT_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("LARIAT_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (bench, query) = (Bench::new().await, || {
        Query::new().filter(
            field("data.color")
                .like("red")
                .or(field("data.size").greater_than(4)),
        )
    });
    let process = bench.start(None).await;
    let version = bench.create("zero", json!({"color": "red"})).await;
    let at = |version: &str| query().at_least(version.parse().expect("a version"));
    let answer = process.maps.query(&at(&version)).await.expect("answered");
    let since = Some(answer.revision);
    let mut watch = process.maps.watch(&query(), since).expect("it begins");
    let listed = |answer: &QueryResult| {
        let found = answer.objects.iter();
        let found = found.map(|found| (found.key.to_string(), found.version.clone()));
        found.collect::<BTreeMap<_, _>>()
    };
    let mut known = listed(&answer);
    let version = change(&bench, &mut random).await;
    let answer = process.maps.query(&at(&version)).await.expect("answered");
    // The version also increases without changes.
    while place(watch.revision()) != place(answer.revision) {
        let event = watch.next().await.expect("it goes on");
        apply(&mut known, &event.expect("an event"));
    }
    assert_eq!(listed(&answer), known);
    assert_eq!(known, expected(&process));
}

#[tokio::test]
async fn a_watch_ends_when_the_cache_is_dropped() {
    let bench = Bench::new().await;
    let process = bench.start(None).await;
    let version = bench.create("one", json!({})).await;
    process.at(Query::new(), &version).await;
    let mut watch = process.maps.watch(&Query::new(), None).expect("it begins");
    drop(process);
    let error = watch.next().await.expect("an error").expect_err("stopped");
    assert!(matches!(error, WatchError::Stopped { .. }), "{error}");
}
