//! Runs of the embedded cluster.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::runtime::Runtime;
use tokio::time;

use super::{bounds, start, sweep, watches, writes};
use crate::bench::Run;
use crate::options::Options;
use crate::report::Row;

pub(crate) const CASES: [&str; 16] = [
    "start",
    "idle",
    "load",
    "create",
    "get",
    "update",
    "apply",
    "delete",
    "create-pod",
    "update-pod",
    "create-owned",
    "collect",
    "empty",
    "watch",
    "churn",
    "unread",
];

/// Where the cluster keeps its objects.
pub(crate) const SUBJECTS: [&str; 2] = ["memory", "data"];

/// A run that takes longer has failed.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Returns the runs that were asked for.
pub(crate) fn plan(options: &Options) -> Vec<Run> {
    let subjects = if options.subjects.is_empty() {
        SUBJECTS.iter().map(|&subject| subject.to_owned()).collect()
    } else {
        options.subjects.clone()
    };
    let mut runs = Vec::new();
    for case in options.chosen_cases() {
        let clients = if options.handlers.is_empty() {
            clients(case).to_vec()
        } else {
            options.handlers.clone()
        };
        for subject in subjects.iter().filter(|subject| is_kept(case, subject)) {
            for &clients in &clients {
                let usual = [default_n(case, clients)];
                let n: &[usize] = if options.n.is_empty() {
                    &usual
                } else {
                    &options.n
                };
                let run = |&n: &usize| Run {
                    bench: options.bench.name.to_owned(),
                    case: case.to_owned(),
                    subject: subject.clone(),
                    n: Some(n),
                    handlers: Some(clients),
                    pods: None,
                    rate: None,
                };
                runs.extend(n.iter().map(run));
            }
        }
    }
    runs
}

/// Returns whether a case has something to do with where objects are kept.
fn is_kept(case: &str, subject: &str) -> bool {
    // These cases are about starting and about memory, which a file hardly changes.
    subject == "memory" || !matches!(case, "start" | "idle" | "churn" | "unread")
}

/// Returns with how many connections, or watchers, a case is run.
fn clients(case: &str) -> &'static [usize] {
    match case {
        "start" | "idle" | "load" | "collect" | "empty" => &[1],
        "watch" => &[1, 100],
        "churn" => &[4],
        "unread" => &[1, 50],
        _ => &[1, 16],
    }
}

fn default_n(case: &str, clients: usize) -> usize {
    match case {
        "start" => 50,
        "idle" => 1,
        "load" | "get" => 20_000,
        "collect" | "empty" => 12_000,
        "watch" if clients > 1 => 2_000,
        "unread" => 5_000,
        _ => 10_000,
    }
}

/// Runs one case once, in this process.
pub(crate) fn run(run: &Run) -> Result<Row> {
    Runtime::new()?.block_on(async {
        let measured = time::timeout(TIMEOUT, measure(run)).await;
        measured.context("it took too long")?
    })
}

async fn measure(run: &Run) -> Result<Row> {
    match run.case.as_str() {
        "start" => start::measure(run).await,
        "idle" => start::idle(run).await,
        "load" => start::load(run).await,
        "collect" | "empty" => sweep::measure(run).await,
        "watch" => watches::measure(run).await,
        "churn" => bounds::churn(run).await,
        "unread" => bounds::unread(run).await,
        // All others are requests about single objects, whose differences are in `writes::stage`.
        case if CASES.contains(&case) => writes::measure(run).await,
        other => bail!("no case {other:?}; --help lists them"),
    }
}
