//! What bounds the server's memory: its history of large objects, and what watchers leave unread.

use std::time::Duration;

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tokio::time;

use super::objects;
use super::program::Program;
use super::sizes::sizes;
use super::wire::{Ask, Wire};
use super::writes::{HANDS, Make, timed};
use crate::bench::Run;
use crate::report::Row;

/// How many objects are changed, one after the other.
const OBJECTS: usize = 16;

/// The size of objects that are nearly as large as an object may be.
const LARGE: usize = 900_000;

/// The size of objects that are watched and not read.
const UNREAD: usize = 20_000;

/// The time after which a watcher that does not read must have been cut off.
const MINUTE: Duration = Duration::from_secs(60);

/// How long a server may settle before its memory is measured.
const SETTLING: Duration = Duration::from_secs(2);

/// Changes large objects, which no one watches.
pub(super) async fn churn(run: &Run) -> Result<Row> {
    let (connections, n) = sizes(run);
    let server = Program::start(run, &[])?;
    stage(&server, LARGE).await?;
    let mut row = change(run, &server, connections, n).await?;
    time::sleep(SETTLING).await;
    let (held, peak) = server.memory_mb();
    // The peak is of the whole process, so it includes the creation of the objects.
    (row.steady_rss_mb, row.peak_rss_mb) = (Some(held), Some(peak));
    Ok(row)
}

/// Changes objects while watchers do not read, and measures a minute later.
pub(super) async fn unread(run: &Run) -> Result<Row> {
    let (watchers, n) = sizes(run);
    let server = Program::start(run, &["--admin"])?;
    stage(&server, UNREAD).await?;
    let mut open = Vec::new();
    for _ in 0..watchers {
        let mut wire = Wire::connect(server.address).await?;
        let ask = Ask::get(&format!("{}?watch=1", objects::config_maps()));
        let unread = wire.open(ask).await?;
        // Kept: a body that is dropped would close the connection.
        open.push((wire, unread));
    }
    let row = change(run, &server, HANDS, n).await?;
    time::sleep(MINUTE).await;
    let mut wire = Wire::connect(server.address).await?;
    let status = wire.ask(Ask::get("/lariat/status")).await?;
    let status: Value = serde_json::from_slice(&status)?;
    // Otherwise the memory would be that of watchers that still wait to be cut off.
    ensure!(status["watches"] == 0, "watches are open: {status}");
    let (held, peak) = server.memory_mb();
    Ok(Row {
        steady_rss_mb: Some(held),
        peak_rss_mb: Some(peak),
        ..row
    })
}

/// Creates the objects.
async fn stage(server: &Program, size: usize) -> Result<()> {
    let mut wire = Wire::connect(server.address).await?;
    for ask in objects::namespaces() {
        wire.ask(ask).await?;
    }
    for number in 0..OBJECTS {
        let mut object = objects::config_map(number, 0);
        object["data"]["large"] = "x".repeat(size).into();
        wire.ask(objects::creation(&object)).await?;
    }
    Ok(())
}

/// Changes a value of each object in turn; neither requests nor answers are large.
async fn change(run: &Run, server: &Program, connections: usize, n: usize) -> Result<Row> {
    let make: Make = std::sync::Arc::new(|number| {
        let patch = json!({"data": {"round": number.to_string()}});
        let path = objects::path(number % OBJECTS);
        Ask {
            media: "application/merge-patch+json",
            // A whole answer would measure how fast 900 kB are sent.
            accept: Some("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
            ..Ask::new(Method::PATCH, path, patch.to_string())
        }
    });
    let before = server.memory_mb().0;
    let row = timed(run, server, connections, n, make).await?;
    Ok(Row {
        before_rss_mb: Some(before),
        ..row
    })
}
