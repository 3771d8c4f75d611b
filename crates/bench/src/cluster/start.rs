//! Starting a cluster, and what it holds with nothing in it, or with pods.

use std::time::Duration;

use anyhow::{Result, ensure};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use lariat_cluster::Cluster;
use tokio::time;
use tower_service::Service;

use super::program::Program;
use super::sizes::sizes;
use super::wire::{Ask, Wire};
use crate::bench::Run;
use crate::meter::{self, Meter};
use crate::report::Row;

/// How long a server may settle before its memory is measured.
const SETTLING: Duration = Duration::from_secs(2);

/// Starts clusters in this process, one after the other: from the first line until one says it is ready.
pub(super) async fn measure(run: &Run) -> Result<Row> {
    let (_, n) = sizes(run);
    let mut row = run.row();
    let meter = Meter::begin();
    let mut times = Vec::new();
    for _ in 0..n {
        let begun = meter::now();
        // A whole server with its socket; the program's start, which includes loading it, is the case `idle`.
        let cluster = Cluster::builder().listen().start().await?;
        let request = Request::get("/readyz").body(Full::<Bytes>::default())?;
        let answer = cluster.service().call(request).await?;
        ensure!(answer.status().is_success(), "it is ready");
        // Before the shutdown, which is part of the wall time of the row, but not of this start.
        times.push((meter::now() - begun).as_secs_f64() * 1e6);
        cluster.shutdown().await;
    }
    (row.wall_s, row.cpu_s) = meter.seconds();
    row.ops_per_s = n as f64 / row.wall_s;
    row.spread(times);
    Ok(row)
}

/// Starts the server, and looks at it after a while: its memory, and the CPU it takes with nothing to do.
pub(super) async fn idle(run: &Run) -> Result<Row> {
    let mut row = run.row();
    let begun = meter::now();
    let server = Program::start(run, &[])?;
    row.wall_s = (meter::now() - begun).as_secs_f64();
    row.ops_per_s = 1.0 / row.wall_s;
    row.before_rss_mb = Some(server.memory_mb().0);
    Wire::connect(server.address)
        .await?
        // One request, so that what the server sets up on its first one is not counted as idle CPU.
        .ask(Ask::get("/api/v1/namespaces"))
        .await?;
    let cpu = server.cpu_seconds();
    time::sleep(SETTLING).await;
    row.cpu_s = server.cpu_seconds() - cpu;
    let (held, peak) = server.memory_mb();
    (row.steady_rss_mb, row.peak_rss_mb) = (Some(held), Some(peak));
    Ok(row)
}

/// Starts the server with pods in it.
pub(super) async fn load(run: &Run) -> Result<Row> {
    let (_, n) = sizes(run);
    let mut row = run.row();
    let begun = meter::now();
    let server = Program::start(run, &["--load", &format!("pods={n}")])?;
    row.wall_s = (meter::now() - begun).as_secs_f64();
    row.cpu_s = server.cpu_seconds();
    row.ops_per_s = n as f64 / row.wall_s;
    row.before_rss_mb = Some(server.memory_mb().0);
    time::sleep(SETTLING).await;
    let (held, peak) = server.memory_mb();
    (row.steady_rss_mb, row.peak_rss_mb) = (Some(held), Some(peak));
    let ask = Ask::get("/api/v1/pods?limit=1");
    let body = Wire::connect(server.address).await?.ask(ask).await?;
    let list: serde_json::Value = serde_json::from_slice(&body)?;
    let rest = list["metadata"]["remainingItemCount"].as_u64();
    ensure!(rest == Some(n as u64 - 1), "all pods are there");
    row.bytes_per_object = Some(held * 1e6 / n as f64);
    Ok(row)
}
