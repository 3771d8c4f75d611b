//! Benchmarks of subjects that read pods from a server.

mod latency;
mod reads;
mod relist;
mod storm;
mod sync;

use std::future::Future;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::runtime::{Builder, Runtime};
use tokio::time;

use crate::bench::Run;
use crate::options::Options;
use crate::report::Row;
use crate::subjects;
use crate::target::Target;

pub(crate) use latency::{
    CASES as LATENCY_CASES, SUBJECTS as LATENCY_SUBJECTS, crowd, plan as plan_latency,
};
pub(crate) use reads::{CASES as READ_CASES, SUBJECTS as READ_SUBJECTS, plan as plan_reads};

/// Pods of the benchmarks in which they change.
const PODS: usize = 10_000;

/// How long a process may calm down before its memory is looked at.
const SETTLING: Duration = Duration::from_secs(3);

/// A run that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(600);

/// Runs of kube-rs that would need more memory than this are left out: each handler has a copy of all pods.
const MOST_KB: usize = 12_000_000;

/// What kube-rs takes for each copy of a pod, and for one of its metadata.
const COPY_KB: usize = 40;
const METADATA_COPY_KB: usize = 27;

/// With a watch for each of several handlers kube-rs is given so many changes at most: every one of them
/// is read and decoded as often as there are handlers.
const MOST_CHANGES: usize = 20_000;

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
        for case in bench.cases(options) {
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

/// Returns whether in a benchmark pods change as fast as they can.
pub(crate) fn storms(bench: &str) -> bool {
    matches!(bench, "storm" | "fanout")
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

/// Returns whether a run fits into memory, and says so if it does not.
fn fits(run: &Run) -> bool {
    let copies = run.pods.unwrap_or(0) * run.handlers.unwrap_or(1);
    let needs = match run.case.as_str() {
        "metadata" => copies * METADATA_COPY_KB,
        _ => copies * COPY_KB,
    };
    let fits = run.subject != "kube-rs" || needs <= MOST_KB;
    if !fits {
        eprintln!(
            "left out, because it would need about {} GB: {run:?}",
            needs / 1_000_000
        );
    }
    // Two handlers are the fewest that can differ; a cache alone has none.
    let has_handlers = !run.subject.ends_with("-reflector") && !subjects::is_floor(&run.subject);
    fits && !(run.case == "mixed" && run.handlers == Some(1))
        && (has_handlers || run.handlers == Some(1))
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

/// Runs a measurement as programs usually do, on as many threads as there are processors.
fn within(run: &Run, measure: impl Future<Output = Result<Row>>) -> Result<Row> {
    let runtime: Runtime = if run.subject.ends_with("-one-thread") {
        Builder::new_current_thread().enable_all().build()?
    } else {
        Runtime::new()?
    };
    runtime.block_on(async {
        let measured = time::timeout(PATIENCE, measure).await;
        measured.context("it took too long")?
    })
}

/// Returns the subject's job, with `tally` to tell how far it is.
fn job<'a>(run: &'a Run, target: &'a Target) -> subjects::Job<'a> {
    let (pods, handlers) = (run.pods.unwrap_or(0), run.handlers.unwrap_or(1));
    subjects::Job {
        subject: &run.subject,
        case: &run.case,
        // A storm's floor counts all lines.
        is_stamped: storms(&run.bench) && target.is_genuine && !subjects::is_floor(&run.subject),
        target,
        tally: subjects::Tally::new(pods, handlers, target.has_own_pods()),
    }
}
