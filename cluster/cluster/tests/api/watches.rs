//! Watches.

use crate::bench::{Bench, CONFIG_MAPS, text, version};
use serde_json::json;
use tokio::time::{Duration, Instant, sleep, timeout};

fn watch(query: &str) -> String {
    format!("{CONFIG_MAPS}?watch=1&{query}")
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_version_reports_every_later_change_in_order() {
    let bench = Bench::new().await;
    bench.config_map("before", json!({})).await;
    let list = version(&bench.get(CONFIG_MAPS).await.json());
    bench.config_map("a", json!({})).await;
    bench
        .merge(&format!("{CONFIG_MAPS}/a"), json!({"data": {"a": "2"}}))
        .await;
    let mut watch = bench
        .watch(&watch(&format!("resourceVersion={list}")))
        .await;
    bench.delete(&format!("{CONFIG_MAPS}/a")).await;
    let mut last = list;
    for (expected, data) in [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")] {
        let (event, object) = watch.event().await;
        assert_eq!((&*event, text(&object, "/data/a")), (expected, data));
        assert_eq!(object["kind"], "ConfigMap");
        assert!(
            version(&object) > last,
            "a deletion has a version of its own"
        );
        last = version(&object);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_version_begins_with_what_exists_in_key_order() {
    let bench = Bench::new().await;
    bench.config_map("b", json!({})).await;
    bench.config_map("a", json!({})).await;
    let mut watch = bench.watch(&watch("")).await;
    bench.config_map("c", json!({})).await;
    assert_eq!(watch.shorts(3).await, ["ADDED a", "ADDED b", "ADDED c"]);
}

#[tokio::test(start_paused = true)]
async fn initial_events_end_with_a_marked_bookmark() {
    let bench = Bench::new().await;
    bench.config_map("a", json!({})).await;
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    for path in [
        watch(query),
        watch("resourceVersion=0&allowWatchBookmarks=true"),
    ] {
        let mut watch = bench.watch(&path).await;
        assert_eq!(watch.short().await, "ADDED a");
        let (event, object) = watch.event().await;
        assert_eq!(
            (&*event, &object["kind"]),
            ("BOOKMARK", &json!("ConfigMap"))
        );
        assert_eq!(
            object["metadata"]["annotations"]["k8s.io/initial-events-end"],
            "true"
        );
    }
    let mut empty = bench
        .watch(&format!(
            "/api/v1/namespaces/none/configmaps?watch=1&{query}"
        ))
        .await;
    assert_eq!(empty.short().await, "BOOKMARK -");
    bench
        .get(&watch("sendInitialEvents=true"))
        .await
        .fails(422, "Invalid");
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_every_minute_and_before_the_end_with_the_newest_version() {
    let bench = Bench::new().await;
    let start = Instant::now();
    let mut watch = bench
        .watch(&watch("allowWatchBookmarks=true&timeoutSeconds=150"))
        .await;
    assert_eq!(watch.short().await, "BOOKMARK -");
    let mut at = Vec::new();
    bench
        .post(
            "/api/v1/namespaces/default/secrets",
            &json!({"metadata": {"name": "s"}}),
        )
        .await;
    let newest = version(&bench.get("/api/v1/secrets").await.json());
    while let Some(line) = watch.line().await.unwrap() {
        assert!(line.contains("BOOKMARK"));
        // A change of another kind moves the bookmark too.
        assert!(line.contains(&format!("\"{newest}\"")), "{line}");
        at.push(start.elapsed().as_secs());
    }
    assert_eq!(at, [1, 61, 121, 148]);
    assert_eq!(start.elapsed(), Duration::from_secs(150));
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_of_a_quiet_kind_keeps_up_with_the_others() {
    let bench = Bench::new().await;
    let mut watch = bench.watch(&watch("allowWatchBookmarks=true")).await;
    assert_eq!(
        watch.event().await.0,
        "BOOKMARK",
        "the end of the initial state"
    );
    let write = async {
        sleep(Duration::from_millis(500)).await;
        let secret = json!({"metadata": {"name": "a"}});
        bench
            .post("/api/v1/namespaces/default/secrets", &secret)
            .await
            .json()
    };
    // The watch waits while another kind is written.
    let ((event, bookmark), secret) = tokio::join!(watch.event(), write);
    assert_eq!(event, "BOOKMARK");
    assert_eq!(version(&bookmark), version(&secret));
}

#[tokio::test(start_paused = true)]
async fn objects_enter_and_leave_a_selection() {
    let bench = Bench::new().await;
    bench.config_map("a", json!({"app": "x"})).await;
    let mut watch = bench.watch(&watch("labelSelector=app%3Dx")).await;
    assert_eq!(watch.short().await, "ADDED a");
    let path = format!("{CONFIG_MAPS}/a");
    let left = bench.merge(
        &path,
        json!({"metadata": {"labels": {"app": "y"}}, "data": {"a": "2"}}),
    );
    let left = version(&left.await.json());
    let (event, object) = watch.event().await;
    assert_eq!(
        (&*event, text(&object, "/data/a")),
        ("DELETED", "1"),
        "the old body …"
    );
    assert_eq!(version(&object), left, "… under the new version");
    bench.merge(&path, json!({"data": {"a": "3"}})).await;
    bench
        .merge(&path, json!({"metadata": {"labels": {"app": "x"}}}))
        .await;
    bench.delete(&path).await;
    assert_eq!(watch.shorts(2).await, ["ADDED a", "DELETED a"]);
}

#[tokio::test(start_paused = true)]
async fn what_changes_nothing_is_silent() {
    let bench = Bench::new().await;
    let first = bench.config_map("a", json!({})).await;
    let query = format!("resourceVersion={}", version(&first));
    let mut watch = bench.watch(&watch(&query)).await;
    let path = format!("{CONFIG_MAPS}/a");
    bench.put(&path, &first).await;
    bench.merge(&path, json!({})).await;
    bench
        .merge(&format!("{path}?dryRun=All"), json!({"data": {"a": "2"}}))
        .await;
    bench
        .post(CONFIG_MAPS, &json!({"metadata": {"name": "a"}}))
        .await;
    assert!(
        timeout(Duration::from_secs(60), watch.line())
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_is_an_error_event_and_the_end() {
    let bench = Bench::with_history(2).await;
    let first = version(&bench.config_map("a", json!({})).await);
    for name in ["b", "c", "d"] {
        bench.config_map(name, json!({})).await;
    }
    let mut expired = bench
        .watch(&watch(&format!("resourceVersion={first}")))
        .await;
    let (event, status) = expired.event().await;
    assert_eq!(
        (&*event, &status["code"], &status["reason"]),
        ("ERROR", &json!(410), &json!("Expired"))
    );
    let oldest = first + 1;
    assert_eq!(
        status["message"],
        format!("too old resource version: {first} ({oldest})")
    );
    assert_eq!(expired.line().await.unwrap(), None);
    bench.get(&watch("resourceVersion=x")).await.fails(500, "");
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_falls_behind_the_history_has_to_come_again() {
    let bench = Bench::with_history(3).await;
    let mut watch = bench.watch(&watch("")).await;
    for number in 0..10 {
        bench.config_map(&format!("n{number}"), json!({})).await;
    }
    assert_eq!(watch.line().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_future_version_is_waited_for_in_silence() {
    let bench = Bench::new().await;
    let now = version(&bench.get(CONFIG_MAPS).await.json());
    let mut watch = bench
        .watch(&watch(&format!("resourceVersion={}", now + 1)))
        .await;
    bench.config_map("a", json!({})).await;
    bench.config_map("b", json!({})).await;
    assert_eq!(watch.short().await, "ADDED b");
}

#[tokio::test(start_paused = true)]
async fn watches_end_cleanly_or_are_cut_in_the_middle_of_a_line() {
    let bench = Bench::new().await;
    let mut first = bench.watch(&watch("")).await;
    let mut second = bench.watch(&watch("timeoutSeconds=5")).await;
    bench.cluster.end_watches();
    assert_eq!(first.line().await.unwrap(), None);
    assert_eq!(second.line().await.unwrap(), None);

    let mut third = bench.watch(&watch("")).await;
    bench.config_map("a", json!({})).await;
    assert_eq!(third.short().await, "ADDED a");
    bench.cluster.cut_watches();
    assert!(third.line().await.is_err());

    let start = Instant::now();
    let mut fourth = bench
        .watch(&watch("resourceVersion=100000&timeoutSeconds=5"))
        .await;
    assert_eq!(fourth.line().await.unwrap(), None);
    assert_eq!(start.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn many_watchers_all_see_everything() {
    let bench = Bench::new().await;
    let mut watches = Vec::new();
    for _ in 0..100 {
        watches.push(bench.watch(&watch("")).await);
    }
    for number in 0..20 {
        bench.config_map(&format!("n{number:02}"), json!({})).await;
    }
    let expected: Vec<String> = (0..20)
        .map(|number| format!("ADDED n{number:02}"))
        .collect();
    for watch in &mut watches {
        assert_eq!(watch.shorts(20).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stopped_cluster_ends_its_watches() {
    let bench = Bench::new().await;
    let mut watch = bench.watch(&watch("")).await;
    sleep(Duration::from_secs(1)).await;
    bench.cluster.shutdown().await;
    assert_eq!(watch.line().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_that_has_seen_everything_outlives_a_compaction() {
    let bench = Bench::new().await;
    let before = version(&bench.config_map("a", json!({})).await);
    let secrets = "/api/v1/namespaces/default/secrets";
    let query = format!("{secrets}?watch=1&resourceVersion={before}");
    let mut watch = bench.watch(&query).await;
    bench.config_map("b", json!({})).await;
    bench.cluster.compact();
    bench
        .post(secrets, &json!({"metadata": {"name": "s"}}))
        .await;
    assert_eq!(watch.short().await, "ADDED s");
    // A watch that begins only now has to list.
    let mut late = bench.watch(&query).await;
    assert_eq!(late.event().await.1["code"], 410);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_defined_again_has_no_history_from_before() {
    use crate::bench::DEFINITIONS;
    use crate::kinds::{WIDGETS, definition, widget};
    let bench = Bench::new().await;
    let widgets = definition("widgets", "Widget", "Namespaced");
    bench.define(&widgets).await;
    let old = version(&bench.post(WIDGETS, &widget("a")).await.json());
    let query = format!("{WIDGETS}?watch=1&resourceVersion={old}");
    let mut open = bench.watch(&query).await;
    bench
        .delete(&format!("{DEFINITIONS}/widgets.demo.dev"))
        .await;
    assert_eq!(open.short().await, "DELETED a");
    sleep(Duration::from_secs(5)).await;
    bench.define(&widgets).await;
    let mut watch = bench.watch(&query).await;
    assert_eq!(watch.event().await.1["code"], 410);
}

#[tokio::test(start_paused = true)]
async fn a_watch_with_many_events_ends_in_time() {
    let bench = Bench::new().await;
    let mut watch = bench
        .watch(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1"))
        .await;
    sleep(Duration::from_secs(2)).await;
    bench.config_map("late", json!({})).await;
    assert_eq!(watch.line().await.unwrap(), None);
}
