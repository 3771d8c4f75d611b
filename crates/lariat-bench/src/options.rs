//! The command line.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use http::Uri;

use crate::bench::{Bench, Run};
use crate::target::Target;

/// What a process is to do.
#[derive(Debug)]
pub(crate) enum Command {
    Help,
    /// Runs benchmarks, each run in a process of its own.
    Run(Options),
    /// This process is one run.
    Child {
        run: Run,
        /// Its server, if it has one.
        target: Target,
    },
    /// Serves pods to those that run.
    Serve {
        pods: usize,
        modifications: usize,
    },
    /// Changes what is on a genuine server while others run.
    Attend {
        target: Target,
        /// How many pods it is to create.
        pods: usize,
    },
    /// Draws what was measured.
    Plot {
        files: Vec<String>,
    },
}

/// What to run; empty lists mean what is usual for the benchmark.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) bench: &'static Bench,
    pub(crate) cases: Vec<String>,
    pub(crate) subjects: Vec<String>,
    /// How many keys, objects or events.
    pub(crate) n: Vec<usize>,
    pub(crate) handlers: Vec<usize>,
    /// How many changes a second, where load has a rate.
    pub(crate) rates: Vec<usize>,
    /// How many pods there are where `n` counts changes of them.
    pub(crate) pods: Option<usize>,
    /// How often each is run.
    pub(crate) runs: usize,
    /// Whether the subjects of a case take turns.
    pub(crate) interleaves: bool,
    pub(crate) json: bool,
    pub(crate) genuine: Option<Genuine>,
}

/// A server that is used instead of the embedded one.
#[derive(Debug, Clone)]
pub(crate) struct Genuine {
    pub(crate) target: Target,
    /// Whether what is read is made for the run, in a namespace of its own.
    pub(crate) is_made: bool,
}

/// What is said of a genuine server.
#[derive(Debug, Default)]
struct Server<'a> {
    url: Option<&'a str>,
    kubeconfig: Option<&'a str>,
    creates: bool,
}

impl Command {
    /// Reads the command line, which may name one of these benchmarks.
    pub(crate) fn parse(
        arguments: impl Iterator<Item = String>,
        benches: &'static [Bench],
    ) -> Result<Self> {
        let arguments: Vec<String> = arguments.collect();
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        if words.is_empty() || words.iter().any(|word| matches!(*word, "--help" | "-h")) {
            return Ok(Self::Help);
        }
        match words[..] {
            ["run", bench, ref options @ ..] => {
                Ok(Self::Run(Options::parse(benches, bench, options)?))
            }
            ["child", run, target] => Ok(Self::Child {
                run: serde_json::from_str(run).context("a run")?,
                target: serde_json::from_str(target).context("a target")?,
            }),
            ["attend", target, pods] => Ok(Self::Attend {
                target: serde_json::from_str(target).context("a target")?,
                pods: pods.parse().context("a number of pods")?,
            }),
            ["serve", "--pods", pods] => Ok(Self::Serve {
                pods: number(pods)?,
                modifications: 0,
            }),
            ["serve", "--pods", pods, "--modifications", modifications] => Ok(Self::Serve {
                pods: number(pods)?,
                modifications: number(modifications)?,
            }),
            ["plot", ref files @ ..] => Ok(Self::Plot {
                files: files.iter().map(|&file| file.to_owned()).collect(),
            }),
            _ => bail!("begin with run, serve or plot; --help lists what there is"),
        }
    }
}

impl Options {
    fn parse(benches: &'static [Bench], bench: &str, options: &[&str]) -> Result<Self> {
        let found = benches.iter().find(|each| each.name == bench);
        let Some(bench) = found else {
            bail!(
                "no benchmark {bench:?}; there are: {}",
                names(benches).join(", ")
            );
        };
        let mut parsed = Self::usual(bench);
        let mut server = Server::default();
        let mut options = options.iter();
        while let Some(&option) = options.next() {
            let mut value = || match options.next() {
                Some(&value) => Ok(value),
                None => bail!("{option} needs a value behind it"),
            };
            match option {
                "--server" => server.url = Some(value()?),
                "--kubeconfig" => server.kubeconfig = Some(value()?),
                "--create" => server.creates = true,
                _ => parsed
                    .take(option, value)
                    .with_context(|| option.to_owned())?,
            }
        }
        parsed.genuine = server.check(bench)?;
        parsed.check()?;
        Ok(parsed)
    }

    /// Returns the cases that are to be run.
    pub(crate) fn chosen_cases(&self) -> Vec<&str> {
        if self.cases.is_empty() {
            self.bench.cases.to_vec()
        } else {
            self.cases.iter().map(String::as_str).collect()
        }
    }

    /// Returns the options of a benchmark about which nothing is said.
    fn usual(bench: &'static Bench) -> Self {
        Self {
            bench,
            cases: Vec::new(),
            subjects: Vec::new(),
            n: Vec::new(),
            handlers: Vec::new(),
            rates: Vec::new(),
            pods: None,
            runs: 3,
            interleaves: false,
            json: false,
            genuine: None,
        }
    }

    /// Takes in an option.
    fn take<'a>(&mut self, option: &str, value: impl FnOnce() -> Result<&'a str>) -> Result<()> {
        match option {
            "--case" => self.cases = known(value()?, self.bench.cases)?,
            "--subject" => self.subjects = known(value()?, self.bench.subjects)?,
            "--n" => self.n = numbers(value()?)?,
            "--handlers" => self.handlers = numbers(value()?)?,
            "--rate" => self.rates = numbers(value()?)?,
            "--pods" => self.pods = Some(number(value()?)?),
            "--runs" => self.runs = number(value()?)?,
            "--interleave" => self.interleaves = true,
            "--json" => self.json = true,
            _ => bail!("there is no such option; --help lists what there is"),
        }
        Ok(())
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

impl Server<'_> {
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
        let is_tls = self.url.map(is_tls).transpose()?;
        let kubeconfig = match (self.kubeconfig, is_tls) {
            (Some(file), _) => Some(PathBuf::from(file)),
            // Whoever has no TLS asks for no credentials.
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
                url: self.url.map(str::to_owned),
                kubeconfig,
                is_genuine: true,
                namespace: None,
            },
            is_made: bench.name != "sync" || self.creates,
        }))
    }

    /// Returns an option that was given.
    fn option(&self) -> Option<&'static str> {
        let url = self.url.map(|_| "--server");
        let kubeconfig = self.kubeconfig.map(|_| "--kubeconfig");
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
    let files = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let mut files = std::env::split_paths(&files).filter(|file| file != Path::new(""));
    match (files.next(), files.next()) {
        (Some(file), None) => Ok(file),
        (None, _) => {
            bail!("--server with https needs credentials: --kubeconfig FILE, or KUBECONFIG")
        }
        _ => bail!("KUBECONFIG names several files; --kubeconfig FILE says which is meant"),
    }
}

/// Reads names with commas between them, all of which must be known.
fn known(text: &str, names: &[&str]) -> Result<Vec<String>> {
    let check = |name: &str| {
        if names.contains(&name) {
            Ok(name.to_owned())
        } else {
            bail!("{name:?} is none of: {}", names.join(", "))
        }
    };
    text.split(',').map(check).collect()
}

fn numbers(text: &str) -> Result<Vec<usize>> {
    text.split(',').map(number).collect()
}

fn number(text: &str) -> Result<usize> {
    match text.replace('_', "").parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => bail!("{text:?} is no number above 0"),
    }
}

fn names(benches: &'static [Bench]) -> Vec<&'static str> {
    benches.iter().map(|bench| bench.name).collect()
}

pub(crate) fn print_usage(benches: &[Bench]) {
    println!("cargo run --release -p lariat-bench -- run BENCHMARK [OPTIONS]");
    println!("cargo run --release -p lariat-bench -- plot FILE... > PLOT.svg\n");
    for bench in benches {
        println!("  {}: {}", bench.name, bench.about);
        println!("    cases     {}", bench.cases.join(", "));
        println!("    subjects  {}", bench.subjects.join(", "));
        println!("    n         {}\n", bench.n_means);
    }
    println!("{OPTIONS}");
}

const OPTIONS: &str = "\
The floor is what nobody can be faster than who reads pods over Lariat's client: floor reads the same bytes
and throws them away line by line, floor-scan passes over the JSON of each line once besides, and floor-lists
reads pages before it watches. It is measured with one handler, beside the others, as long as no subjects are
chosen.

Options; of those with several values, each value is run:
  --case CASE,…        cases, instead of all
  --subject SUBJECT,…  subjects, instead of those that are compared as a rule
  --n N,…              how much there is to do
  --pods N             storm, fanout, latency: pods that are there (10,000); sync: the same as --n
  --handlers H,…       handlers, instead of 1 and 10 (fanout: and 100), where there are any
  --rate R,…           latency: changes a second in the case load (20,000; 600 on a genuine server), of which 200 are
                       timed: all below that, one in 100 above 20,000, and far above it they come as fast as is read
                       storm, fanout: changes a second, instead of as many as are read
                       queue: adds a second of delayed-paced (18,000)
  --runs N             runs of each (3); a row has the median of each value, with the least and the most
  --interleave         subjects take turns (A B C A B C) instead of being run N times each in a row (A A B B C C), so
                       that whatever else goes on meets all of them alike; with all numbers of handlers of a case
  --json               one JSON object per line and run, instead of medians

A genuine API server instead of the embedded one, for sync, storm and latency:
  --server URL         the server; with https, the kubeconfig says who asks
  --kubeconfig FILE    instead of KUBECONFIG; without --server, its current context says which server
  --create             sync: creates the pods (--n, --pods) in a namespace of its own, and deletes it at the end;
                       without it, sync reads the pods that are there, and writes nothing
storm and latency always create their pods in a namespace of their own, change them, and delete it at the end. No
scheduler takes these pods up. The server makes changes while the subject reads: in storm at --rate or as many as it
can, and in latency times begin when the request of a change is sent, so that what counts is the difference from the
floor. A row whose ops/s stay below its rate has met a server that could not keep up.

merged, in storm and fanout, counts changes for which a handler was not called, as a later one was there by then.

plot draws memory and CPU of `run sync --json`, from files that hold such lines.
serve --pods N [--modifications M] is the server that subjects read from: it prints `ready URL`, obeys `modify M`,
`probe N CROWD`, `release`, `pace R` and `expire` on its input, and ends with it.";
