//! Watches as server-sent events.

use std::time::Duration;

use lariat_sql::http::SqlService;
use lariat_testing::http::Client;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::bench::{Bench, MAPS};

/// Returns the revision of a list that has a version.
async fn revision(client: &Client, version: &str) -> String {
    let list = client.get(&format!("{MAPS}?revision={version}")).await;
    let list = list.json();
    list["revision"].as_str().expect("a revision").to_owned()
}

#[tokio::test]
async fn changes_are_sent_from_the_revision_of_a_list_on() {
    let mut bench = Bench::new().await;
    let client = bench.open().await;
    let version = bench.create("one", json!({"color": "red"})).await;
    let since = revision(&client, &version).await;
    let url = format!("{MAPS}?watch=true&filter=data.color=red&sort=data.size&revision={since}");
    let client = client.with("accept", "text/event-stream");
    let mut watch = client.watch(&url).await;
    assert_eq!(watch.status, 200);
    assert_eq!(watch.headers["content-type"], "text/event-stream");
    assert_eq!(watch.headers["cache-control"], "no-store");
    bench.patch("one", json!({"data": {"size": "1"}})).await;
    assert_eq!(watch.change().await, "MODIFIED one");
    bench.patch("one", json!({"data": {"color": "blue"}})).await;
    assert_eq!(watch.change().await, "DELETED one");
    bench.create("two", json!({"color": "red"})).await;
    assert_eq!(watch.change().await, "ADDED two");
    bench.delete("two").await;
    assert_eq!(watch.change().await, "DELETED two");
}

#[tokio::test]
async fn a_disconnected_client_resumes_after_its_last_event() {
    let mut bench = Bench::new().await;
    let client = bench.open().await;
    let version = bench.create("zero", json!({})).await;
    let since = revision(&client, &version).await;
    let url = format!("{MAPS}?watch&filter=data.color=red&revision={since}");
    let mut watch = client.watch(&url).await;
    for name in ["a", "b"] {
        bench.create(name, json!({"color": "red"})).await;
        assert_eq!(watch.change().await, format!("ADDED {name}"));
    }
    let id = watch.id.clone();
    drop(watch);
    bench.create("c", json!({"color": "red"})).await;
    // The header counts rather than the parameter, which a browser keeps.
    let mut again = client.with("last-event-id", &id).watch(&url).await;
    assert_eq!(again.change().await, "ADDED c");
    let bad = client.with("last-event-id", "yesterday").get(&url).await;
    assert!(bad.refused(400).contains("Last-Event-ID"));
}

#[tokio::test]
async fn a_revision_that_is_too_old_gets_410() {
    let mut bench = Bench::with(|it| it, |sql| sql.history(2)).await;
    let client = bench.open().await;
    let version = bench.create("zero", json!({})).await;
    let since = revision(&client, &version).await;
    for size in 0..4 {
        let patch = json!({"data": {"size": size.to_string()}});
        let version = bench.patch("zero", patch).await;
        revision(&client, &version).await;
    }
    for since in [since.as_str(), &version] {
        let answer = client.get(&format!("{MAPS}?watch&revision={since}")).await;
        assert!(answer.refused(410).contains("list again"));
        assert_eq!(answer.json()["reason"], "Expired");
        let again = client.with("last-event-id", since);
        again.get(&format!("{MAPS}?watch")).await.refused(410);
    }
}

#[tokio::test]
async fn a_watch_says_that_it_is_alive_and_from_where_to_go_on() {
    let mut bench = Bench::new().await;
    bench.fill();
    let often = Duration::from_millis(5);
    let client = bench.serve(|it| it.open_to_everyone().heartbeat(often));
    let client = client.await;
    let mut watch = client
        .watch(&format!("{MAPS}?watch&filter=data.color=red"))
        .await;
    let first = watch.block().await.expect("a block");
    assert!(first.starts_with(": alive\nretry: 1000\nid: "), "{first}");
    bench.create("blue", json!({"color": "blue"})).await;
    // The id moves on past what is not seen.
    while watch.block().await.expect("a block") == first {}
}

#[tokio::test]
async fn a_watch_needs_a_client_that_takes_events() {
    let mut bench = Bench::new().await;
    let client = bench.open().await;
    let url = format!("{MAPS}?watch=true");
    let json = client.with("accept", "application/json");
    assert!(json.get(&url).await.refused(406).contains("event-stream"));
    let many = client.with("accept", "application/json, text/event-stream;q=0.5");
    assert_eq!(many.watch(&url).await.status, 200);
}

#[tokio::test]
async fn a_client_that_disconnects_makes_room_immediately() {
    let mut bench = Bench::new().await;
    bench.fill();
    let client = bench.serve(|it| it.open_to_everyone().watches(1)).await;
    let url = format!("{MAPS}?watch");
    let first = client.watch(&url).await;
    assert_eq!(first.status, 200);
    let refused = client.get(&url).await;
    assert!(
        refused
            .refused(429)
            .contains("limit of 1 concurrent watches")
    );
    assert_eq!(refused.header("retry-after"), "1");
    // There is no change and, for long, no heartbeat: the end of the connection is all there is.
    drop(first);
    let there = async { while client.watch(&url).await.status != 200 {} };
    let limit = Duration::from_secs(10);
    tokio::time::timeout(limit, there).await.expect("room");
}

#[tokio::test]
async fn a_reader_that_is_too_slow_gets_an_error_to_list_again() {
    let mut bench = Bench::with(|it| it, |sql| sql.history(3)).await;
    let client = bench.open().await;
    let version = bench.create("big", json!({"color": "red"})).await;
    let since = revision(&client, &version).await;
    let mut slow = client
        .watch(&format!("{MAPS}?watch&revision={since}"))
        .await;
    // More than the sockets have room for, so that the service has to wait for the reader.
    let text = "x".repeat(900_000);
    for size in 0..16 {
        let patch = json!({"data": {"text": text, "size": size.to_string()}});
        let version = bench.patch("big", patch).await;
        revision(&client, &version).await;
    }
    let last = loop {
        let event = slow.next().await.expect("an error at the end");
        if event["type"] == "ERROR" {
            break event;
        }
    };
    assert_eq!(last["object"]["code"], 410);
    assert_eq!(slow.next().await, None);
}

#[tokio::test]
async fn an_unread_list_takes_room_until_its_client_disconnects() {
    let mut bench = Bench::new().await;
    bench.fill();
    let serve = |service: SqlService| service.open_to_everyone().requests(1);
    let client = bench.serve(serve).await;
    let text = "x".repeat(900_000);
    let mut version = String::new();
    for number in 0..16 {
        let name = format!("big-{number}");
        version = bench.create(&name, json!({"text": text})).await;
    }
    let list = client.get(&format!("{MAPS}?revision={version}")).await;
    assert_eq!(list.names().len(), 16);
    let mut slow = TcpStream::connect(client.address).await.expect("connected");
    let request = format!("GET {MAPS} HTTP/1.1\r\nhost: {}\r\n\r\n", client.address);
    slow.write_all(request.as_bytes()).await.expect("sent");
    slow.readable().await.expect("an answer");
    let refused = client.get(MAPS).await;
    assert!(
        refused
            .refused(429)
            .contains("limit of 1 concurrent requests")
    );
    drop(slow);
    let limit = Duration::from_secs(10);
    let there = async { while client.get(MAPS).await.status != 200 {} };
    tokio::time::timeout(limit, there).await.expect("room");
}
