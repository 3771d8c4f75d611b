//! Faults of what is sent: slow, cut off, spoilt, doubled, left out.

use std::time::Duration;

use crate::bench::{Bench, CONFIG_MAPS, text, version};
use http::StatusCode;
use lariat_cluster::faults::{Action, Rule};
use serde_json::json;
use tokio::time::{Instant, timeout};

async fn with(action: Action) -> Bench {
    let bench = Bench::new().await;
    for name in ["a", "b"] {
        bench.config_map(name, json!({})).await;
    }
    bench.cluster.faults().add(Rule::new(action));
    bench
}

async fn now(bench: &Bench) -> u64 {
    version(&bench.get(CONFIG_MAPS).await.json())
}

#[tokio::test(start_paused = true)]
async fn a_narrow_line_takes_its_time_for_lists_and_watches() {
    let bench = with(Action::Bandwidth(100)).await;
    let start = Instant::now();
    let list = bench.get(CONFIG_MAPS).await;
    assert_eq!(list.json()["items"].as_array().map(Vec::len), Some(2));
    let expected = list.bytes.len() as u64 / 100;
    let taken = start.elapsed().as_secs();
    assert!(
        (expected..=expected + 1).contains(&taken),
        "{taken} s, not {expected} s"
    );

    let start = Instant::now();
    let mut watch = bench.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    assert_eq!(watch.short().await, "ADDED a");
    assert!(start.elapsed() > Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn bodies_are_cut_off_garbled_or_not_of_the_api() {
    let bench = with(Action::Truncate(20)).await;
    let answer = bench.get(CONFIG_MAPS).await;
    assert_eq!((answer.code, answer.bytes.len()), (StatusCode::OK, 20));
    assert!(answer.text.starts_with("{\"kind\""));
    let mut watch = bench.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    assert_eq!(watch.line().await.unwrap(), None);
    assert_eq!(watch.rest().len(), 20);

    let bench = with(Action::Garble).await;
    let object = json!({"metadata": {"name": "c"}});
    let answer = bench.post(CONFIG_MAPS, &object).await;
    assert_eq!(answer.code, StatusCode::CREATED);
    assert_eq!(answer.headers["content-type"], "application/json");
    assert!(serde_json::from_slice::<serde_json::Value>(&answer.bytes).is_err());
    bench.cluster.faults().clear();
    assert_eq!(bench.names(CONFIG_MAPS).await, ["a", "b", "c"]);

    let bench = with(Action::Html).await;
    let answer = bench.post(CONFIG_MAPS, &object).await;
    assert_eq!(answer.code, StatusCode::OK);
    assert_eq!(answer.headers["content-type"], "text/html");
    bench.cluster.faults().clear();
    assert_eq!(bench.names(CONFIG_MAPS).await, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn every_event_comes_twice() {
    let bench = with(Action::DuplicateEvents).await;
    let query = format!(
        "{CONFIG_MAPS}?watch=1&resourceVersion={}",
        now(&bench).await
    );
    let mut watch = bench.watch(&query).await;
    bench.config_map("c", json!({})).await;
    bench.delete(&format!("{CONFIG_MAPS}/c")).await;
    let events = ["ADDED c", "ADDED c", "DELETED c", "DELETED c"];
    assert_eq!(watch.shorts(4).await, events);
}

#[tokio::test(start_paused = true)]
async fn a_watch_leaves_out_the_states_between_its_version_and_the_present() {
    let bench = with(Action::SkipStates).await;
    let from = now(&bench).await;
    let path = |name: &str| format!("{CONFIG_MAPS}/{name}");
    for value in ["2", "3", "4"] {
        bench.merge(&path("a"), json!({"data": {"a": value}})).await;
    }
    // It comes and goes; another comes, goes and comes again; the third is replaced.
    bench.config_map("c", json!({})).await;
    bench.delete(&path("c")).await;
    bench.config_map("d", json!({})).await;
    bench.merge(&path("d"), json!({"data": {"a": "2"}})).await;
    bench.delete(&path("b")).await;
    bench.config_map("b", json!({})).await;

    let query = format!("{CONFIG_MAPS}?watch=1&resourceVersion={from}");
    let mut watch = bench.watch(&query).await;
    let (event, object) = watch.event().await;
    assert_eq!((&*event, text(&object, "/data/a")), ("MODIFIED", "4"));
    assert_eq!(watch.shorts(3).await, ["ADDED d", "DELETED b", "ADDED b"]);
    // From then on nothing is left out.
    for value in ["5", "6"] {
        bench.merge(&path("a"), json!({"data": {"a": value}})).await;
    }
    assert_eq!(watch.shorts(2).await, ["MODIFIED a", "MODIFIED a"]);
    // An object that enters a selection in between and leaves it again was never there.
    let from = now(&bench).await;
    let label = |value| json!({"metadata": {"labels": {"in": value}}});
    bench.merge(&path("a"), label(json!("yes"))).await;
    bench.merge(&path("a"), label(json!(null))).await;
    bench.merge(&path("b"), label(json!("yes"))).await;
    let query = format!("{CONFIG_MAPS}?watch=1&labelSelector=in&resourceVersion={from}");
    let mut selected = bench.watch(&query).await;
    assert_eq!(selected.short().await, "ADDED b");
}

#[tokio::test(start_paused = true)]
async fn a_frozen_resource_stays_as_it_was_for_every_read() {
    let bench = with(Action::Freeze).await;
    let frozen = now(&bench).await;
    let latest = version(&bench.config_map("c", json!({})).await);
    bench.delete(&format!("{CONFIG_MAPS}/a")).await;
    for query in ["", "?resourceVersion=0", "?limit=500"] {
        let path = format!("{CONFIG_MAPS}{query}");
        assert_eq!(bench.names(&path).await, ["a", "b"], "{query}");
        assert_eq!(version(&bench.get(&path).await.json()), frozen);
    }
    assert_eq!(
        bench.get(&format!("{CONFIG_MAPS}/a")).await.code,
        StatusCode::OK
    );
    bench
        .get(&format!("{CONFIG_MAPS}/c"))
        .await
        .fails(404, "NotFound");
    // A page is a page of the frozen state.
    let page = bench.get(&format!("{CONFIG_MAPS}?limit=1")).await.json();
    let next = text(&page, "/metadata/continue");
    assert_eq!(
        bench.names(&format!("{CONFIG_MAPS}?continue={next}")).await,
        ["b"]
    );

    let query = format!("{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true");
    let mut watch = bench.watch(&query).await;
    assert_eq!(watch.shorts(2).await, ["ADDED a", "ADDED b"]);
    bench.config_map("d", json!({})).await;
    for _ in 0..3 {
        let (event, bookmark) = watch.event().await;
        assert_eq!((&*event, version(&bookmark)), ("BOOKMARK", frozen));
    }
    let query = format!("{CONFIG_MAPS}?watch=1&resourceVersion={latest}");
    let mut later = bench.watch(&query).await;
    assert!(
        timeout(Duration::from_secs(60), later.line())
            .await
            .is_err()
    );
    bench.cluster.faults().clear();
    assert_eq!(bench.names(CONFIG_MAPS).await, ["b", "c", "d"]);
}
