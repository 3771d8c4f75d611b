//! The command line.

use anyhow::{Context, Result, bail};

use crate::bench::{BENCHES, Bench, Run};

/// What a process is to do.
#[derive(Debug)]
pub(crate) enum Command {
    Help,
    /// Runs benchmarks, each run in a process of its own.
    Run(Options),
    /// This process is one run.
    Child {
        run: Run,
        /// Where its server is, if it has one.
        url: String,
    },
    /// Serves pods to those that run.
    Serve {
        pods: usize,
        modifications: usize,
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
    /// How often each is run; the run in the middle counts.
    pub(crate) runs: usize,
    pub(crate) json: bool,
}

impl Command {
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Result<Self> {
        let arguments: Vec<String> = arguments.collect();
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        if words.is_empty() || words.iter().any(|word| matches!(*word, "--help" | "-h")) {
            return Ok(Self::Help);
        }
        match words[..] {
            ["run", bench, ref options @ ..] => Ok(Self::Run(Options::parse(bench, options)?)),
            ["child", run, url] => Ok(Self::Child {
                run: serde_json::from_str(run).context("a run")?,
                url: url.to_owned(),
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
    fn parse(bench: &str, options: &[&str]) -> Result<Self> {
        let found = BENCHES.iter().find(|each| each.name == bench);
        let Some(bench) = found else {
            bail!("no benchmark {bench:?}; there are: {}", names().join(", "));
        };
        let mut parsed = Self {
            bench,
            cases: Vec::new(),
            subjects: Vec::new(),
            n: Vec::new(),
            handlers: Vec::new(),
            rates: Vec::new(),
            runs: 3,
            json: false,
        };
        let mut options = options.iter();
        while let Some(&option) = options.next() {
            let mut value = || match options.next() {
                Some(&value) => Ok(value),
                None => bail!("{option} needs a value behind it"),
            };
            match option {
                "--case" => parsed.cases = known(value()?, bench.cases)?,
                "--subject" => parsed.subjects = known(value()?, bench.subjects)?,
                "--n" => parsed.n = numbers(value()?)?,
                "--handlers" => parsed.handlers = numbers(value()?)?,
                "--rate" => parsed.rates = numbers(value()?)?,
                "--runs" => parsed.runs = number(value()?)?,
                "--json" => parsed.json = true,
                other => bail!("unknown option {other:?}; --help lists what there is"),
            }
        }
        Ok(parsed)
    }
}

/// Reads names with commas between them, all of which must be known.
fn known(text: &str, names: &[&str]) -> Result<Vec<String>> {
    let check = |name: &str| match names.contains(&name) {
        true => Ok(name.to_owned()),
        false => bail!("{name:?} is none of: {}", names.join(", ")),
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

fn names() -> Vec<&'static str> {
    BENCHES.iter().map(|bench| bench.name).collect()
}

pub(crate) fn print_usage() {
    println!("cargo run --release -p lariat-bench -- run BENCHMARK [OPTIONS]");
    println!("cargo run --release -p lariat-bench -- plot FILE... > PLOT.svg\n");
    for bench in &BENCHES {
        println!("  {}: {}", bench.name, bench.about);
        println!("    cases     {}", bench.cases.join(", "));
        println!("    subjects  {}", bench.subjects.join(", "));
        println!("    n         {}\n", bench.n_means);
    }
    println!("Options; of those with several values, each value is run:");
    println!("  --case CASE,…        cases, instead of all");
    println!("  --subject SUBJECT,…  subjects, instead of those that are compared as a rule");
    println!("  --n N,…              how much there is to do");
    println!(
        "  --handlers H,…       handlers, instead of 1 and 10 (fanout: and 100), where there are any"
    );
    println!(
        "  --rate R,…           changes a second under load in latency (20,000); above that, one"
    );
    println!(
        "                       in 100 is timed, and far above it they come as fast as is read"
    );
    println!("  --runs N             runs of each, of which the median counts (3)");
    println!("  --json               one JSON object per line and run\n");
    println!("plot draws memory and CPU of `run sync --json`, from files that hold such lines.");
    println!("serve --pods N [--modifications M] is the server that subjects read from: it prints");
    println!(
        "`ready URL`, obeys `modify M`, `probe N CROWD`, `release`, `pace R` and `expire` on its"
    );
    println!("input, and ends with it.");
}
