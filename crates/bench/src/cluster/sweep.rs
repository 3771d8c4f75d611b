//! Many objects that go because of one: the dependents of an owner, or all there is in a namespace.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use http::Method;
use serde_json::Value;
use tokio::time;

use super::objects::{self, NAMESPACE};
use super::program::Program;
use super::sizes::sizes;
use super::wire::{Ask, Wire};
use super::writes::{HANDS, send};
use crate::bench::Run;
use crate::meter::Meter;
use crate::report::Row;

/// The pause between checks whether all are deleted; each check counts them all.
const PAUSE: Duration = Duration::from_millis(20);

pub(super) async fn measure(run: &Run) -> Result<Row> {
    let (_, n) = sizes(run);
    let server = Program::start(run, &[])?;
    let mut wire = Wire::connect(server.address).await?;
    for ask in objects::namespaces() {
        wire.ask(ask).await?;
    }
    let creation = objects::creation(&objects::config_map(n, 0));
    let owner: Arc<Value> = Arc::new(serde_json::from_slice(&wire.ask(creation).await?)?);
    let cpu = server.cpu_seconds();
    // In the case `empty` the objects have the owner too, so that both cases delete the same objects.
    let made = Arc::clone(&owner);
    let make = Arc::new(move |number| objects::creation(&objects::owned(number, &made)));
    send(server.address, HANDS, n, make).await?;
    let mut row = run.row();
    row.sync_cpu_s = Some(server.cpu_seconds() - cpu);
    row.before_rss_mb = Some(server.memory_mb().0);
    let doomed = match run.case.as_str() {
        "empty" => format!("/api/v1/namespaces/{NAMESPACE}"),
        _ => objects::path(n),
    };
    let (meter, cpu) = (Meter::begin(), server.cpu_seconds());
    wire.ask(Ask::new(Method::DELETE, doomed, String::new()))
        .await?;
    while !list_is_empty(&mut wire).await? {
        time::sleep(PAUSE).await;
    }
    // The CPU of this process is not counted: it only asks. The server's is read from the system.
    (row.wall_s, _) = meter.seconds();
    row.cpu_s = server.cpu_seconds() - cpu;
    row.ops_per_s = n as f64 / row.wall_s;
    let (held, peak) = server.memory_mb();
    (row.steady_rss_mb, row.peak_rss_mb) = (Some(held), Some(peak));
    Ok(row)
}

async fn list_is_empty(wire: &mut Wire) -> Result<bool> {
    let ask = Ask::get(&format!("{}?limit=1", objects::config_maps()));
    let list: Value = serde_json::from_slice(&wire.ask(ask).await?)?;
    Ok(list["items"].as_array().is_none_or(Vec::is_empty))
}
