//! The end of a server, and that it keeps no factory alive.

use std::time::Duration;

use lariat_console::{Console, Serve};
use lariat_controller::SharedControllerFactory;
use lariat_testing::http::Client;
use tokio::net::TcpStream;
use tokio::time;

use crate::bench::{Bench, until};

#[tokio::test]
async fn the_server_does_not_keep_its_factory_and_ends_with_it() {
    let Bench {
        cluster,
        factory,
        maps,
        server,
        client,
    } = Bench::new().await;
    assert_eq!(client.get("/livez").await.status, 200);
    drop((factory, maps));
    server.ended().await;
    assert!(TcpStream::connect(server.address()).await.is_err());
    drop(cluster);
}

#[tokio::test]
async fn a_handle_that_is_dropped_does_not_end_the_server() {
    let bench = Bench::new().await;
    // The server of the bench is another one.
    let server = bench.factory.serve(Console::on("127.0.0.1:0")).unwrap();
    let address = server.address();
    drop(server);
    let client = Client::new(address);
    assert_eq!(client.get("/livez").await.status, 200);
    bench.start_and_stop().await;
    until(async || TcpStream::connect(address).await.err()).await;
}

#[tokio::test]
async fn a_shutdown_ends_it_before_its_factory_and_the_port_is_free() {
    let bench = Bench::new().await;
    let mut stream = bench.client.watch("/api/v1/overview?watch=true").await;
    assert!(stream.event().await.is_some());
    // A client that sends nothing does not hold it up for long.
    let idle = TcpStream::connect(bench.server.address()).await.unwrap();
    let ended = time::timeout(Duration::from_secs(20), bench.server.shutdown()).await;
    ended.expect("within the grace period of requests");
    drop(idle);
    bench.server.shutdown().await;
    stream.ends().await;
    let again = bench
        .factory
        .serve(Console::on(bench.server.address().to_string()))
        .unwrap();
    assert_eq!(again.address(), bench.server.address());
    assert_eq!(bench.client.get("/livez").await.status, 200);
}

#[tokio::test]
async fn a_factory_that_is_added_later_is_served_too() {
    let bench = Bench::new().await;
    let other = SharedControllerFactory::builder(bench.cluster.client()).build();
    bench.server.add("other", &other);
    bench.start_and_stop().await;
    assert_eq!(
        bench.client.get("/livez").await.status,
        200,
        "the other one has not ended"
    );
    drop(other);
    bench.server.ended().await;
}

impl Bench {
    async fn start_and_stop(&self) {
        self.idle("log");
        self.start().await;
        self.factory.stop().await.expect("stopped");
    }
}
