//! Watches: how many events reach clients a second.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::task::JoinSet;

use super::objects;
use super::program::Program;
use super::sizes::sizes;
use super::wire::{Ask, Wire};
use super::writes::{HANDS, send};
use crate::bench::Run;
use crate::meter::Meter;
use crate::report::Row;

/// Creates objects while clients watch; one operation is one event at one client.
pub(super) async fn measure(run: &Run) -> Result<Row> {
    let (watchers, n) = sizes(run);
    let server = Program::start(run, &[])?;
    let mut wire = Wire::connect(server.address).await?;
    for ask in objects::namespaces() {
        wire.ask(ask).await?;
    }
    let mut tasks = JoinSet::new();
    for _ in 0..watchers {
        let (wire, body) = watch(server.address).await?;
        tasks.spawn(async move {
            let seen = read(body, n).await;
            // Moved into the task, as the connection ends with it.
            drop(wire);
            seen
        });
    }
    let mut row = run.row();
    let (meter, cpu) = (Meter::begin(), server.cpu_seconds());
    let make = Arc::new(|number| objects::creation(&objects::config_map(number, 0)));
    send(server.address, HANDS, n, make).await?;
    while let Some(joined) = tasks.join_next().await {
        joined.context("a watcher ends")??;
    }
    (row.wall_s, _) = meter.seconds();
    row.cpu_s = server.cpu_seconds() - cpu;
    row.n = n * watchers;
    row.ops_per_s = row.n as f64 / row.wall_s;
    let (held, peak) = server.memory_mb();
    (row.steady_rss_mb, row.peak_rss_mb) = (Some(held), Some(peak));
    Ok(row)
}

/// Opens a watch that begins now.
async fn watch(address: SocketAddr) -> Result<(Wire, Incoming)> {
    let mut wire = Wire::connect(address).await?;
    let ask = Ask::get(&format!("{}?watch=1", objects::config_maps()));
    let body = wire.open(ask).await?;
    Ok((wire, body))
}

/// Reads so many events.
async fn read(mut body: Incoming, events: usize) -> Result<()> {
    let mut seen = 0;
    while seen < events {
        let Some(frame) = body.frame().await else {
            bail!("a watch ended after {seen} events");
        };
        if let Some(data) = frame?.data_ref() {
            // Counted as lines, unparsed: the readers share the machine with the server that is measured.
            seen += memchr::memchr_iter(b'\n', data).count();
        }
    }
    Ok(())
}
