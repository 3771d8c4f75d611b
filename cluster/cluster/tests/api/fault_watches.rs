//! Faults of watches.

use std::time::Duration;

use crate::bench::{Bench, CONFIG_MAPS, version};
use lariat_cluster::faults::{Action, After, Rule};
use serde_json::json;
use tokio::time::{Instant, timeout};

const INITIAL: &str =
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

fn watch(query: &str) -> String {
    format!("{CONFIG_MAPS}?watch=1&{query}")
}

async fn with(actions: &[Action]) -> Bench {
    let bench = Bench::new().await;
    for name in ["a", "b", "c"] {
        bench.config_map(name, json!({})).await;
    }
    for action in actions {
        bench.cluster.faults().add(Rule::new(action.clone()));
    }
    bench
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_cleanly_after_some_events() {
    let bench = with(&[Action::EndWatch(After::Events(2))]).await;
    let mut first = bench.watch(&watch("")).await;
    assert_eq!(first.shorts(2).await, ["ADDED a", "ADDED b"]);
    assert_eq!(first.line().await.unwrap(), None);
    // Every other watch has a count of its own.
    let now = version(&bench.get(CONFIG_MAPS).await.json());
    let mut second = bench.watch(&watch(&format!("resourceVersion={now}"))).await;
    for name in ["d", "e", "f"] {
        bench.config_map(name, json!({})).await;
    }
    assert_eq!(second.shorts(2).await, ["ADDED d", "ADDED e"]);
    assert_eq!(second.line().await.unwrap(), None);
    bench.cluster.faults().clear();
    let mut third = bench.watch(&watch("")).await;
    assert_eq!(third.shorts(6).await.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_watch_is_cut_in_the_middle_of_a_line_before_anything_or_after_a_time() {
    let bench = with(&[Action::CutWatch(After::Events(0))]).await;
    let mut at_once = bench.watch(&watch("")).await;
    assert!(at_once.line().await.is_err());
    assert!(at_once.rest().starts_with("{\"type\":"));

    let bench = with(&[Action::CutWatch(After::Time(Duration::from_secs(7)))]).await;
    let start = Instant::now();
    let mut later = bench.watch(&watch("timeoutSeconds=60")).await;
    assert_eq!(later.shorts(3).await.len(), 3);
    assert!(later.line().await.is_err());
    assert_eq!(start.elapsed(), Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn a_watch_hangs_beyond_its_timeout_until_it_is_cut() {
    let bench = with(&[Action::HangWatch(After::Events(3))]).await;
    let mut watch = bench
        .watch(&watch("timeoutSeconds=5&allowWatchBookmarks=true"))
        .await;
    assert_eq!(watch.shorts(3).await, ["ADDED a", "ADDED b", "ADDED c"]);
    bench.config_map("d", json!({})).await;
    let waited = timeout(Duration::from_secs(3600), watch.line()).await;
    assert!(waited.is_err());
    bench.cluster.cut_watches();
    assert!(watch.line().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_hangs_ends_with_the_cluster() {
    let bench = with(&[Action::HangWatch(After::Time(Duration::ZERO))]).await;
    let mut watch = bench.watch(&watch("")).await;
    let (line, ()) = tokio::join!(watch.line(), bench.cluster.shutdown());
    assert_eq!(line.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_watch_replays_what_its_client_has_seen() {
    let bench = with(&[Action::ReplayEvents(2)]).await;
    let now = version(&bench.get(CONFIG_MAPS).await.json());
    let from_now = watch(&format!("resourceVersion={now}"));
    let mut again = bench.watch(&from_now).await;
    bench.config_map("d", json!({})).await;
    assert_eq!(again.shorts(3).await, ["ADDED b", "ADDED c", "ADDED d"]);
    // A watch that begins with the state has seen nothing.
    let mut fresh = bench.watch(&watch("")).await;
    bench.config_map("e", json!({})).await;
    assert_eq!(fresh.shorts(5).await[3..], ["ADDED d", "ADDED e"]);

    let bench = with(&[Action::ReplayEvents(usize::MAX)]).await;
    bench.cluster.compact();
    let now = version(&bench.config_map("d", json!({})).await);
    let mut all = bench.watch(&watch(&format!("resourceVersion={now}"))).await;
    bench.config_map("e", json!({})).await;
    assert_eq!(all.shorts(2).await, ["ADDED d", "ADDED e"]);
}

#[tokio::test(start_paused = true)]
async fn a_request_for_initial_events_is_refused_as_by_an_old_server() {
    let bench = with(&[Action::RefuseWatchList]).await;
    let status = bench.get(&watch(INITIAL)).await.fails(422, "Invalid");
    let cause = &status["details"]["causes"][0];
    assert_eq!(cause["field"], "sendInitialEvents");
    assert_eq!(cause["reason"], "FieldValueForbidden");
    let mut plain = bench.watch(&watch("allowWatchBookmarks=true")).await;
    assert_eq!(plain.short().await, "ADDED a");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_initial_events_is_never_marked() {
    let bench = with(&[Action::OmitInitialEnd]).await;
    for path in [watch(INITIAL), watch("allowWatchBookmarks=true")] {
        let mut watch = bench.watch(&path).await;
        assert_eq!(watch.shorts(3).await, ["ADDED a", "ADDED b", "ADDED c"]);
        for _ in 0..3 {
            // Other bookmarks come as always.
            let (event, bookmark) = watch.event().await;
            assert_eq!(event, "BOOKMARK");
            assert!(bookmark["metadata"]["annotations"].is_null());
        }
    }
    let empty = format!("/api/v1/namespaces/none/configmaps?watch=1&{INITIAL}");
    let mut watch = bench.watch(&empty).await;
    let (_, bookmark) = watch.event().await;
    assert!(bookmark["metadata"]["annotations"].is_null());
}
