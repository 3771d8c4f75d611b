//! Serves the metrics of controllers for Prometheus, probes and a console; the handler is slow and fails often.
//!
//! Run: `cargo run --example metrics -- --listen 127.0.0.1:7777` (on the embedded cluster), or with `KUBECONFIG=…` on
//! your own cluster. With `-- --watch` it serves until Ctrl-C: `curl 127.0.0.1:7777/metrics`, or open
//! http://127.0.0.1:7777 in a browser.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context as _, Result};
use lariat::cluster::testing::pod;
use lariat::prelude::*;
use lariat::{FactoryBuilder, Selection, cache::KindOptions};
use lariat_examples::metrics;
use lariat_examples::{About, Flag, Options, Stage, TextTable, perform_with};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

const ABOUT: About = About {
    name: "metrics",
    what: "metrics of queues, handlers and caches for Prometheus, probes and a console",
    flags: &[
        Flag {
            name: "listen",
            default: "127.0.0.1:7777",
            help: "the address to serve on; port 0 is any",
        },
        Flag {
            name: "seed",
            default: "random",
            help: "the seed that decides which calls fail",
        },
    ],
    check: |options| listen(options).and(options.dice("seed")).map(drop),
};

/// The original's slowest call.
const LONGEST: Duration = Duration::from_millis(900);
const PODS: usize = 12;

/// Series to show, and their meaning.
const METRICS_TO_SHOW: [(&str, &str); 8] = [
    ("workqueue_adds_total", "times a pod became due"),
    ("workqueue_retries_total", "failures that were retried"),
    (
        "workqueue_queue_duration_seconds_sum",
        "seconds pods were queued",
    ),
    (
        "workqueue_work_duration_seconds_sum",
        "seconds pods were processed",
    ),
    ("lariat_handler_runs_total", "calls, by how they ended"),
    (
        "lariat_handler_exhausted_total",
        "pods whose retries were exhausted",
    ),
    ("lariat_cache_objects", "pods in the cache"),
    ("lariat_reflector_watches_total", "watches opened"),
];

#[tokio::main]
async fn main() -> ExitCode {
    let address = OnceLock::new();
    let set_up = async |stage: &Stage| set_up(stage, &address).await;
    let story = async |stage: &Stage| story(stage, &address).await;
    perform_with(ABOUT, configure, set_up, story).await
}

fn configure(_: &Options, namespace: &str, builder: FactoryBuilder) -> Result<FactoryBuilder> {
    let ours = Selection::all().in_namespaces([namespace]);
    let cache = KindOptions::default().selection(ours);
    let pods = ControllerOptions::default().workers(5).cache(cache);
    Ok(builder.kind_options(Gvk::new("", "v1", "Pod"), pods))
}

fn listen(options: &Options) -> Result<SocketAddr> {
    options.value("listen")
}

async fn set_up(stage: &Stage, bound: &OnceLock<SocketAddr>) -> Result<()> {
    metrics::register(&stage.factory, stage.options.dice("seed")?, LONGEST)?;
    let server = metrics::serve(&stage.factory, listen(&stage.options)?)?;
    let address = *bound.get_or_init(|| server.address());
    stage.step(format_args!(
        "metrics are at http://{address}/metrics, the console is at http://{address}/"
    ));
    stage.suggest("k create deployment web --image registry.k8s.io/pause:3.10 --replicas 12");
    stage.suggest(format_args!("curl http://{address}/metrics"));
    stage.suggest(format_args!("curl http://{address}/readyz?verbose"));
    Ok(())
}

async fn story(stage: &Stage, bound: &OnceLock<SocketAddr>) -> Result<()> {
    stage.step(format_args!(
        "{PODS} pods are created; a call for one takes up to {LONGEST:?}, and four in ten fail"
    ));
    for number in 0..PODS {
        let pod = pod(&format!("web-{number}")).namespace(&stage.namespace);
        let pod = pod.set("/spec/containers/0/image", "registry.k8s.io/pause:3.10");
        pod.create(&stage.client).await?;
    }
    sleep(Duration::from_secs(5)).await;
    stage.step("after five seconds Prometheus would get, among others");
    let address = *bound.get().context("nothing is served")?;
    print(&get(address, "/metrics").await?);
    stage.step("and Kubernetes would read, as the answer to a probe");
    let ready = get(address, "/readyz?verbose").await?;
    println!(
        "{}",
        ready.split("\r\n\r\n").nth(1).unwrap_or(&ready).trim_end()
    );
    Ok(())
}

/// Requests a page; returns the answer with its head.
async fn get(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

fn print(page: &str) {
    let mut table = TextTable::new(&["value", "series", "result", "what it is"]);
    for (name, what) in METRICS_TO_SHOW {
        for line in page
            .lines()
            .filter(|line| line.starts_with(&format!("{name}{{")))
        {
            let value = line.rsplit(' ').next().unwrap_or_default();
            let rounded = value.parse::<f64>().map(|value| format!("{value:.2}"));
            let value = match rounded {
                Ok(rounded) if value.contains('.') => rounded,
                _ => value.to_owned(),
            };
            let result = line
                .split("result=\"")
                .nth(1)
                .and_then(|rest| rest.split('"').next());
            if result.is_none() || value != "0" {
                let result = result.unwrap_or_default();
                table.row([&value, name, result, what].map(str::to_owned));
            }
        }
    }
    table.print();
}
