//! Runs of the SQL cache.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::runtime::Runtime;
use tokio::time;

use super::questions::Question;
use super::{cached, naive, questions};
use crate::bench::Run;
use crate::meter::{self, Meter};
use crate::options::Options;
use crate::process::{hear, say};
use crate::report::Row;
use crate::target::Target;

/// The first sync, changes, and the questions in [`questions`].
pub(crate) const CASES: [&str; 8] = [
    "load", "storm", "page", "broad", "keyset", "search", "summary", "total",
];

/// What answers the queries.
///
/// `store` is a scan of the informer's store, and `list` a list from the API server that the client sorts.
pub(crate) const SUBJECTS: [&str; 6] = [
    "memory",
    "file",
    "memory-sealed",
    "file-sealed",
    "store",
    "list",
];

/// How many pods there are, unless it is said.
const PODS: usize = 100_000;

/// How long a process may calm down before its memory is looked at.
const SETTLING: Duration = Duration::from_secs(3);

/// A run that takes longer has failed.
const TIMEOUT: Duration = Duration::from_secs(1_800);

/// How long a query is repeated, per pod: three seconds with all pods.
const ASKING: Duration = Duration::from_micros(30);

/// How often it is repeated at least, and at most.
const LEAST: usize = 5;

const MOST: usize = 2_000;

/// Returns the runs that were asked for: one for each subject, with all cases.
pub(crate) fn plan(options: &Options) -> Vec<Run> {
    let subjects = if options.subjects.is_empty() {
        SUBJECTS.map(str::to_owned).to_vec()
    } else {
        options.subjects.clone()
    };
    let n = if options.n.is_empty() {
        vec![PODS]
    } else {
        options.n.clone()
    };
    let cases = options.chosen_cases().join(",");
    let mut runs = Vec::new();
    for n in n {
        runs.extend(subjects.iter().map(|subject| Run {
            bench: options.bench.name.to_owned(),
            case: cases.clone(),
            subject: subject.clone(),
            n: Some(n),
            handlers: None,
            pods: Some(n),
            rate: None,
        }));
    }
    runs
}

/// Returns how many of so many pods change.
pub(crate) fn changes(pods: usize) -> usize {
    (pods / 5).max(1)
}

/// Returns whether pods change in a run.
pub(crate) fn storms(run: &Run) -> bool {
    run.subject != "list" && run.case.split(',').any(|case| case == "storm")
}

/// Runs the cases of one subject, in this process.
pub(crate) fn run(run: &Run, target: &Target) -> Result<Vec<Row>> {
    Runtime::new()?.block_on(async {
        let measured = time::timeout(TIMEOUT, measure(run, target)).await;
        measured.context("it took too long")?
    })
}

/// What is measured.
enum Subject {
    Cached(cached::Cached),
    Store(naive::Store),
    List(naive::Lists),
}

impl Subject {
    async fn start(run: &Run, target: &Target) -> Result<Self> {
        Ok(match run.subject.as_str() {
            "store" => Self::Store(naive::Store::start(target).await?),
            "list" => Self::List(naive::Lists::new(target).await?),
            subject => Self::Cached(cached::Cached::start(subject, target).await?),
        })
    }

    /// Waits until it is at a version, the first one if there is none.
    async fn reach(&self, version: Option<u64>) -> Result<()> {
        match self {
            Self::Cached(cached) => cached.reach(version).await,
            Self::Store(store) => store.reach(version).await,
            Self::List(_) => Ok(()),
        }
    }

    /// Answers a question; returns how many objects or counts that were.
    async fn ask(&mut self, question: &Question, turn: usize) -> Result<usize> {
        match self {
            Self::Cached(cached) => cached.ask(question, turn).await,
            Self::Store(store) => store.ask(question, turn),
            Self::List(lists) => lists.ask(question, turn).await,
        }
    }

    fn file_mb(&self) -> Option<f64> {
        match self {
            Self::Cached(cached) => cached.file_mb(),
            _ => None,
        }
    }
}

async fn measure(run: &Run, target: &Target) -> Result<Vec<Row>> {
    let cases: Vec<&str> = run.case.split(',').collect();
    let mut rows = Vec::new();
    let meter = Meter::begin();
    let mut subject = Subject::start(run, target).await?;
    subject.reach(None).await?;
    let is_list = matches!(subject, Subject::List(_));
    if cases.contains(&"load") && !is_list {
        rows.push(loaded(run, &subject, &meter).await);
    }
    for question in questions::all(run.n.unwrap_or(1)) {
        if cases.contains(&question.case) {
            rows.push(asked(run, &mut subject, &question).await?);
        }
    }
    if storms(run) {
        // Last, because the questions are about pods as they were loaded.
        rows.push(stormed(run, &subject).await?);
    }
    Ok(rows)
}

fn row(run: &Run, case: &str, n: usize) -> Row {
    Row {
        case: case.to_owned(),
        n,
        ..run.row()
    }
}

async fn loaded(run: &Run, subject: &Subject, meter: &Meter) -> Row {
    let n = run.n.unwrap_or(1);
    let mut row = row(run, "load", n);
    (row.wall_s, row.cpu_s) = meter.seconds();
    row.ops_per_s = n as f64 / row.wall_s;
    row.file_mb = subject.file_mb();
    row.peak_rss_mb = Some(meter::peak_mb());
    time::sleep(SETTLING).await;
    row.steady_rss_mb = Some(meter::resident_mb());
    row
}

/// Asks a question for a while, each time about something else.
async fn asked(run: &Run, subject: &mut Subject, question: &Question) -> Result<Row> {
    let mut times = Vec::new();
    let asking = ASKING * u32::try_from(run.n.unwrap_or(1))?;
    // What only the first one pays, such as where the thousandth page begins, is not timed.
    let mut found = subject.ask(question, 0).await?;
    meter::forget_peak()?;
    let meter = Meter::begin();
    let begun = meter::now();
    let mut last = begun;
    while times.len() < LEAST || (times.len() < MOST && last - begun < asking) {
        found += subject.ask(question, times.len() + 1).await?;
        let now = meter::now();
        times.push((now - last).as_secs_f64() * 1e6);
        last = now;
    }
    ensure!(found > 0, "{} finds nothing", question.case);
    // `n` is how often it was asked here, not the number of pods.
    let mut row = row(run, question.case, times.len());
    (row.wall_s, row.cpu_s) = meter.seconds();
    row.ops_per_s = times.len() as f64 / row.wall_s;
    row.peak_rss_mb = Some(meter::peak_mb());
    row.spread(times);
    Ok(row)
}

/// Changes a fifth of the pods, and waits until the last change is read.
async fn stormed(run: &Run, subject: &Subject) -> Result<Row> {
    let changes = changes(run.n.unwrap_or(1));
    let mut row = row(run, "storm", changes);
    say("ready")?;
    // Meanwhile the server makes the changes, and publishes none of them.
    let floor = tokio::task::spawn_blocking(|| hear("go")).await??;
    meter::forget_peak()?;
    let meter = Meter::begin();
    say("going")?;
    // Nothing but the pods changes, and each of them once.
    subject
        .reach(Some(floor.parse::<u64>()? + changes as u64))
        .await?;
    (row.wall_s, row.cpu_s) = meter.seconds();
    row.ops_per_s = changes as f64 / row.wall_s;
    row.file_mb = subject.file_mb();
    row.peak_rss_mb = Some(meter::peak_mb());
    time::sleep(SETTLING).await;
    row.steady_rss_mb = Some(meter::resident_mb());
    Ok(row)
}
