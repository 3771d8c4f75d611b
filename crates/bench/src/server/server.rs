//! The server that runs read from.

use std::io::BufRead;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lariat_cluster::Cluster;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::api::Api;
use super::fill::Filler;
use super::flow::Flow;
use super::front::Front;
use super::probes;
use super::probes::Pace;
use crate::process::say;

/// How many changes the server remembers beyond those of one storm.
const SPARE_HISTORY: usize = 10_000;

/// Runs the server until its input ends.
pub(crate) fn serve(pods: usize, modifications: usize) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async {
        // A storm whose changes left the history would end in a relist.
        let history = modifications + SPARE_HISTORY;
        // The owners of its pods are not there.
        let cluster = Cluster::builder()
            .garbage_collection(false)
            .history(history)
            // By number alone: a watch that reads slowly is waited for, however much there is to read.
            .history_bytes(usize::MAX)
            .history_age(Duration::ZERO)
            .seed(1)
            .start()
            .await?;
        let filler = Filler::fill(Api::Embedded(cluster.service()), pods).await?;
        // The history of the pods' creation is not read.
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
        ("loads", _) => Ok(format!("loaded {}", front.loads())),
        ("expire", _) => {
            // No watch may reconnect before there is something to miss.
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
pub(super) fn commands() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(1);
    // A blocking read on the runtime would delay its shutdown until the next line.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
