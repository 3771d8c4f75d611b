//! Metrics for Prometheus, probes for Kubernetes and a console for people, of a handler that is slow and fails often.
//!
//! Run: `cargo run --features console --example metrics` (on an embedded cluster), or with `KUBECONFIG=…` on yours. It
//! serves http://127.0.0.1:7777 until Ctrl-C; `-- 127.0.0.1:0` chooses another port.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use lariat::cluster::Sandbox;
use lariat::cluster::testing::pod;
use lariat::console::{Console, Serve};
use lariat::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

/// Takes up to 0.9 seconds, and fails four times in ten.
async fn work(_: Context<Pod>) -> HandlerResult {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let number = CALLS.fetch_add(7, Ordering::Relaxed) % 10;
    sleep(Duration::from_millis(100) * number as u32).await;
    match number {
        0 | 3 | 6 | 9 => Err("bad luck".into()),
        _ => Ok(Outcome::done()),
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    // Without a log, to keep the output short.
    tracing_subscriber::fmt().with_writer(std::io::sink).init();
    let sandbox = Sandbox::open().await?;
    let builder = SharedControllerFactory::builder(sandbox.client());
    let factory = builder.default_options(sandbox.options()).build();
    let options = HandlerOptions::default().max_retries(3);
    let pods = factory.for_object::<Pod>();
    pods.register_handler("work", options.handler(work))?;
    // Others than this machine may look if a token or `token_reviews` is set.
    let address = std::env::args().nth(1);
    let console = Console::on(address.unwrap_or_else(|| "127.0.0.1:7777".to_owned()));
    let address = factory.serve(console)?.address().to_string();
    factory.start(5).await?;

    println!("▸ twelve Pods are created");
    for number in 0..12 {
        let pod = pod(&format!("web-{number}")).namespace(sandbox.namespace());
        pod.create(&sandbox.client()).await?;
    }
    sleep(Duration::from_secs(4)).await;
    println!("▸ http://{address}/metrics has, among others");
    for line in get(&address, "/metrics").await?.lines() {
        let shown = [
            "workqueue_adds_total{",
            "workqueue_retries_total{",
            "lariat_handler_calls_total{",
        ];
        if shown.iter().any(|name| line.starts_with(name)) && !line.ends_with(" 0") {
            println!("  {line}");
        }
    }
    println!("▸ http://{address}/readyz?verbose");
    println!("{}", get(&address, "/readyz?verbose").await?.trim_end());

    let terminated = lariat::termination();
    println!("▸ http://{address}/ has the console; Ctrl-C ends");
    terminated.await;
    factory.stop().await?;
    Ok(sandbox.close().await?)
}

/// Gets a page, as curl does.
async fn get(address: &str, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let body = answer
        .split_once("\r\n\r\n")
        .map(|(_, body)| body.to_owned());
    Ok(body.unwrap_or_default())
}
