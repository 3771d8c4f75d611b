//! A cluster from its start to its end.

use std::io::{IsTerminal, Write};

use anyhow::{Context, Result, anyhow};
use lariat_cluster::{Cluster, ClusterBuilder, Load, Workloads};

use super::console::Console;
use super::options::Options;
use crate::kubeconfig::Kubeconfig;
use crate::quote::shell;
use crate::{seed, signal};

/// Serves a cluster until the process is asked to end.
pub(crate) fn run(options: &Options) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("the runtime does not start")?;
    runtime.block_on(async {
        tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal())
            .init();
        // All files are read before the cluster starts, so a mistake in one of them ends the command at once.
        let seeds = seed::read(&options.seeds)?;
        let kubeconfig = options
            .kubeconfig
            .as_deref()
            .map(Kubeconfig::open)
            .transpose()?;
        let token = options
            .token
            .as_ref()
            .map(|token| token.read())
            .transpose()?;
        let console = options.console.read(token.as_deref())?;
        let cluster = start(options, token).await?;
        let console = match console {
            Some((address, token)) => Some(Console::start(&cluster, address, token).await?),
            None => None,
        };
        let content = Content {
            seeds,
            load: options.load.clone(),
        };
        // From here on a signal leads to the cleanup below instead of ending the process.
        let served = signal::until_asked(async {
            fill(&cluster, content).await?;
            if let Some(console) = &console {
                eprintln!("console: {}", console.url());
            }
            serve(&cluster, options, kubeconfig.as_ref()).await
        })
        .await;
        // Also after an error: the kubeconfig may have been changed by then.
        signal::unless_asked_again(async {
            if let Some(console) = console {
                console.stop().await;
            }
            end(cluster, kubeconfig.as_ref()).await;
        })
        .await;
        // A signal is how this is meant to end, so it is no failure.
        served.unwrap_or(Ok(()))
    })
}

/// The initial content of a cluster.
struct Content {
    seeds: Vec<seed::Document>,
    load: Option<Load>,
}

/// Removes the cluster from the kubeconfig, and stops it.
async fn end(cluster: Cluster, kubeconfig: Option<&Kubeconfig>) {
    if let Some(kubeconfig) = kubeconfig {
        let url = cluster.url().unwrap_or_default();
        // Before the shutdown, so that kubectl finds no context of a server that is gone.
        if let Err(error) = kubeconfig.remove(&url).await {
            eprintln!("warning: {error:#}");
        }
    }
    cluster.shutdown().await;
}

async fn start(options: &Options, token: Option<String>) -> Result<Cluster> {
    let started = builder(options, token).start().await;
    started.map_err(|error| {
        let reason = lariat_core::describe(&error);
        // These errors name the file; the address has nothing to do with them.
        if reason.contains("data file") {
            anyhow!("{reason}")
        } else if reason.starts_with("cannot listen on") {
            anyhow!("{reason}; give another address with --listen, or port 0")
        } else {
            anyhow!("cannot serve on {}: {reason}", options.listen)
        }
    })
}

/// Builds the cluster from the options.
fn builder(options: &Options, token: Option<String>) -> ClusterBuilder {
    let builder = Cluster::builder()
        .listen_on(options.listen)
        .admin(options.switches.admin);
    let mut builder = options.bounds.apply(builder);
    if let Some(path) = &options.data {
        builder = builder.data(path);
    }
    if options.switches.simulate_workloads {
        builder = builder.simulate_workloads(Workloads::default());
    }
    if let Some(token) = token {
        // Without a token everybody is an administrator, and roles would allow nothing more.
        builder = builder.token(token).rbac();
    }
    if options.switches.tls {
        builder = builder.tls_generated();
    }
    builder
}

async fn fill(cluster: &Cluster, content: Content) -> Result<()> {
    seed::apply(&cluster.client(), content.seeds).await?;
    if let Some(load) = content.load {
        let loaded = cluster.load(load).await;
        eprintln!("objects loaded: {}", loaded.created());
    }
    Ok(())
}

/// Prints that the cluster is ready; returns only with an error.
async fn serve(
    cluster: &Cluster,
    options: &Options,
    kubeconfig: Option<&Kubeconfig>,
) -> Result<()> {
    if let Some(kubeconfig) = kubeconfig {
        let own = cluster.kubeconfig().unwrap_or_default();
        // Before `ready` is printed: a script that waits for that line uses the file next.
        kubeconfig.merge(&own).await?;
    }
    let url = cluster.url().unwrap_or_default();
    let mut stdout = std::io::stdout();
    let said = writeln!(stdout, "ready {url}").and_then(|()| stdout.flush());
    said.context("cannot say on stdout that it is ready")?;
    eprintln!("{}", note(options, &url));
    std::future::pending().await
}

/// Prints how to use the cluster.
fn note(options: &Options, url: &str) -> String {
    let flag = match &options.kubeconfig {
        Some(path) => format!("--kubeconfig {}", shell(path)),
        None => format!("--server {url}"),
    };
    let mut note = format!("try: kubectl {flag} get namespaces\nCtrl-C ends it");
    if options.token.is_none() && !options.listen.ip().is_loopback() {
        note.push_str("\nbeware: whoever reaches ");
        note.push_str(&options.listen.to_string());
        note.push_str(" may do everything; --token demands a token");
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::Token;

    #[test]
    fn the_note_warns_of_strangers() {
        let mut options: Options = crate::testing::parsed(&[]).unwrap();
        let quiet = note(&options, "http://127.0.0.1:8001");
        assert_eq!(
            quiet,
            "try: kubectl --server http://127.0.0.1:8001 get namespaces\nCtrl-C ends it"
        );
        options.listen = ([0, 0, 0, 0], 8001).into();
        options.kubeconfig = Some("k".into());
        let warned = note(&options, "http://0.0.0.0:8001");
        assert!(
            warned.starts_with("try: kubectl --kubeconfig k get namespaces\n"),
            "{warned}"
        );
        assert!(
            warned.ends_with("0.0.0.0:8001 may do everything; --token demands a token"),
            "{warned}"
        );
        options.token = Some(Token::Given("t".into()));
        assert!(!note(&options, "").contains("beware"));
    }
}
