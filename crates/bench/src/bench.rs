//! What a benchmark is, and a run of one.

use serde::{Deserialize, Serialize};

use crate::report::{Column, Row};

/// One benchmark.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) cases: &'static [&'static str],
    pub(crate) subjects: &'static [&'static str],
    /// What `n` counts, and what it is by default.
    pub(crate) n_means: &'static str,
    pub(crate) columns: &'static [Column],
}

/// One run: one case of one subject.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) bench: String,
    pub(crate) case: String,
    pub(crate) subject: String,
    pub(crate) n: Option<usize>,
    pub(crate) handlers: Option<usize>,
    /// How many pods the server has; none means that there is no server.
    pub(crate) pods: Option<usize>,
    /// How many changes a second the server sends, if not as many as it can.
    pub(crate) rate: Option<usize>,
}

impl Run {
    /// Begins the row of this run.
    pub(crate) fn row(&self) -> Row {
        Row {
            bench: self.bench.clone(),
            case: self.case.clone(),
            subject: self.subject.clone(),
            n: self.n.unwrap_or_default(),
            handlers: self.handlers,
            rate: self.rate,
            ..Row::default()
        }
    }
}
