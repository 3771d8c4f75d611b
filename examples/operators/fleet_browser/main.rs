//! Queries the state of 20,000 pods: conditions, order, pages and counts, at a prompt or over HTTP.
//!
//! The pods are watched once and kept in SQLite, fed by the shared informer. A query is a query string, as in the URL
//! of a list: `filter=status.phase=Running&sort=-metadata.creationTimestamp&page=1&pagesize=5`.
//!
//! Run: `cargo run -p lariat-operators --example fleet_browser --release` (on the embedded cluster), or with
//! `KUBECONFIG=…` on your own cluster. `-- 'summary=spec.nodeName&summaryonly'` runs one query, `-- --pods 500` browses
//! a smaller fleet, and `-- --serve 127.0.0.1:8080` serves a page to browse it until Ctrl-C.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser;
use lariat::cache::SharedCacheFactory;
use lariat::cluster::Load;
use lariat::prelude::*;
use lariat::sql::http::SqlService;
use lariat::sql::{Field, FieldType, Query, QueryResult, Schema, SqlCache, SqlKind};
use lariat_operators::{ExampleCluster, TextTable, arguments, exit_code, log_errors, say};
use serde_json::Value as Json;
use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The queries that run by default.
const STORY: [&str; 5] = [
    "page=1&pagesize=5",
    "filter=metadata.name~api&filter=status.phase=Running&sort=status.podIP&page=1&pagesize=5",
    "filter=spec.containers[*].image~-cache-,metadata.name~export&sort=-metadata.name&limit=5",
    "search=envoy&limit=3",
    "summary=status.phase&summaryonly",
];

/// Browses the pods of a cluster from an SQL cache
#[derive(Debug, Parser)]
#[command(
    bin_name = "cargo run -p lariat-operators --example fleet_browser --",
    max_term_width = 100
)]
struct Options {
    /// How many pods the embedded cluster has
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pods: usize,
    /// Serve a page to browse them
    #[arg(long, value_name = "ADDRESS")]
    serve: Option<SocketAddr>,
    /// What to ask, as a query of a URL: filter=status.phase=Running&limit=5
    #[arg(value_name = "QUESTION")]
    questions: Vec<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    log_errors();
    exit_code(&run().await)
}

async fn run() -> Result<()> {
    let Some(options) = arguments::<Options>()? else {
        return Ok(());
    };
    let (questions, address) = (options.questions, options.serve);
    let target = ExampleCluster::find(None).await?;
    say(format_args!("browsing the pods of {}", target.name));
    if let Some(cluster) = &target.embedded {
        cluster.load(Load::pods(options.pods)).await;
    }
    let pod = Gvk::new("", "v1", "Pod");
    let factory = SharedCacheFactory::new(target.client.clone());
    let sql = SqlCache::builder(&factory).kind(Schema::new(pod.clone(), fields()?)?);
    let sql = sql.wait_timeout(Duration::from_secs(120)).start().await?;
    let begun = Instant::now();
    factory.start();
    let pods = sql.kind(&pod)?;
    let all = pods.query(&Query::new().only_counts()).await?;
    let (total, took) = (all.total.unwrap_or_default(), begun.elapsed());
    say(format_args!("{total} pods are in SQLite after {took:.1?}"));

    let has_questions = !questions.is_empty();
    let story = STORY.into_iter().map(str::to_owned);
    let story = story.filter(|_| !has_questions && address.is_none());
    for question in questions.into_iter().chain(story) {
        ask(&pods, &question).await?;
    }
    if let Some(address) = address {
        serve(&sql, address).await?;
    } else if !has_questions && std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        prompt(&pods).await?;
    }
    sql.stop().await;
    factory.stop().await;
    target.leave().await;
    Ok(())
}

fn fields() -> Result<Vec<Field>> {
    Ok(vec![
        Field::path("spec.nodeName", FieldType::Text)?,
        Field::path("status.phase", FieldType::Text)?,
        Field::path("status.podIP", FieldType::Ip)?,
        Field::path("spec.containers[*].image", FieldType::Text)?.searchable(),
    ])
}

/// Serves a page to browse the fleet, and its API, until Ctrl-C.
async fn serve(sql: &SqlCache, address: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
    let address = listener.local_addr()?;
    let stopping = CancellationToken::new();
    // Everyone who can reach the address sees the pods: use loopback.
    let service = SqlService::new(sql).open_to_everyone();
    let service = service.stop_with(stopping.clone()).serve_on(listener);
    let mut service = std::pin::pin!(service);
    let serving = async {
        say(format_args!("browse http://{address}/; end with Ctrl-C"));
        service.as_mut().await
    };
    tokio::select! {
        biased;
        // Polled first, so that a signal sent as soon as the address is printed ends it in good order.
        () = lariat::termination() => {}
        failed = serving => return Ok(failed?),
    }
    stopping.cancel();
    Ok(service.await?)
}

/// Answers lines until the end of the input.
async fn prompt(pods: &SqlKind) -> Result<()> {
    let fields: Vec<&str> = pods.schema().fields().iter().map(Field::name).collect();
    say(format_args!(
        "ask with {}; end with Ctrl-D",
        fields.join(", ")
    ));
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        if let Err(error) = ask(pods, line.trim()).await {
            say(format_args!("{error}"));
        }
    }
    Ok(())
}

async fn ask(pods: &SqlKind, question: &str) -> Result<()> {
    let query = Query::from_url(question).with_context(|| format!("the question {question:?}"))?;
    let begun = Instant::now();
    let answer = pods.query(&query).await?;
    say(format_args!("\n? {question}"));
    print(&answer)?;
    let took = begun.elapsed();
    let total = answer.total.map(|total| format!(" of {total}"));
    let (shown, total) = (answer.objects.len(), total.unwrap_or_default());
    say(format_args!("{shown}{total} pods in {took:.1?}"));
    Ok(())
}

fn print(answer: &QueryResult) -> Result<()> {
    for counts in &answer.summaries {
        let mut table = TextTable::new(&["value", "pods"]);
        for count in counts {
            table.row([count.value.clone(), count.objects.to_string()]);
        }
        table.print();
    }
    if answer.objects.is_empty() {
        return Ok(());
    }
    let mut table = TextTable::new(&["namespace", "name", "node", "phase", "address"]);
    for found in &answer.objects {
        let pod: Json = found.decode()?;
        let at = |pointer| {
            pod.pointer(pointer)
                .and_then(Json::as_str)
                .unwrap_or("-")
                .to_owned()
        };
        let pointers = [
            "/metadata/namespace",
            "/metadata/name",
            "/spec/nodeName",
            "/status/phase",
            "/status/podIP",
        ];
        table.row(pointers.map(at));
    }
    table.print();
    Ok(())
}
