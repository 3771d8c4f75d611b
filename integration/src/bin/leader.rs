//! A program that writes while it leads, as the tests of replicas run it: `leader NAME NAMESPACE LEASE_SECONDS`.
//!
//! The leader adds one to each counter of the namespace, again and again, and signs with its name. It prints
//! `stands by` once its caches are filled. With `--sharded` at the end each replica writes to its share of the
//! counters, and prints `is one of 3` when its share is another. With `--blocking` its handler blocks its thread for
//! ever. It logs to stdout. `KUBECONFIG` names the cluster.

use std::convert::Infallible;
use std::future::pending;
use std::process::ExitCode;
use std::thread::park_timeout;
use std::time::Duration;

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::ConfigMap;
use lariat::cache::Change;
use lariat::cache::KindOptions;
use lariat::kube::api::{Api, Patch, PatchParams};
use lariat::lease::Shards;
use lariat::prelude::*;
use lariat::{Lease, Selection};
use serde_json::json;
use tokio::task::block_in_place;

/// How long a call works between what it reads and what it writes, and how long a counter then waits.
const WORK: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    OneLeads,
    Sharded,
    Blocking,
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_ansi(false).init();
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", lariat::describe(&*error));
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, namespace, seconds, flags @ ..] = &arguments[..] else {
        bail!("usage: leader NAME NAMESPACE LEASE_SECONDS [--sharded | --blocking]");
    };
    let mode = match flags {
        [] => Mode::OneLeads,
        [flag] if flag == "--sharded" => Mode::Sharded,
        [flag] if flag == "--blocking" => Mode::Blocking,
        _ => bail!("unknown flags {flags:?}"),
    };
    let duration = Duration::from_secs(seconds.parse()?);
    let lease = Lease::new("counter")
        .namespace(namespace)
        .identity(name)
        .duration(duration)
        .renew_deadline(duration * 2 / 3)
        .retry_period(duration * 2 / 15);
    let ours = Selection::all().in_namespaces([namespace]);
    let kind = ControllerOptions::default().cache(KindOptions::default().selection(ours));
    let builder = SharedControllerFactory::builder(lariat::connect().await?)
        .kind_options(Gvk::new("", "v1", "ConfigMap"), kind);
    let factory = if mode == Mode::Sharded {
        builder.sharding(lease).build()
    } else {
        builder.leader_election(lease).build()
    };
    // What it writes itself is no reason to count on.
    let added = Predicate::new(|change| matches!(change, Change::Added { .. }));
    let name = name.clone();
    let handler = move |cx| count(cx, name.clone(), mode);
    let counters = factory.for_object::<ConfigMap>();
    counters.register_handler(
        "count",
        HandlerOptions::default().only(added).handler(handler),
    )?;
    factory.start(1).await?;
    println!("stands by");
    tokio::select! {
        ended = factory.run_until(lariat::termination()) => Ok(ended?),
        never = print_shares(factory.shards()) => match never {},
    }
}

async fn print_shares(shards: Option<Shards>) -> Infallible {
    if let Some(shards) = shards {
        let mut shares = shards.follow();
        while shares.changed().await.is_ok() {
            println!("is one of {}", shares.borrow_and_update().members());
        }
    }
    pending().await
}

async fn count(cx: Context<ConfigMap>, name: String, mode: Mode) -> HandlerResult {
    if mode == Mode::Blocking {
        loop {
            park_timeout(WORK);
        }
    }
    let counter = cx.object()?;
    let data = counter.as_ref().and_then(|counter| counter.data.as_ref());
    let Some(count) = data.and_then(|data| data.get("count")?.parse::<u64>().ok()) else {
        return Ok(Outcome::done());
    };
    // It blocks its thread: a process that is suspended here goes on with the write before another task of it finds
    // that the lease has expired, and drops the call.
    block_in_place(|| park_timeout(WORK));
    // Without a resource version: what keeps a former leader from writing is the lease alone.
    let next = json!({"data": {"count": (count + 1).to_string(), "by": name}});
    let namespace = cx.key().namespace().unwrap_or_default();
    let counters: Api<ConfigMap> = Api::namespaced(cx.client(), namespace);
    let (name, params) = (cx.key().name(), PatchParams::default());
    counters.patch(name, &params, &Patch::Merge(next)).await?;
    Ok(Outcome::requeue_after(WORK))
}
