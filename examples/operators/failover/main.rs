//! Elects a leader among three replicas, kills it, and stops the next one.
//!
//! Run: `cargo run -p lariat-operators --example failover -- --lease-s 3` (on the embedded cluster), or with
//! `KUBECONFIG=…` on your own cluster. Each replica is a process: this program with `--replica NAME`. With `-- --watch`
//! nothing is killed.

use std::process::ExitCode;

use anyhow::{Context, Result};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use lariat_operators::failover::{NAME, lease, replica};
use lariat_operators::{
    ATTACHED, About, Flag, NAMESPACE, Options, Paint, REPLICA, Replicas, Stage, ensure, paint,
    perform_with_replicas, say, until_printed,
};
use serde_json::json;
use tokio::time::Instant;

const ABOUT: About = About {
    name: "failover",
    what: "three replicas of a program, of which one is active; what happens when it is killed, and when it is stopped",
    flags: &[
        Flag {
            name: "lease-s",
            default: "15",
            help: "the lease duration in seconds; others wait that long for a killed leader",
        },
        Flag {
            name: "period-s",
            default: "0.5",
            help: "the period of the leader's writes",
        },
        REPLICA,
        NAMESPACE,
        ATTACHED,
    ],
    check,
};

static REPLICAS: Replicas = Replicas::new(&["lease-s", "period-s"]);

fn check(options: &Options) -> Result<()> {
    options.seconds("period-s")?;
    Ok(lease("default", "red", options.seconds("lease-s")?).validate()?)
}

#[tokio::main]
async fn main() -> ExitCode {
    perform_with_replicas(ABOUT, replica::run, set_up, story).await
}

async fn set_up(stage: &Stage) -> Result<()> {
    let counter = json!({"metadata": {"name": NAME}, "data": {"count": "0"}});
    ensure(&stage.api(), &serde_json::from_value::<ConfigMap>(counter)?).await?;
    stage.step("three replicas start, and one of them acquires the lease");
    stage.suggest(format_args!("k get lease {NAME}"));
    for name in ["red", "green", "blue"] {
        REPLICAS.start(stage, name, colour)?;
    }
    stage.until_printed(&["leads"]).await
}

fn colour(line: &str) -> Paint {
    if line == "leads" {
        Paint::Green
    } else {
        Paint::Dim
    }
}

async fn story(stage: &Stage) -> Result<()> {
    until_printed(3, &["counts"]).await?;
    let leader = holder(stage).await?;
    let killed =
        format!("{leader} leads, and is killed: the others wait until its lease has expired");
    let next = take_over(stage, &killed, &leader, "KILL").await?;
    let stopped = format!("{next} leads, and is stopped: it releases the lease");
    take_over(stage, &stopped, &next, "TERM").await?;
    Ok(())
}

/// Sends the leader a signal, and returns the next leader.
async fn take_over(stage: &Stage, what: &str, leader: &str, signal: &str) -> Result<String> {
    stage.step(what);
    let began = Instant::now();
    REPLICAS.signal(leader, signal).await?;
    stage.until_printed(&["leads"]).await?;
    let took = began.elapsed();
    let next = holder(stage).await?;
    stage.until_printed(&[&next, "counts"]).await?;
    stage.until_printed(&[leader, "ended"]).await?;
    let took = format!("{next} took over after {took:.1?}");
    say(format_args!("  {}", paint(Paint::Bold, took, 0)));
    Ok(next)
}

/// Returns the holder of the lease.
async fn holder(stage: &Stage) -> Result<String> {
    let lease = stage.api::<Lease>().get(NAME).await?;
    let holder = lease.spec.and_then(|spec| spec.holder_identity);
    holder.context("the lease has no holder")
}
