//! Elects a leader among three replicas, kills it, and stops the next one.
//!
//! Run: `cargo run --example leader_election -- --lease-s 3` (on the embedded cluster), or with `KUBECONFIG=…` on a cluster
//! of yours. Each replica is a process: this program with `--replica NAME`. With `-- --watch` nothing is killed.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::OnceLock;

use anyhow::{Context, Result};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use lariat_examples::leader_election::{NAME, lease, replica};
use lariat_examples::{
    About, Flag, Options, Paint, Stage, ensure, error_exit, paint, perform, say, told,
};
use serde_json::json;
use tokio::time::Instant;

const ABOUT: About = About {
    name: "leader_election",
    what: "three replicas of a program, of which one counts; what happens when it is killed, and when it is stopped",
    flags: &[
        Flag {
            name: "lease-s",
            default: "15",
            help: "the lease duration in seconds; others wait so long for a leader that was killed",
        },
        Flag {
            name: "period-s",
            default: "0.5",
            help: "how often the leader counts",
        },
        Flag {
            name: "replica",
            default: "",
            help: "run one replica, with this identity",
        },
        Flag {
            name: "namespace",
            default: "default",
            help: "where a replica has its lease and its counters",
        },
    ],
    check,
};

const REPLICAS: [&str; 3] = ["red", "green", "blue"];

/// The process of each replica.
type Processes = BTreeMap<&'static str, u32>;

fn check(options: &Options) -> Result<()> {
    options.seconds("period-s")?;
    Ok(lease("default", "red", options.seconds("lease-s")?).validate()?)
}

#[tokio::main]
async fn main() -> ExitCode {
    let replica = Options::parse(&ABOUT).and_then(|options| match options {
        Some(options) => Ok(Some((options.value::<String>("replica")?, options))),
        None => Ok(None),
    });
    let ended = match replica {
        Ok(Some((name, _))) if name.is_empty() => return perform_story().await,
        Ok(Some((name, options))) => replica::run(&options, &name).await,
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error_exit(&error),
    }
}

async fn perform_story() -> ExitCode {
    let processes = OnceLock::new();
    let set_up = async |stage: &Stage| set_up(stage, &processes).await;
    let story = async |stage: &Stage| story(stage, &processes).await;
    perform(ABOUT, set_up, story).await
}

async fn set_up(stage: &Stage, processes: &OnceLock<Processes>) -> Result<()> {
    let counter = json!({"metadata": {"name": NAME}, "data": {"count": "0"}});
    ensure(&stage.api(), &serde_json::from_value::<ConfigMap>(counter)?).await?;
    stage.step("three replicas start, and one of them acquires the lease");
    let kubeconfig = replica::kubeconfig(stage)?;
    let start = |name| Ok((name, replica::start(stage, name, &kubeconfig)?));
    let started: Processes = REPLICAS.into_iter().map(start).collect::<Result<_>>()?;
    stage.suggest(format_args!("k get lease {NAME}"));
    for (name, process) in &started {
        stage.suggest(format_args!("kill -9 {process}   # {name}"));
    }
    processes.get_or_init(|| started);
    stage.told(&["leads"]).await
}

async fn story(stage: &Stage, processes: &OnceLock<Processes>) -> Result<()> {
    let processes = processes.get().context("no replica was started")?;
    told(3, &["counts"]).await?;
    let leader = holder(stage).await?;
    let killed =
        format!("{leader} leads, and is killed: the others wait until its lease has expired");
    let next = take_over(stage, &killed, processes[&*leader], "KILL").await?;
    let stopped = format!("{next} leads, and is stopped: it releases the lease");
    take_over(stage, &stopped, processes[&*next], "TERM").await?;
    Ok(())
}

/// Sends the leader a signal, and returns the replica that leads then.
async fn take_over(stage: &Stage, what: &str, leader: u32, signal: &str) -> Result<String> {
    stage.step(what);
    let began = Instant::now();
    replica::signal(leader, signal).await?;
    stage.told(&["leads"]).await?;
    let took = began.elapsed();
    let next = holder(stage).await?;
    stage.told(&[&next, "counts"]).await?;
    let took = format!("{next} took over after {took:.1?}");
    say(format_args!("  {}", paint(Paint::Bold, took, 0)));
    Ok(next)
}

/// Returns who leads, as anyone can see.
async fn holder(stage: &Stage) -> Result<String> {
    let lease = stage.api::<Lease>().get(NAME).await?;
    let holder = lease.spec.and_then(|spec| spec.holder_identity);
    holder.context("the lease has no holder")
}
