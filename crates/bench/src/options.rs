//! What is to be run.

use crate::bench::Bench;
use crate::target::Target;

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

impl Options {
    /// Returns the cases that are to be run.
    pub(crate) fn chosen_cases(&self) -> Vec<&str> {
        if self.cases.is_empty() {
            self.bench.cases.to_vec()
        } else {
            self.cases.iter().map(String::as_str).collect()
        }
    }
}
