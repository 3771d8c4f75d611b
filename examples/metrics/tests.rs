//! The metrics, as Prometheus reads them: over a socket, so time is real here.

use std::net::SocketAddr;
use std::time::Duration;

use fastrand::Rng;
use lariat::cluster::Cluster;
use lariat::cluster::testing::{TestCluster, eventually, pod};
use lariat::{CancellationToken, SharedControllerFactory};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::{Exporter, RETRIES, register, registry};

const TIMEOUT: Duration = Duration::from_secs(30);

struct Bench {
    cluster: TestCluster,
    factory: SharedControllerFactory,
    address: SocketAddr,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Bench {
    async fn new() -> Self {
        let cluster = Cluster::for_test().await;
        let factory = SharedControllerFactory::builder(cluster.client()).build();
        register(&factory, Rng::with_seed(7), Duration::ZERO).expect("registered");
        let exporter = Exporter::bind(([127, 0, 0, 1], 0).into(), registry(&factory)).await;
        let exporter = exporter.expect("bound");
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let address = exporter.address();
        tasks.spawn(exporter.serve(stop.clone()));
        factory.start(2).await.expect("started");
        Self {
            cluster,
            factory,
            address,
            stop,
            tasks,
        }
    }

    async fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.expect("connected");
        let request = format!("{request} HTTP/1.1\r\nHost: lariat\r\nConnection: close\r\n\r\n");
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
        page.contains("content-type: application/openmetrics-text; version=1.0.0"),
        "{page}"
    );
    assert!(page.ends_with("# EOF\n"));
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
async fn other_pages_and_methods_are_refused() {
    let bench = Bench::new().await;
    let missing = bench.ask("GET /").await;
    assert!(missing.starts_with("HTTP/1.1 404 "), "{missing}");
    let posted = bench.ask("POST /metrics").await;
    assert!(posted.starts_with("HTTP/1.1 405 "), "{posted}");
    let nonsense = bench.ask("nonsense").await;
    assert!(nonsense.starts_with("HTTP/1.1 400 "), "{nonsense}");
    let head = bench.ask("HEAD /metrics").await;
    assert!(
        head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
}

#[tokio::test]
async fn the_exporter_ends_although_a_client_holds_its_connection() {
    let bench = Bench::new().await;
    let idle = TcpStream::connect(bench.address).await.unwrap();
    let mut kept = TcpStream::connect(bench.address).await.unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: lariat\r\n\r\n";
    kept.write_all(request.as_bytes()).await.unwrap();
    let mut first = [0; 15];
    kept.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    bench.stop.cancel();
    bench.tasks.close();
    timeout(TIMEOUT, bench.tasks.wait()).await.unwrap();
    assert!(
        TcpStream::connect(bench.address).await.is_err(),
        "the port is free"
    );
    drop(idle);
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error_that_names_it() {
    let bench = Bench::new().await;
    let registry = registry(&bench.factory);
    let error = Exporter::bind(bench.address, registry).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot listen on {}", bench.address)
    );
}
