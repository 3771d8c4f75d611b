//! What is refused, and how.

use std::time::Duration;

use lariat_sql::http::SqlService;
use serde_json::json;

use crate::bench::{Bench, MAPS};

#[tokio::test]
async fn wrong_parameters_are_named() {
    let mut bench = Bench::new().await;
    let client = bench.open().await;
    for (query, field, part) in [
        ("colour=red", "colour", "known are filter"),
        (
            "filter=data.color%3D%3D%3D",
            "filter",
            "the parameter filter",
        ),
        ("filter=data.colour=red", "data.colour", "no indexed field"),
        ("filter=data.size=big", "data.size", "whole number"),
        ("limit=0", "limit", "limit"),
        ("limit=10001", "limit", "at most 10000"),
        ("page=1&limit=2", "page", "contradict"),
        ("limit=2&continue=zzz", "continue", "cursor"),
        ("watch=maybe", "watch", "true or false"),
        ("watch=true&filter=nothing=1", "nothing", "no indexed field"),
        ("watch=true&revision=x", "revision", "revision"),
    ] {
        let answer = client.get(&format!("{MAPS}?{query}")).await;
        let message = answer.refused(400);
        assert!(message.contains(part), "{query}: {message}");
        let cause = &answer.json()["details"]["causes"][0];
        assert_eq!(cause["field"], field, "{query}");
        assert_eq!(answer.header("cache-control"), "no-store");
    }
    let unknown = client.get(&format!("{MAPS}?colour=red")).await;
    assert!(unknown.refused(400).ends_with("revision, watch"));
    for path in ["/v1/kinds?a=b", "/openapi.json?a=b"] {
        client.get(path).await.refused(400);
    }
    let path = format!("{MAPS}/default/a?sort=metadata.name");
    let message = client.get(&path).await.refused(400);
    assert!(message.contains("sort"), "{message}");
}

#[tokio::test]
async fn unknown_kinds_and_paths_name_what_there_is() {
    let mut bench = Bench::new().await;
    let client = bench.open().await;
    let message = client.get("/v1/core/v1/Pod").await.refused(404);
    assert_eq!(
        message,
        "the SQL cache has no core/v1/Pod; it has core/v1/ConfigMap, core/v1/Namespace"
    );
    client.get("/v1/core/v1/Pod/default/a").await.refused(404);
    let message = client.get("/v2").await.refused(404);
    assert!(message.contains("/v1/kinds"), "{message}");
    let answer = client.get("/v1/core/v1/%ff").await;
    assert!(answer.refused(400).contains("path"));
}

#[tokio::test]
async fn a_cache_that_is_not_there_yet_is_to_be_asked_again() {
    let wait_timeout = Duration::from_millis(20);
    let mut bench = Bench::with(|it| it, |sql| sql.wait_timeout(wait_timeout)).await;
    let client = bench.serve(SqlService::open_to_everyone).await;
    for query in ["", "?watch=true"] {
        let answer = client.get(&format!("{MAPS}{query}")).await;
        let message = answer.refused(503);
        assert!(message.contains("not in the SQL cache yet"), "{message}");
        assert_eq!(answer.header("retry-after"), "1");
    }
    let kinds = client.get("/v1/kinds").await.json();
    assert_eq!(kinds["kinds"][0]["state"], "filling");
    bench.fill();
    while client.get(MAPS).await.status != 200 {}
    let answer = client.get(&format!("{MAPS}?revision=999999")).await;
    assert!(answer.refused(504).contains("did not reach 999999"));
    assert_eq!(answer.header("retry-after"), "1");
    assert_eq!(answer.json()["details"]["retryAfterSeconds"], 1);
}

#[tokio::test]
async fn long_url_and_host_of_a_public_site_are_refused() {
    let mut bench = Bench::new().await;
    let client = bench.open().await;
    let long = format!("{MAPS}?search={}", "a".repeat(17_000));
    client.get(&long).await.refused(414);
    for path in ["/", "/v1/kinds", MAPS] {
        let other = client.with("host", "evil.example:80");
        other.get(path).await.refused(403);
        let local = client.with("host", "localhost:80");
        assert_eq!(local.get(path).await.status, 200);
    }
}

#[tokio::test]
async fn a_namespace_label_that_cannot_be_watched_is_refused() {
    let mut bench = Bench::new().await;
    let client = bench.open().await;
    let query = "projectsornamespaces=default";
    let answer = client.get(&format!("{MAPS}?{query}")).await;
    assert_eq!(answer.status, 200);
    // It depends on the labels of namespaces as well.
    assert_eq!(answer.header("etag"), "");
    let answer = client.get(&format!("{MAPS}?{query}&watch")).await;
    assert!(answer.refused(400).contains("name the namespaces"));
}

#[tokio::test]
async fn hostile_values_are_data() {
    let mut bench = Bench::new().await;
    let client = bench.open().await;
    let hostile = "</script><img src=x onerror=alert(1)>\u{2028}\r\nid: 7\n\ndata: x";
    let mut watch = client.watch(&format!("{MAPS}?watch")).await;
    let version = bench.create("evil", json!({"color": hostile})).await;
    loop {
        let event = watch.next().await.expect("an event");
        if event["object"]["metadata"]["name"] == "evil" {
            assert_eq!(event["object"]["data"]["color"], hostile);
            break;
        }
    }
    let list = client.get(&format!("{MAPS}?revision={version}")).await;
    assert_eq!(list.header("x-content-type-options"), "nosniff");
    assert_eq!(list.header("content-type"), "application/json");
    // What is asked for is never markup in an answer, either.
    let answer = client
        .get("/v1/core/v1/%3Cscript%3Ealert(1)%3C%2Fscript%3E")
        .await;
    answer.refused(404);
}
