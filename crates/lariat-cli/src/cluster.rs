//! `lariat cluster`: a cluster from its start to its end.

use std::io::Write;

use anyhow::{Context, Result, anyhow};
use lariat_cluster::{Cluster, ClusterBuilder, Workloads};

use crate::arguments::Options;
use crate::{kubeconfig, seed, signal};

/// Serves a cluster until the process is asked to end.
pub(crate) fn run(options: &Options) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("the runtime does not start")?;
    runtime.block_on(async {
        tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
            .with_writer(std::io::stderr)
            .init();
        let seeds = seed::read(&options.seeds)?;
        let cluster = start(options).await?;
        let served = signal::until_asked(serve(&cluster, options, seeds)).await;
        signal::unless_asked_again(cluster.shutdown()).await;
        served.unwrap_or(Ok(()))
    })
}

async fn start(options: &Options) -> Result<Cluster> {
    let started = builder(options).start().await;
    started.map_err(|error| {
        let reason = lariat_core::describe(&error);
        match reason.contains("data file") {
            true => anyhow!("{reason}"),
            false => anyhow!("cannot serve on {}: {reason}", options.listen),
        }
    })
}

/// Hands the options to the cluster.
fn builder(options: &Options) -> ClusterBuilder {
    let mut builder = Cluster::builder()
        .listen_on(options.listen)
        .admin(options.switches.admin);
    if let Some(path) = &options.data {
        builder = builder.data(path);
    }
    if options.switches.simulate_workloads {
        builder = builder.simulate_workloads(Workloads::default());
    }
    if let Some(token) = &options.token {
        builder = builder.token(token).rbac();
    }
    if options.switches.tls {
        builder = builder.tls_generated();
    }
    builder
}

/// Fills the cluster, says that it is ready, and then only returns with an error.
async fn serve(cluster: &Cluster, options: &Options, seeds: Vec<seed::Document>) -> Result<()> {
    seed::apply(&cluster.client(), seeds).await?;
    if let Some(load) = options.load.clone() {
        let loaded = cluster.load(load).await;
        eprintln!("objects loaded: {}", loaded.created());
    }
    if let Some(path) = &options.kubeconfig {
        let content = cluster.kubeconfig().unwrap_or_default();
        let written = kubeconfig::write(path, &content);
        written.with_context(|| format!("cannot write the kubeconfig {}", path.display()))?;
    }
    let url = cluster.url().unwrap_or_default();
    let mut stdout = std::io::stdout();
    let said = writeln!(stdout, "ready {url}").and_then(|()| stdout.flush());
    said.context("cannot say on stdout that it is ready")?;
    eprintln!("{}", note(options, &url));
    std::future::pending().await
}

/// Tells how the cluster is used.
fn note(options: &Options, url: &str) -> String {
    let flag = match &options.kubeconfig {
        Some(path) => format!("--kubeconfig {}", path.display()),
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

    #[test]
    fn the_note_warns_of_strangers() {
        let mut options = Options::default();
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
        options.token = Some("t".to_owned());
        assert!(!note(&options, "").contains("beware"));
    }
}
