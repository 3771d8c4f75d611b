//! Compares the embedded cluster with a genuine server, by random sequences of requests.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use futures::stream::{self, StreamExt};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use lariat_differential::bench::Bench;
use lariat_differential::compare::{Difference, Refusals};
use lariat_differential::generate::Generator;
use lariat_differential::known::{KNOWN, Known};
use lariat_differential::recording;
use lariat_differential::replay::embedded;
use lariat_differential::report::{Report, example};
use lariat_differential::shrink::shrink;
use lariat_differential::side::Side;
use lariat_differential::step::Sequence;
use tokio::time::Instant;

/// How often a sequence with an unknown difference is repeated.
const TRIALS_AGAIN: usize = 2;

/// Compares the embedded cluster with the genuine server of KUBECONFIG.
///
/// It ends with 1 if there is a difference that the file of known ones does not have.
#[derive(Debug, Parser)]
struct Options {
    /// What the sequences are made from.
    seed: u64,
    /// How many requests each server gets.
    count: usize,
    /// Only these kinds, such as Pod,Service.
    #[arg(long, value_delimiter = ',')]
    kinds: Vec<String>,
    /// Only the sequence of this number.
    #[arg(long, value_name = "NUMBER")]
    only: Option<usize>,
    /// The file of known differences.
    #[arg(long, value_name = "FILE")]
    known: Option<PathBuf>,
    /// Shrink at most this many classes, the most frequent first
    #[arg(long, value_name = "CLASSES", default_value_t = 20)]
    shrink: usize,
    /// Record the sequences with the genuine server's answers, unknown differences in their shortest form
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// How many sequences are tried at the same time.
    #[arg(long, default_value_t = 16)]
    jobs: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Options::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Returns whether all differences are known.
async fn run(options: Options) -> Result<bool> {
    let known = match &options.known {
        Some(path) => std::fs::read_to_string(path).with_context(|| path.display().to_string())?,
        None => KNOWN.to_owned(),
    };
    let known = Known::read(&known).context("the known differences")?;
    // First, since it is what may be missing.
    let genuine = genuine().await?;
    let (cluster, lariat) = embedded().await?;
    let bench = Bench::new(genuine, lariat).await?;
    bench.check_controllers().await?;

    let mut kinds = bench.kinds().await?;
    let foreign = bench.sweep(&kinds).await?;
    if !foreign.is_empty() {
        let names = foreign.join(", ");
        eprintln!("warning: the genuine server has objects of others, which lists show: {names}");
    }
    if !options.kinds.is_empty() {
        kinds.retain(|kind| options.kinds.contains(&kind.kind));
    }
    if kinds.is_empty() {
        bail!("the genuine server serves none of the kinds");
    }
    let generator = Generator::new(options.seed, kinds);
    let sequences = sequences(&generator, &options);
    let mut report = compare(&bench, &known, sequences.clone(), options.jobs).await?;
    let shortened = shorten(&bench, &known, &mut report, &options).await;
    if let Some(path) = &options.record {
        let shortened = shortened
            .iter()
            .map(|class| &report.classes[class].sequence);
        record(&bench, &sequences, shortened.cloned().collect(), path).await?;
    }
    bench.end().await;
    cluster.shutdown().await;
    Ok(print(&report, &known))
}

async fn genuine() -> Result<Side> {
    let given = std::env::var_os("KUBECONFIG").filter(|paths| !paths.is_empty());
    if given.is_none() {
        bail!("KUBECONFIG names no file; it must be that of a genuine server to compare with");
    }
    let kubeconfig = Kubeconfig::from_env()?.context("KUBECONFIG")?;
    let options = KubeConfigOptions::default();
    let side = Side::new(Config::from_custom_kubeconfig(kubeconfig, &options).await?)?;
    side.get("/version")
        .await
        .context("the genuine server does not answer")?;
    Ok(side)
}

fn sequences(generator: &Generator, options: &Options) -> Vec<Sequence> {
    if let Some(number) = options.only {
        return vec![generator.sequence(number)];
    }
    // Whole sequences only, so that the last one may go over the count.
    let mut requests = 0;
    let counted = (0..)
        .map(|number| generator.sequence(number))
        .take_while(|sequence| {
            let goes_on = requests < options.count;
            requests += sequence.steps.len();
            goes_on
        });
    counted.collect()
}

async fn compare(
    bench: &Bench,
    known: &Known,
    sequences: Vec<Sequence>,
    jobs: usize,
) -> Result<Report> {
    let (begun, all) = (Instant::now(), sequences.len());
    let mut report = Report::default();
    let trials = sequences.into_iter().map(async |sequence| {
        let mut found = bench.run(&sequence).await?;
        let is_known = |found: &[Difference]| {
            let mut found = found.iter();
            found.all(|difference| known.name(&difference.class).is_some())
        };
        let before = found.differences.len();
        // What is not met again was a matter of time.
        for _ in 0..TRIALS_AGAIN {
            if is_known(&found.differences) {
                break;
            }
            let again = bench.run(&sequence).await?;
            let again = again.differences.iter();
            let classes: BTreeSet<&String> = again.map(|difference| &difference.class).collect();
            let differences = &mut found.differences;
            differences.retain(|difference| classes.contains(&difference.class));
        }
        let unsteady = found.differences.len() < before;
        anyhow::Ok((sequence, found, unsteady))
    });
    let mut trials = stream::iter(trials).buffer_unordered(jobs);
    let (mut done, mut shown) = (0, Instant::now());
    while let Some(tried) = trials.next().await {
        let (sequence, found, unsteady) = tried?;
        done += 1;
        report.unsteady += usize::from(unsteady);
        report.add(&sequence, found);
        if shown.elapsed() > Duration::from_secs(5) {
            shown = Instant::now();
            let classes = report.classes.len();
            eprintln!(
                "{done} of {all} sequences, {} requests, {classes} classes, {:?}",
                report.requests,
                begun.elapsed()
            );
        }
    }
    eprintln!("{} requests in {:.0?}", report.requests, begun.elapsed());
    Ok(report)
}

/// Looks for the shortest sequence of unknown classes; returns those classes.
async fn shorten(
    bench: &Bench,
    known: &Known,
    report: &mut Report,
    options: &Options,
) -> Vec<String> {
    let unknown = report
        .by_count()
        .into_iter()
        .filter(|(name, _)| known.name(name).is_none());
    let classes: Vec<_> = unknown
        .take(options.shrink)
        .map(|(_, class)| class.clone())
        .collect();
    let shrunk = classes
        .into_iter()
        .map(async |class| shrink(bench, &class.sequence, &class.difference).await);
    let mut shrunk = stream::iter(shrunk).buffer_unordered(options.jobs);
    let mut names = Vec::new();
    while let Some((sequence, difference)) = shrunk.next().await {
        let name = difference.class.clone();
        if let Some(class) = report.classes.get_mut(&name) {
            class.sequence = sequence;
            class.difference = difference;
        }
        names.push(name);
    }
    names
}

/// Records the sequences, each that was shortened in the form it has now.
async fn record(
    bench: &Bench,
    all: &[Sequence],
    shortened: Vec<Sequence>,
    path: &Path,
) -> Result<()> {
    let is_whole = |each: &&Sequence| shortened.iter().all(|other| other.number != each.number);
    let mut recordings = Vec::new();
    // One after the other, so that lists show nothing of other sequences.
    for sequence in all.iter().filter(is_whole).chain(&shortened) {
        recordings.push(bench.record(sequence).await?);
    }
    recording::write(path, &recordings)
}

/// Writes what was found; returns whether all of it is known.
fn print(report: &Report, known: &Known) -> bool {
    let counts: BTreeMap<String, usize> = report
        .classes
        .iter()
        .map(|(name, class)| (name.clone(), class.count))
        .collect();
    let (found, unknown): (Vec<_>, Vec<_>) = report
        .by_count()
        .into_iter()
        .partition(|(name, _)| known.name(name).is_some());
    let mut written = format!("# {} requests on each server\n\n", report.requests);
    let Refusals { genuine, same } = report.refused;
    written += &format!(
        "{genuine} refused by the genuine server, {same} of them for the same reasons by the embedded cluster\n"
    );
    written += &format!(
        "{} unknown classes, {} known ones; {} sequences differed once and not again\n\n",
        unknown.len(),
        found.len(),
        report.unsteady
    );
    for (name, class) in &unknown {
        written += &format!("{:>5}  {name}\n", class.count);
    }
    written += "\n";
    for (_, class) in &unknown {
        written += &example(class);
    }
    written += &format!("# Known\n\n{}", known.summary(&counts));
    // Whoever reads it may have ended.
    let _ = std::io::stdout().write_all(written.as_bytes());
    unknown.is_empty()
}
