//! The metrics, as Prometheus reads them: over a socket, so time is real here.

use std::net::SocketAddr;
use std::time::Duration;

use fastrand::Rng;
use lariat::SharedControllerFactory;
use lariat::cluster::Cluster;
use lariat::cluster::testing::{TestCluster, eventually, pod};
use lariat::console::ConsoleServer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{RETRIES, register, serve};

const TIMEOUT: Duration = Duration::from_secs(30);

struct Bench {
    cluster: TestCluster,
    factory: SharedControllerFactory,
    server: ConsoleServer,
}

impl Bench {
    async fn new() -> Self {
        let cluster = Cluster::for_test().await;
        let factory = SharedControllerFactory::builder(cluster.client()).build();
        register(&factory, Rng::with_seed(7), Duration::ZERO).expect("registered");
        let server = serve(&factory, SocketAddr::from(([127, 0, 0, 1], 0))).expect("bound");
        factory.start(2).await.expect("started");
        Self {
            cluster,
            factory,
            server,
        }
    }

    async fn ask(&self, request: &str) -> String {
        let address = self.server.address();
        let mut stream = TcpStream::connect(address).await.expect("connected");
        let request = format!("{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("read");
        answer
    }
}

/// Sums up the series of a page with a name and a label.
fn value(page: &str, name: &str, label: &str) -> f64 {
    let lines = page.lines().filter(|line| {
        let series = line.strip_prefix(name);
        series.is_some_and(|rest| rest.starts_with('{') && rest.contains(label))
    });
    lines
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

#[tokio::test]
async fn names_and_counts_are_those_of_the_factory() {
    let bench = Bench::new().await;
    for number in 0..20 {
        let pod = pod(&format!("web-{number}"));
        pod.create(&bench.cluster.client()).await.unwrap();
    }
    let totals = || bench.factory.status()[0].handlers[0].clone();
    let all_handled = async || {
        let totals = totals();
        let settled = totals.runs - totals.failures + totals.exhausted;
        (settled == 20).then_some(()).ok_or(settled)
    };
    eventually(TIMEOUT, all_handled).await.unwrap();
    let (totals, page) = (totals(), bench.ask("GET /metrics").await);
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(
        page.contains("content-type: text/plain; version=0.0.4"),
        "{page}"
    );
    let failed = value(&page, "lariat_handler_runs_total", "result=\"failed\"");
    let done = value(&page, "lariat_handler_runs_total", "result=\"done\"");
    assert_eq!(failed, totals.failures as f64);
    assert_eq!(done + failed, totals.runs as f64);
    assert!(failed > 0.0, "four calls in ten fail");
    let exhausted = value(&page, "lariat_handler_exhausted_total", "");
    assert_eq!(done + exhausted, 20.0);
    let retries = value(&page, "workqueue_retries_total", "");
    assert_eq!(
        retries,
        failed - exhausted,
        "all failures but the last are tried again"
    );
    assert!(totals.failures <= u64::from(RETRIES + 1) * 20);
    assert_eq!(
        value(&page, "lariat_cache_objects", "kind=\"v1 Pod\""),
        20.0
    );
    let errors = value(
        &page,
        "controller_runtime_reconcile_total",
        "result=\"error\"",
    );
    assert_eq!(errors, failed);
    let timed = value(&page, "lariat_handler_time_seconds_count", "");
    assert_eq!(timed, totals.runs as f64);
}

#[tokio::test]
async fn probes_and_the_console_are_served_beside_the_metrics() {
    let bench = Bench::new().await;
    let ready = bench.ask("GET /readyz").await;
    assert!(ready.starts_with("HTTP/1.1 200 "), "{ready}");
    let console = bench.ask("GET /").await;
    assert!(console.contains("content-type: text/html"), "{console}");
}

#[tokio::test]
async fn the_server_ends_with_the_factory_although_a_client_holds_its_connection() {
    let bench = Bench::new().await;
    let idle = TcpStream::connect(bench.server.address()).await.unwrap();
    bench.factory.stop().await.unwrap();
    timeout(TIMEOUT, bench.server.ended()).await.unwrap();
    let again = TcpStream::connect(bench.server.address()).await;
    assert!(again.is_err(), "the port is free");
    drop(idle);
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error_that_names_it() {
    let bench = Bench::new().await;
    let address = bench.server.address();
    let error = serve(&bench.factory, address).unwrap_err().to_string();
    assert!(
        error.contains(&format!("cannot listen on {address}")),
        "{error}"
    );
}
