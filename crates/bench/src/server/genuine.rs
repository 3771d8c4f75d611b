//! A genuine server, seen from a process that changes what is on it.
//!
//! It creates pods in a namespace of its own, prints `ready NAMESPACE`, and obeys the lines it reads as the embedded
//! server does, but can hold nothing back: it makes the changes once they are released. When its input ends, and after
//! failures too, it deletes the namespace. Without pods it prints `ready` and changes nothing.
//!
//! - `modify N` prepares N changes, round after round. In the last round each pod gets a stamp of the time.
//! - `probe N CROWD` prepares N changes with stamps, each among CROWD changes in all.
//! - `release` makes the changes as fast as the server takes them.
//! - `pace R` makes R of them a second.
//! - `count` says how many pods there are in all namespaces.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http::Method;
use lariat_client::{Http2, from_config};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::api::Api;
use super::fill::Filler;
use super::probes::{self, Pace, ProbeChange};
use crate::pods::SERVICE_ACCOUNT;
use crate::process::say;
use crate::target::Target;

/// The number of attempts to delete the pods: with many of them a server answers before all are deleted.
const DELETIONS: usize = 30;

/// Attends to a genuine server until the input ends.
pub(crate) fn serve(target: &Target, pods: usize) -> Result<()> {
    Runtime::new()?.block_on(async {
        let client = from_config(target.config().await?, Http2::default()).await?;
        let api = Api::Genuine(client);
        let mut commands = super::server::commands();
        if pods == 0 {
            return look(&api, &mut commands).await;
        }
        let home = format!("lariat-bench-{:08x}", fastrand::u32(..));
        api.create_namespace(&home).await?;
        eprintln!("pods are created in the namespace {home}, which is deleted at the end");
        let attended = attend(&api, &home, pods, &mut commands).await;
        // Also after a failure, and before its error is returned: the server is not ours.
        let deleted = delete(&api, &home).await;
        let left = || format!("the namespace {home} is left");
        attended.and(deleted.with_context(left))
    })
}

/// Obeys where nothing is to be changed.
async fn look(api: &Api, commands: &mut Receiver<String>) -> Result<()> {
    say("ready")?;
    while let Some(command) = commands.recv().await {
        match command.as_str() {
            "count" => say(&format!("counted {}", count(api, "/api/v1/pods").await?))?,
            "release" => say("released")?,
            other => bail!("{other}: no such command"),
        }
    }
    Ok(())
}

/// Creates pods, and executes commands.
async fn attend(api: &Api, home: &str, pods: usize, commands: &mut Receiver<String>) -> Result<()> {
    let account = json!({"metadata": {"name": SERVICE_ACCOUNT}});
    let accounts = format!("/api/v1/namespaces/{home}/serviceaccounts");
    api.send(Method::POST, &accounts, &account).await?;
    let filler = Filler::create_pods(api.clone(), pods, Some(home)).await?;
    say(&format!("ready {home}"))?;
    let mut writer = Writer {
        filler,
        prepared: Vec::new(),
        writing: JoinSet::new(),
    };
    loop {
        tokio::select! {
            command = commands.recv() => match command {
                Some(command) => {
                    let answer = writer.obey(&command).with_context(|| command)?;
                    say(&answer)?;
                }
                None => return Ok(()),
            },
            // A write that fails ends the process, which the run notices at once.
            Some(ended) = writer.writing.join_next() => ended??,
        }
    }
}

/// Makes changes.
struct Writer {
    filler: Arc<Filler>,
    prepared: Vec<ProbeChange>,
    writing: JoinSet<Result<()>>,
}

impl Writer {
    fn obey(&mut self, command: &str) -> Result<String> {
        let pods = self.filler.pods();
        match command.split_once(' ').unwrap_or((command, "")) {
            ("modify", count) => {
                self.prepared = probes::storm(pods, count.parse()?);
                // Its stamp says whether a state counts, not its version.
                Ok("held 0".to_owned())
            }
            ("probe", numbers) => {
                let (count, crowd) = numbers.split_once(' ').context("two numbers")?;
                self.prepared = probes::script(pods, count.parse()?, crowd.parse()?)?;
                Ok("held".to_owned())
            }
            ("release", _) => Ok(self.write(None)),
            ("pace", rate) => {
                let every = Duration::from_secs(1) / rate.parse::<u32>()?;
                Ok(self.write(Some((Instant::now(), every))))
            }
            _ => bail!("no such command"),
        }
    }

    /// Begins to make the changes that are prepared.
    fn write(&mut self, due: Option<(Instant, Duration)>) -> String {
        let pace = Pace {
            due,
            is_stamped: true,
        };
        let (filler, steps) = (Arc::clone(&self.filler), std::mem::take(&mut self.prepared));
        self.writing
            .spawn(async move { probes::carry_out(&filler, steps, pace).await });
        "released".to_owned()
    }
}

#[derive(Deserialize)]
struct Page {
    metadata: PageMetadata,
    /// None where there are none, as some servers write it.
    items: Option<Vec<IgnoredAny>>,
}

#[derive(Deserialize)]
struct PageMetadata {
    #[serde(default, rename = "remainingItemCount")]
    rest: usize,
}

/// Counts the objects of a collection.
async fn count(api: &Api, path: &str) -> Result<usize> {
    let page = format!("{path}?limit=1");
    let list: Page = serde_json::from_slice(&api.list(&page).await?).context(page)?;
    Ok(list.items.map_or(0, |items| items.len()) + list.metadata.rest)
}

/// Deletes a namespace, and the pods in it first: where no controller does so, they would stay.
async fn delete(api: &Api, home: &str) -> Result<()> {
    let namespace = format!("/api/v1/namespaces/{home}");
    let pods = format!("{namespace}/pods");
    let all = format!("{pods}?gracePeriodSeconds=0");
    for _ in 0..DELETIONS {
        // It may take longer than the server lets a request take; what is left then goes with the next.
        let is_done = api.delete_all(&all).await?;
        if is_done && count(api, &pods).await? == 0 {
            return api.delete(&namespace).await;
        }
    }
    bail!("its pods could not be deleted")
}
