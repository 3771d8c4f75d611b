//! Requests about single objects, as fast as they are answered.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use http::Method;
use serde_json::Value;
use tokio::task::JoinSet;

use super::objects;
use super::program::Program;
use super::sizes::sizes;
use super::wire::{Ask, Wire};
use crate::bench::Run;
use crate::meter::{self, Meter};
use crate::report::Row;

/// How many connections prepare a run.
pub(super) const HANDS: usize = 16;

pub(super) type Make = Arc<dyn Fn(usize) -> Ask + Send + Sync>;

pub(super) async fn measure(run: &Run) -> Result<Row> {
    let (connections, n) = sizes(run);
    let server = Program::start(run, &[])?;
    let (before, make) = stage(&server, &run.case, n).await?;
    if let Some(before) = before {
        send(server.address, HANDS, n, before).await?;
    }
    let mut row = timed(run, &server, connections, n, make).await?;
    let (held, peak) = server.memory_mb();
    (row.steady_rss_mb, row.peak_rss_mb) = (Some(held), Some(peak));
    Ok(row)
}

/// Sends requests; returns their times and what the server spent on them.
pub(super) async fn timed(
    run: &Run,
    server: &Program,
    connections: usize,
    n: usize,
    make: Make,
) -> Result<Row> {
    let mut row = run.row();
    // The CPU time of the meter is that of this process, the client. The server's is what counts.
    let (meter, cpu) = (Meter::begin(), server.cpu_seconds());
    let times = send(server.address, connections, n, make).await?;
    (row.wall_s, _) = meter.seconds();
    row.cpu_s = server.cpu_seconds() - cpu;
    row.ops_per_s = n as f64 / row.wall_s;
    row.spread(times);
    Ok(row)
}

/// Prepares a case; returns what is to be there before it, and its requests.
async fn stage(server: &Program, case: &str, n: usize) -> Result<(Option<Make>, Make)> {
    let mut wire = Wire::connect(server.address).await?;
    for ask in objects::namespaces() {
        wire.ask(ask).await?;
    }
    let create: Make = Arc::new(|number| objects::creation(&objects::config_map(number, 0)));
    Ok(match case {
        "create" => (None, create),
        "get" => (
            Some(create),
            Arc::new(|number| Ask::get(&objects::path(number))),
        ),
        "update" => (Some(create), Arc::new(update)),
        "apply" => (
            Some(Arc::new(|number| apply(number, 0))),
            Arc::new(|number| apply(number, 1)),
        ),
        "delete" => (Some(create), Arc::new(delete)),
        "create-pod" => (None, Arc::new(create_pod)),
        "update-pod" => (Some(Arc::new(create_pod)), Arc::new(update_pod)),
        "create-owned" => {
            // The owner has the number `n`, as the owned objects have those below.
            let creation = objects::creation(&objects::config_map(n, 0));
            let owner: Value = serde_json::from_slice(&wire.ask(creation).await?)?;
            (
                None,
                Arc::new(move |number| objects::creation(&objects::owned(number, &owner))),
            )
        }
        other => bail!("no case {other:?}"),
    })
}

fn update(number: usize) -> Ask {
    let object = objects::config_map(number, 1).to_string();
    Ask::new(Method::PUT, objects::path(number), object)
}

fn apply(number: usize, round: usize) -> Ask {
    let path = format!("{}?fieldManager=bench&force=true", objects::path(number));
    let object = objects::config_map(number, round).to_string();
    Ask {
        media: "application/apply-patch+yaml",
        ..Ask::new(Method::PATCH, path, object)
    }
}

fn delete(number: usize) -> Ask {
    Ask::new(Method::DELETE, objects::path(number), String::new())
}

fn create_pod(number: usize) -> Ask {
    let (all, pod) = objects::pod(number);
    Ask::new(Method::POST, all, pod.to_string())
}

/// Returns the report of a pod's kubelet that it runs.
fn update_pod(number: usize) -> Ask {
    let pod = crate::pods::pod(number);
    let path = format!(
        "/api/v1/namespaces/{}/pods/{}/status",
        pod.namespace, pod.name
    );
    let status = serde_json::json!({"status": pod.status});
    Ask {
        media: "application/merge-patch+json",
        ..Ask::new(Method::PATCH, path, status.to_string())
    }
}

/// Sends requests over several connections, each its share in sequence.
///
/// Returns the microseconds of each request.
pub(super) async fn send(
    address: SocketAddr,
    connections: usize,
    n: usize,
    make: Make,
) -> Result<Vec<f64>> {
    let mut tasks = JoinSet::new();
    for at in 0..connections {
        let make = Arc::clone(&make);
        let mut wire = Wire::connect(address).await?;
        tasks.spawn(async move {
            let mut times = Vec::new();
            // Every connection has its own objects, so that no two requests conflict.
            for number in (at..n).step_by(connections) {
                // Made before the clock is read: building the request is the client's work.
                let ask = make(number);
                let begun = meter::now();
                wire.ask(ask).await?;
                times.push((meter::now() - begun).as_secs_f64() * 1e6);
            }
            anyhow::Ok(times)
        });
    }
    let mut times = Vec::new();
    while let Some(joined) = tasks.join_next().await {
        times.extend(joined.context("a client ends")??);
    }
    Ok(times)
}
