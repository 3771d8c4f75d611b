//! The command line.

use anyhow::{Result, bail};

use crate::queue;

/// What to run.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// One case; all without it.
    pub(crate) case: Option<String>,
    /// One subject; all without it.
    pub(crate) subject: Option<String>,
    /// How many keys or adds; each case has its own default.
    pub(crate) n: Option<usize>,
    /// How often each is run; the run in the middle counts.
    pub(crate) runs: usize,
    pub(crate) json: bool,
    /// This process is one run.
    pub(crate) child: bool,
}

impl Options {
    /// Reads the arguments; `None` if help is asked for.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Self>> {
        let mut options = Self {
            runs: 3,
            ..Self::default()
        };
        match (arguments.next().as_deref(), arguments.next().as_deref()) {
            (Some("run"), Some("queue")) => {}
            (None | Some("--help" | "-h"), _) => return Ok(None),
            (Some("run"), Some(other)) => bail!("no benchmark {other:?}; there is: queue"),
            _ => bail!("begin with: run queue"),
        }
        while let Some(argument) = arguments.next() {
            let mut value = || match arguments.next() {
                Some(value) => Ok(value),
                None => bail!("{argument} needs a value behind it"),
            };
            match argument.as_str() {
                "--case" => options.case = Some(value()?),
                "--subject" => options.subject = Some(value()?),
                "--n" => options.n = Some(number(&value()?)?),
                // Part of every benchmark's command line; a queue has none.
                "--handlers" => drop(number(&value()?)?),
                "--runs" => options.runs = number(&value()?)?,
                "--json" => options.json = true,
                "--child" => options.child = true,
                "--help" | "-h" => return Ok(None),
                other => bail!("unknown option {other:?}; --help lists what there is"),
            }
        }
        Ok(Some(options))
    }
}

fn number(text: &str) -> Result<usize> {
    match text.replace('_', "").parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => bail!("{text:?} is no number above 0"),
    }
}

pub(crate) fn print_usage() {
    println!("cargo run --release -p lariat-bench -- run queue [OPTIONS]\n");
    println!("  --case CASE        one case: {}", queue::CASES.join(", "));
    println!(
        "  --subject SUBJECT  one subject: {}",
        queue::SUBJECTS.join(", ")
    );
    println!("  --n N              keys or adds, instead of the case's own number");
    println!("  --runs N           runs of each, of which the median counts (3)");
    println!("  --json             one JSON object per line and run");
}
