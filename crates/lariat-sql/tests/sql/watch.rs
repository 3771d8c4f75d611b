//! Watches of what a query finds.

use lariat_sql::{Query, Watch, WatchError, WatchEvent, field};
use serde_json::json;

use crate::bench::Bench;

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
    // Another goes on from where an answer was.
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

#[tokio::test]
async fn a_watch_ends_when_the_cache_stops() {
    let bench = Bench::new().await;
    let process = bench.start(None).await;
    let version = bench.create("one", json!({})).await;
    process.at(Query::new(), &version).await;
    let mut watch = process.maps.watch(&Query::new(), None).expect("it begins");
    process.sql.stop().await;
    let error = watch.next().await.expect("an error").expect_err("stopped");
    assert!(matches!(error, WatchError::Stopped { .. }), "{error}");
    assert!(watch.next().await.is_none());
}
