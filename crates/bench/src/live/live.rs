//! Runs beside a server.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::runtime::{Builder, Runtime};
use tokio::time;

use super::job::{MOST_CHANGES, PODS, fits, storms};
use super::{latency, reads, relist, storm, sync};
use crate::bench::Run;
use crate::options::Options;
use crate::report::Row;
use crate::target::Target;

/// A run that takes longer has failed.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Returns the runs of a benchmark with handlers.
pub(crate) fn plan(options: &Options) -> Vec<Run> {
    let bench = options.bench;
    let n = match (options.n.is_empty(), bench.name) {
        (false, _) => options.n.clone(),
        (true, "sync") => vec![20_000],
        (true, "storm") => vec![200_000],
        (true, "fanout") => vec![50_000],
        (true, _) => vec![PODS],
    };
    let handlers = match (options.handlers.is_empty(), bench.name) {
        (false, _) => options.handlers.clone(),
        (true, "fanout") => vec![1, 10, 100],
        (true, _) => vec![1, 10],
    };
    // Only storms have a rate, and as a rule they have none.
    let rates: Vec<Option<usize>> = if options.rates.is_empty() {
        vec![None]
    } else {
        options.rates.iter().copied().map(Some).collect()
    };
    let mut runs = Vec::new();
    for (&n, &rate) in n
        .iter()
        .flat_map(|n| rates.iter().map(move |rate| (n, rate)))
    {
        let pods = if storms(bench.name) {
            options.pods.unwrap_or(PODS)
        } else {
            n
        };
        for case in options.chosen_cases() {
            for &handlers in &handlers {
                let subjects = subjects_of(options, case, handlers);
                let run = |subject: String| Run {
                    n: Some(amount(bench.name, &subject, n, handlers)),
                    bench: bench.name.to_owned(),
                    case: case.to_owned(),
                    subject,
                    handlers: Some(handlers),
                    pods: Some(pods),
                    rate,
                };
                runs.extend(subjects.into_iter().map(run).filter(fits));
            }
        }
    }
    runs
}

fn amount(bench: &str, subject: &str, n: usize, handlers: usize) -> usize {
    match subject {
        "kube-rs" if storms(bench) && handlers > 1 => n.min(MOST_CHANGES),
        _ => n,
    }
}

/// Returns who is compared: kube-rs' shared stream where there is something to share.
fn subjects_of(options: &Options, case: &str, handlers: usize) -> Vec<String> {
    let has_floor = options.bench.name != "fanout" && options.bench.name != "relist";
    let usual = match handlers {
        1 if has_floor && matches!(case, "metadata" | "typed") => {
            &["lariat", "kube-rs", "floor", "floor-scan"][..]
        }
        1 => &["lariat", "kube-rs"],
        // There kube-rs is as its stable interface has it: each handler brings a watch and a store.
        _ if options.bench.name == "fanout" => &["lariat", "kube-rs"],
        // A shared stream has one type, and no dynamic one.
        _ if matches!(case, "mixed" | "dynamic") => &["lariat", "kube-rs"],
        _ => &["lariat", "kube-rs", "kube-rs-shared"],
    };
    if options.subjects.is_empty() {
        usual.iter().map(|&subject| subject.to_owned()).collect()
    } else {
        options.subjects.clone()
    }
}

/// Runs one subject once, in this process.
pub(crate) fn run(run: &Run, target: &Target) -> Result<Row> {
    match run.bench.as_str() {
        "sync" => within(run, sync::measure(run, target)),
        "storm" | "fanout" => within(run, storm::measure(run, target)),
        "latency" => within(run, latency::measure(run, target)),
        "relist" => within(run, relist::measure(run, target)),
        "reads" => within(run, reads::measure(run, target)),
        other => bail!("no benchmark {other:?}"),
    }
}

/// Runs a measurement on as many threads as there are processors.
fn within(run: &Run, measure: impl Future<Output = Result<Row>>) -> Result<Row> {
    // These subjects show what moving work between threads costs.
    let runtime: Runtime = if run.subject.ends_with("-one-thread") {
        Builder::new_current_thread().enable_all().build()?
    } else {
        Runtime::new()?
    };
    runtime.block_on(async {
        let measured = time::timeout(TIMEOUT, measure).await;
        measured.context("it took too long")?
    })
}
