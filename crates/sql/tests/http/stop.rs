//! How it ends.

use lariat_sql::http::SqlService;
use serde_json::json;

use crate::bench::{Bench, MAPS};

#[tokio::test]
async fn a_stop_ends_watches_and_the_service() {
    let mut bench = Bench::new().await;
    let client = bench.open().await;
    let version = bench.create("one", json!({})).await;
    let list = client.get(&format!("{MAPS}?revision={version}")).await;
    assert_eq!(list.status, 200);
    let mut watch = client.watch(&format!("{MAPS}?watch")).await;
    bench.create("two", json!({})).await;
    assert_eq!(watch.change().await, "ADDED two");
    bench.stopping.cancel();
    assert_eq!(watch.next().await, None);
    bench
        .served
        .join_next()
        .await
        .expect("one")
        .expect("it ends");
    let refused = tokio::net::TcpStream::connect(client.address).await;
    refused.expect_err("it does not listen any more");
}

#[tokio::test]
async fn watches_end_with_the_cache() {
    let mut bench = Bench::new().await;
    let client = bench.open().await;
    let mut watch = client.watch(&format!("{MAPS}?watch")).await;
    bench.sql.stop().await;
    while watch.next().await.is_some() {}
    // Lists go on with what was written last.
    assert_eq!(client.get(MAPS).await.status, 200);
    // A new watch ends as well: its client is to go elsewhere.
    let mut again = client.watch(&format!("{MAPS}?watch")).await;
    assert_eq!(again.next().await, None);
}

#[tokio::test]
async fn requests_end_before_the_service_does() {
    let mut bench = Bench::new().await;
    bench.fill();
    let serve = |service: SqlService| service.open_to_everyone().requests(1);
    let client = bench.serve(serve).await;
    let version = bench.create("one", json!({})).await;
    let version: u64 = version.parse().expect("a number");
    let waits = format!("{MAPS}?revision={}", version + 1);
    let (asked, ()) = tokio::join!(client.get(&waits), async {
        // Until it is under way.
        while client.get(MAPS).await.status != 429 {}
        bench.stopping.cancel();
        bench.create("two", json!({})).await;
    });
    assert_eq!(asked.names(), ["one", "two"]);
    bench
        .served
        .join_next()
        .await
        .expect("one")
        .expect("it ends");
}
