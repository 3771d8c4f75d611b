//! A query of a cluster, and its answer.

use std::io::{IsTerminal, Write};

use anyhow::{Context, Result};
use kube::Client;
use lariat_core::Scope;

use super::options::Options;
use super::{columns, fields, kinds, openapi, output, read};
use crate::signal;

/// Runs the query, and prints the answer.
pub(crate) fn run(options: &Options) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("the runtime does not start")?;
    runtime.block_on(async {
        tracing_subscriber::fmt()
            .with_max_level(tracing_subscriber::filter::LevelFilter::ERROR)
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal())
            .init();
        let answered = signal::until_asked(answer(options)).await;
        let Some(text) = answered else {
            anyhow::bail!("it was interrupted");
        };
        let mut stdout = std::io::stdout();
        match stdout
            .write_all(text?.as_bytes())
            .and_then(|()| stdout.flush())
        {
            // The reader has closed the pipe, as `head` does.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            written => Ok(written?),
        }
    })
}

/// Returns the text to print.
async fn answer(options: &Options) -> Result<String> {
    let client = connect(options).await?;
    let kind = kinds::find(&client, &options.kind).await?;
    // A namespace is ignored for a kind without namespaces, as kubectl does.
    let namespace = match (&options.namespace, kind.resource.scope()) {
        (_, Scope::Cluster) => None,
        _ if options.is_everywhere => None,
        (Some(namespace), _) => Some(namespace.clone()),
        (None, _) => Some(client.default_namespace().to_owned()),
    };
    // Columns and fields are checked against the schemas before all objects are read, which may take minutes.
    let columns = columns::columns(&client, &kind.resource, options).await?;
    let schemas = openapi::Schemas::of(&client, kind.resource.gvk()).await?;
    let fields = fields::fields(options, &columns, &schemas)?;
    let asked = read::Asked {
        kind: kind.resource.clone(),
        namespace: namespace.clone(),
        fields,
        wait_timeout: options.timeout,
    };
    let answer = read::answer(client, asked, &options.query).await?;
    let shown = output::Shown {
        kind: &kind,
        namespace: namespace.as_deref(),
        columns: &columns,
        options,
    };
    shown.text(&answer)
}

async fn connect(options: &Options) -> Result<Client> {
    Ok(match &options.kubeconfig {
        Some(path) => lariat_client::from_kubeconfig(path).await?,
        None => lariat_client::connect().await?,
    })
}
