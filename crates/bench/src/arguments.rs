//! The command line.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Parser, Subcommand};
use http::Uri;
use serde::de::DeserializeOwned;

use crate::bench::{Bench, Run};
use crate::benches::BENCHES;
use crate::options::{Genuine, Options};
use crate::target::Target;

/// Measures Lariat beside others
#[derive(Debug, Parser)]
#[command(bin_name = "lariat-bench", max_term_width = 120)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What a process is to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a benchmark, each run in a process of its own
    Run(Box<Asked>),
    /// Draw memory and CPU of `run sync --json`, from files that hold such lines
    Plot {
        #[arg(value_name = "FILE")]
        files: Vec<String>,
    },
    /// Serve pods to those that run
    ///
    /// Prints `ready URL`, executes the commands `modify M`, `probe N CROWD`, `release`, `pace R`, `expire` and `loads`
    /// from its input, and ends with it.
    Serve {
        #[arg(long, value_name = "N", value_parser = number)]
        pods: usize,
        #[arg(long, value_name = "M", value_parser = number)]
        modifications: Option<usize>,
    },
    /// Be one run
    #[command(hide = true)]
    Child {
        #[arg(value_parser = json::<Run>)]
        run: Box<Run>,
        /// Its server, if it has one.
        #[arg(value_parser = json::<Target>)]
        target: Box<Target>,
    },
    /// Scrape the metrics of a subject once a second
    #[command(hide = true)]
    Scrape {
        /// Where they are served.
        address: SocketAddr,
    },
    /// Change what is on a genuine server while others run
    #[command(hide = true)]
    Attend {
        #[arg(value_parser = json::<Target>)]
        target: Box<Target>,
        /// How many pods it is to create.
        pods: usize,
    },
}

/// What is asked for; of options with several values, each value is run.
#[derive(Debug, Args)]
#[command(after_help = benches(), after_long_help = format!("{}\n{EXPLAINED}", benches()))]
pub(crate) struct Asked {
    /// Which benchmark
    #[arg(value_name = "BENCHMARK")]
    bench: String,
    /// Cases, instead of all
    #[arg(long = "case", value_name = "CASE,...", value_delimiter = ',')]
    cases: Vec<String>,
    /// Subjects, instead of those that are compared as a rule
    #[arg(long = "subject", value_name = "SUBJECT,...", value_delimiter = ',')]
    subjects: Vec<String>,
    /// How much there is to do
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = number)]
    n: Vec<usize>,
    /// How many pods there are
    ///
    /// storm, fanout, latency: pods that are there (10,000); sync: the same as --n.
    #[arg(long, value_name = "N", value_parser = number)]
    pods: Option<usize>,
    /// Handlers, instead of 1 and 10 (fanout: and 100), where there are any
    #[arg(long, value_name = "H,...", value_delimiter = ',', value_parser = number)]
    handlers: Vec<usize>,
    /// Changes a second
    ///
    /// latency: in the case load (20,000; 600 on a genuine server), of which 200 are timed: all below that, one in 100
    /// above 20,000, and far above it they come as fast as is read. storm, fanout: instead of as many as are read.
    /// queue: adds a second of delayed-paced (18,000).
    #[arg(long = "rate", value_name = "R,...", value_delimiter = ',', value_parser = number)]
    rates: Vec<usize>,
    /// Runs of each; a row has the median of each value, with the least and the most
    #[arg(long, value_name = "N", value_parser = number, default_value = "3")]
    runs: usize,
    /// Let the subjects take turns (A B C A B C, not A A B B C C)
    ///
    /// So whatever else goes on meets all of them alike; with all numbers of handlers of a case.
    #[arg(long)]
    interleave: bool,
    /// Print one JSON object per line and run, instead of medians
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: Server,
}

/// A genuine API server instead of the embedded one, for sync, storm and latency.
#[derive(Debug, Args)]
#[command(next_help_heading = "A genuine server, for sync, storm and latency")]
struct Server {
    /// The server; with https, the kubeconfig says who asks
    #[arg(long = "server", value_name = "URL")]
    url: Option<String>,
    /// Instead of KUBECONFIG; without --server, its current context says which server
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Create the pods (--n, --pods) of sync in a namespace of its own
    ///
    /// It is deleted at the end. Without it, sync reads the pods that are there, and writes nothing.
    #[arg(long = "create")]
    creates: bool,
}

impl Options {
    /// Checks what is asked for.
    pub(crate) fn new(asked: Asked) -> Result<Self> {
        let found = BENCHES.iter().find(|each| each.name == asked.bench);
        let Some(bench) = found else {
            let names: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
            bail!(
                "no benchmark {:?}; there are: {}",
                asked.bench,
                names.join(", ")
            );
        };
        check_known(&asked.cases, bench.cases).context("--case")?;
        check_known(&asked.subjects, bench.subjects).context("--subject")?;
        let mut options = Self {
            bench,
            cases: asked.cases,
            subjects: asked.subjects,
            n: asked.n,
            handlers: asked.handlers,
            rates: asked.rates,
            pods: asked.pods,
            runs: asked.runs,
            interleaves: asked.interleave,
            json: asked.json,
            genuine: asked.server.check(bench)?,
        };
        options.check()?;
        Ok(options)
    }

    /// Checks what belongs together.
    fn check(&mut self) -> Result<()> {
        let bench = self.bench.name;
        match (bench, self.pods) {
            ("sync", Some(pods)) => {
                ensure!(self.n.is_empty(), "--pods and --n are the same in sync");
                self.n = vec![pods];
            }
            ("storm" | "fanout" | "latency", _) | (_, None) => {}
            _ => bail!("--pods is for sync, storm, fanout and latency; {bench} has --n"),
        }
        // An option that a benchmark would ignore is an error: its rows would look as if it had been obeyed.
        let has_rates = matches!(bench, "storm" | "fanout" | "latency" | "queue");
        ensure!(
            has_rates || self.rates.is_empty(),
            "--rate is for storm, fanout, latency and queue, not for {bench}"
        );
        let reads = self.genuine.as_ref().is_some_and(|server| !server.is_made);
        ensure!(
            !reads || self.n.is_empty(),
            "sync reads the pods that are on the server; {} of its own needs --create",
            if self.pods.is_some() { "--pods" } else { "--n" }
        );
        Ok(())
    }
}

impl Server {
    /// Returns the server that is used instead of the embedded one, if there is one.
    fn check(&self, bench: &Bench) -> Result<Option<Genuine>> {
        let Some(option) = self.option() else {
            return Ok(None);
        };
        ensure!(
            matches!(bench.name, "sync" | "storm" | "latency"),
            "{option} is for sync, storm and latency; {} has a server of its own",
            bench.name
        );
        ensure!(
            self.url.is_some() || self.kubeconfig.is_some(),
            "--create needs a server: --server URL, or --kubeconfig FILE"
        );
        let is_tls = self.url.as_deref().map(is_tls).transpose()?;
        let kubeconfig = match (&self.kubeconfig, is_tls) {
            (Some(file), _) => Some(file.clone()),
            // Without TLS no credentials are asked for.
            (None, Some(false)) => None,
            (None, _) => Some(from_environment()?),
        };
        if let Some(file) = &kubeconfig {
            ensure!(
                file.is_file(),
                "{}: there is no such kubeconfig",
                file.display()
            );
        }
        Ok(Some(Genuine {
            target: Target {
                url: self.url.clone(),
                kubeconfig,
                is_genuine: true,
                namespace: None,
            },
            // Only sync leaves the pods as they are; the others have to change pods, and never change those of others.
            is_made: bench.name != "sync" || self.creates,
        }))
    }

    /// Returns an option that was given.
    fn option(&self) -> Option<&'static str> {
        let url = self.url.as_ref().map(|_| "--server");
        let kubeconfig = self.kubeconfig.as_ref().map(|_| "--kubeconfig");
        url.or(kubeconfig)
            .or_else(|| self.creates.then_some("--create"))
    }
}

/// Returns whether a server's URL demands TLS.
fn is_tls(url: &str) -> Result<bool> {
    let uri: Option<Uri> = url.parse().ok();
    let scheme = uri.as_ref().filter(|uri| uri.host().is_some());
    match scheme.and_then(Uri::scheme_str) {
        Some("http") => Ok(false),
        Some("https") => Ok(true),
        _ => bail!("--server {url:?} is no URL of a server; it begins with http:// or https://"),
    }
}

/// Returns the kubeconfig of the environment.
fn from_environment() -> Result<PathBuf> {
    let list = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let mut files = std::env::split_paths(&list).filter(|file| file != Path::new(""));
    // A merge of several files, as kubectl makes one, might choose another user than the one that was meant.
    match (files.next(), files.next()) {
        (Some(file), None) => Ok(file),
        (None, _) => {
            bail!("--server with https needs credentials: --kubeconfig FILE, or KUBECONFIG")
        }
        _ => bail!("KUBECONFIG names several files; --kubeconfig FILE says which is meant"),
    }
}

fn check_known(given: &[String], names: &[&str]) -> Result<()> {
    let unknown = given.iter().find(|name| !names.contains(&name.as_str()));
    if let Some(name) = unknown {
        bail!("{name:?} is none of: {}", names.join(", "));
    }
    Ok(())
}

fn number(text: &str) -> Result<usize, &'static str> {
    // As in Rust, `20_000` is a number.
    match text.replace('_', "").parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("it is no number above 0"),
    }
}

/// Reads what the parent process hands over.
fn json<T: DeserializeOwned>(text: &str) -> Result<Box<T>, serde_json::Error> {
    serde_json::from_str(text).map(Box::new)
}

/// Lists the benchmarks.
fn benches() -> String {
    let mut text = String::from("Benchmarks:\n");
    for bench in &BENCHES {
        text.push_str(&format!("  {}: {}\n", bench.name, bench.about));
        text.push_str(&format!("    cases     {}\n", bench.cases.join(", ")));
        text.push_str(&format!("    subjects  {}\n", bench.subjects.join(", ")));
        text.push_str(&format!("    n         {}\n", bench.n_means));
    }
    text
}

const EXPLAINED: &str = "\
The floor bounds every program that reads pods over Lariat's client: floor reads the same bytes
and throws them away line by line, floor-scan passes over the JSON of each line once besides, and floor-lists
reads pages before it watches. It is measured with one handler, beside the others, as long as no subjects are
chosen.

On a genuine server storm and latency always create their pods in a namespace of their own, change them, and delete it
at the end. No scheduler takes these pods up. The server makes changes while the subject reads: in storm at --rate or as
many as it can, and in latency times begin when the request of a change is sent, so that what counts is the difference
from the floor. A row whose ops/s stay below its rate has met a server that could not keep up.

merged, in storm and fanout, counts changes for which a handler was not called, as a later one was there by then.

A run of storm, fanout or latency is void if its subject opened a watch again or listed again meanwhile: it has measured
something else. Such a run counts for no median, and its row says how many there were (\"void\" with --json).";
