//! The server the subjects read from, in a process of its own.
//!
//! It is the embedded cluster over loopback HTTP, full of pods. It prints `ready URL` when it serves, then
//! obeys the lines it reads, answering each with a line when it is done, and ends with its input:
//!
//! - `modify N` holds everything back from watches, and changes pods N times in all, round after round. It
//!   answers the version after which every pod changed exactly once more.
//! - `expire` holds everything back, ends all watches, changes the last pod, and forgets the history, so
//!   that clients have to list again. It answers the version before that change.
//! - `probe N CROWD` holds everything back, and changes N pods once each; of CROWD changes one is such a
//!   probe, and the others are of other pods.
//! - `release` lets held watches and requests go on.
//! - `pace R` lets them go on too, but watches tell R changes a second. Probes tell when they were written:
//!   when they were handed to the connection, which is about to write them.

mod api;
mod fill;
mod flow;
mod front;
pub(crate) mod genuine;
mod probes;

use std::io::BufRead;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lariat_cluster::Cluster;
use tokio::sync::mpsc;
use tokio::time::Instant;

use api::Api;
use fill::Filler;
use flow::Flow;
use front::Front;
use probes::Pace;

use crate::process::say;

/// How many changes the server remembers beyond those of one storm.
const SPARE_HISTORY: usize = 10_000;

/// Runs the server until its input ends.
pub(crate) fn serve(pods: usize, modifications: usize) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let history = modifications + SPARE_HISTORY;
        // The owners of its pods are not there.
        let cluster = Cluster::builder().garbage_collection(false);
        let cluster = cluster.history(history).seed(1).start().await?;
        let filler = Filler::fill(Api::Embedded(cluster.service()), pods).await?;
        // Nobody reads how the pods came to be.
        cluster.compact();
        let front = Front::listen(cluster.service()).await?;
        say(&format!("ready {}", front.url()))?;
        let mut commands = commands();
        while let Some(command) = commands.recv().await {
            let answer = obey(&command, &cluster, &filler, &front).await;
            say(&answer.with_context(|| command)?)?;
        }
        Ok(())
    })
}

async fn obey(
    command: &str,
    cluster: &Cluster,
    filler: &Arc<Filler>,
    front: &Front,
) -> Result<String> {
    match command.split_once(' ').unwrap_or((command, "")) {
        ("modify", count) => {
            front.set(Flow::Held);
            Ok(format!("held {}", filler.modify(count.parse()?).await?))
        }
        ("probe", numbers) => {
            let (count, crowd) = numbers.split_once(' ').context("two numbers")?;
            front.set(Flow::Held);
            let steps = probes::script(filler.pods(), count.parse()?, crowd.parse()?)?;
            let pace = Pace {
                due: None,
                is_stamped: false,
            };
            probes::carry_out(filler, steps, pace).await?;
            Ok("held".to_owned())
        }
        ("release", _) => {
            front.set(Flow::Free);
            Ok("released".to_owned())
        }
        ("pace", rate) => {
            front.set(Flow::Paced {
                since: Instant::now(),
                every: Duration::from_secs(1) / rate.parse::<u32>()?,
            });
            Ok("released".to_owned())
        }
        ("expire", _) => {
            // Nobody may come back before there is something to miss.
            front.set(Flow::Held);
            cluster.cut_watches();
            let before = filler.change_last().await?;
            cluster.compact();
            Ok(format!("held {before}"))
        }
        _ => bail!("no such command"),
    }
}

/// Reads commands from a thread of its own, until the input ends.
fn commands() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
