//! Replicas as processes: this program, started once more for each.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use lariat::kube::Client;
use lariat::termination;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use super::{factory, lease};
use crate::{Options, Paint, Place, Stage, log_errors, output_closed, say, tell};

/// Runs one replica until a signal, or until it has lost the lease.
///
/// # Errors
///
/// It does not start, or has lost the lease.
pub async fn run(options: &Options, name: &str) -> Result<()> {
    log_errors();
    let place = Place::find(options.kubeconfig.clone()).await?;
    if place.embedded.is_some() {
        bail!("--replica needs the cluster that the others have: --kubeconfig or KUBECONFIG");
    }
    count(options, name, place.client).await?;
    say("stopped");
    Ok(())
}

async fn count(options: &Options, name: &str, client: Client) -> Result<()> {
    let namespace: String = options.value("namespace")?;
    let lease = lease(&namespace, name, options.seconds("lease-s")?);
    let period = options.seconds("period-s")?;
    let log = |count| say(format_args!("counts to {count}"));
    let factory = factory(client, &namespace, lease, period, log)?;
    let leadership = factory.leadership().context("it takes part")?;
    factory.start(1).await?;
    say("stands by");
    let leads = async {
        if leadership.acquired().await {
            say("leads");
        }
        std::future::pending::<()>().await;
    };
    let shutdown = async {
        tokio::select! {
            () = termination() => {}
            // The process that started it is gone.
            () = output_closed() => {}
        }
    };
    tokio::select! {
        ended = factory.run_until(shutdown) => Ok(ended?),
        () = leads => Ok(()),
    }
}

/// Returns the path of a kubeconfig of the example's cluster; that of the embedded one goes with the example.
///
/// # Errors
///
/// It cannot be written.
pub fn kubeconfig(stage: &Stage) -> Result<PathBuf> {
    let Some(text) = stage.embedded_kubeconfig() else {
        let given = stage.options.kubeconfig.clone();
        let given = given.or_else(|| std::env::var_os("KUBECONFIG").map(PathBuf::from));
        return given.context("the cluster has no kubeconfig");
    };
    let path = std::env::temp_dir().join(format!("{}.kubeconfig", stage.namespace));
    std::fs::write(&path, text)?;
    let (ending, file) = (stage.ending.clone(), path.clone());
    stage.tasks.spawn(async move {
        ending.cancelled().await;
        // A file that is left behind does no harm.
        let _ = std::fs::remove_file(file);
    });
    Ok(path)
}

/// Starts this program once more, as a replica, and prints what it prints; returns its process ID.
///
/// It is killed at the end of the example.
///
/// # Errors
///
/// The process does not start.
pub fn start(stage: &Stage, name: &'static str, kubeconfig: &Path) -> Result<u32> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--replica", name, "--namespace", &stage.namespace]);
    for option in ["lease-s", "period-s"] {
        let value: String = stage.options.value(option)?;
        command.arg(format!("--{option}")).arg(value);
    }
    let piped = command.arg("--kubeconfig").arg(kubeconfig);
    let piped = piped.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = piped.kill_on_drop(true).spawn()?;
    let id = child.id().context("it has just been started")?;
    let mut lines = BufReader::new(child.stdout.take().context("it is piped")?).lines();
    let ending = stage.ending.clone();
    stage.tasks.spawn(async move {
        let print = async {
            while let Ok(Some(line)) = lines.next_line().await {
                tell("replica", name, colour(&line), line);
            }
        };
        if ending.run_until_cancelled(print).await.is_none() {
            // One that has ended by now cannot be killed any more.
            let _ = child.start_kill();
            let _ = child.wait().await;
        } else if let Ok(status) = child.wait().await {
            tell("replica", name, Paint::Red, format_args!("ended: {status}"));
        }
    });
    Ok(id)
}

fn colour(line: &str) -> Paint {
    if line == "leads" {
        Paint::Green
    } else {
        Paint::Dim
    }
}

/// Sends a signal to a process.
///
/// # Errors
///
/// There is no such process.
pub async fn signal(process: u32, signal: &str) -> Result<()> {
    let mut kill = Command::new("kill");
    let sent = kill.args(["-s", signal, &process.to_string()]).status();
    if !sent.await.context("kill cannot be run")?.success() {
        bail!("SIG{signal} cannot be sent to the process {process}");
    }
    Ok(())
}
