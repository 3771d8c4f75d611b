//! Reads a kind once, and queries it.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use http::Request;
use kube::{Client, Error};
use lariat_cache::{Informer, InitialList, KindOptions, Phase, Selection, SharedCacheFactory};
use lariat_core::ResourceKind;
use lariat_sql::{Field, Query, QueryResult, Schema, SqlCache};
use tokio::time;

/// The delay and the period of progress messages: on a terminal, and elsewhere.
const QUIET: Duration = Duration::from_secs(1);
const ON_TERMINAL: Duration = Duration::from_millis(250);
const ELSEWHERE: Duration = Duration::from_secs(10);

/// What is read.
pub(super) struct Asked {
    pub(super) kind: ResourceKind,
    /// None for all.
    pub(super) namespace: Option<String>,
    pub(super) fields: Vec<Field>,
    pub(super) wait_timeout: Duration,
}

/// Reads the kind, and answers the query.
pub(super) async fn answer(client: Client, asked: Asked, query: &Query) -> Result<QueryResult> {
    let gvk = asked.kind.gvk();
    may_be_read(&client, &asked).await?;
    // A watch is not needed; the right to list is enough.
    let mut options = KindOptions::default().initial_list(InitialList::List);
    if let Some(namespace) = &asked.namespace {
        options = options.selection(Selection::all().in_namespaces([namespace]));
    }
    let factory = SharedCacheFactory::builder(client)
        .kind_options(gvk.clone(), options)
        .build();
    let informer = factory.for_resource_kind(&asked.kind);
    let schema = Schema::new(gvk.clone(), asked.fields)?;
    let sql = SqlCache::builder(&factory)
        .kind(schema)
        .wait_timeout(asked.wait_timeout)
        .start()
        .await?;
    factory.start();
    let kind = sql.kind(gvk)?;
    let answer = tokio::select! {
        answer = kind.query(query) => answer,
        // The progress never ends by itself; the match has no arms because its type has no values.
        never = progress(&informer, asked.kind.plural()) => match never {},
    };
    // The SQL cache first: it reads from the informers of the factory.
    sql.stop().await;
    factory.stop().await;
    answer.map_err(|error| anyhow!("{}", lariat_core::describe(&error)))
}

/// Lists one object first, so that a missing permission fails at once.
async fn may_be_read(client: &Client, asked: &Asked) -> Result<()> {
    let path = asked.kind.collection_path(asked.namespace.as_deref());
    // An informer would wait for the permission and try again, as a controller has to.
    let request = Request::get(format!("{path}?limit=1")).body(Vec::new())?;
    let read = client
        .request_text(request)
        .await
        .map(drop)
        .map_err(|error| match error {
            Error::Api(status) => anyhow!("{}", status.message),
            error => anyhow!("{}", lariat_core::describe(&error)),
        });
    read.with_context(|| format!("cannot read {}", asked.kind.plural()))
}

/// An uninhabited type.
enum Never {}

/// Prints the progress of the informer, if it takes long.
async fn progress(informer: &Informer, plural: &str) -> Never {
    time::sleep(QUIET).await;
    let is_terminal = std::io::stderr().is_terminal();
    // Dropped with this future, when the answer has come.
    let _line = is_terminal.then(|| Line);
    loop {
        let phase = match informer.status().phase {
            Phase::Synced => "all are read, and are being indexed".to_owned(),
            phase => phase.to_string(),
        };
        let mut stderr = std::io::stderr();
        // Failing to print progress is no error.
        let _ = if is_terminal {
            write!(stderr, "\r\x1b[Kreading {plural}: {phase}")
        } else {
            writeln!(stderr, "reading {plural}: {phase}")
        };
        time::sleep(if is_terminal { ON_TERMINAL } else { ELSEWHERE }).await;
    }
}

/// Clears the terminal's line of progress when it is dropped.
struct Line;

impl Drop for Line {
    fn drop(&mut self) {
        eprint!("\r\x1b[K");
    }
}
