//! The benchmarks there are, and which runs each consists of.

use serde::{Deserialize, Serialize};

use crate::options::Options;
use crate::report::{self as column, Column, Row};
use crate::{cluster, live, queue, sql, subjects};

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
    /// Returns the runs that were asked for.
    pub(crate) plan: fn(&Options) -> Vec<Run>,
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
    /// How many changes a second the server tells, if not as many as it can.
    pub(crate) rate: Option<usize>,
}

const STORM_COLUMNS: [Column; 9] = [
    column::WALL,
    column::CPU,
    column::CPU_PER_OP,
    column::OPS,
    column::BEFORE,
    column::PEAK,
    column::STEADY,
    column::HANDLER_RUNS,
    column::MERGED,
];

pub(crate) const BENCHES: [Bench; 9] = [
    Bench {
        name: "queue",
        about: "the work queue alone; delayed-paced is fed at a rate, delayed all at once",
        cases: &queue::CASES,
        subjects: &queue::SUBJECTS,
        n_means: "keys or adds; each case has its own number (delayed-paced: 40,000)",
        columns: &[
            column::WALL,
            column::CPU,
            column::OPS,
            column::PER_KEY,
            column::P50,
            column::P99,
        ],
        plan: queue::plan,
    },
    Bench {
        name: "sync",
        about: "from the start until every handler has seen every pod, as metadata or as some type",
        cases: &subjects::CASES,
        subjects: &subjects::WITH_FLOOR,
        n_means: "pods (20,000)",
        columns: &[
            column::WALL,
            column::CPU,
            column::OPS,
            column::PEAK,
            column::STEADY,
            column::PER_OBJECT,
        ],
        plan: live::plan,
    },
    Bench {
        name: "storm",
        about: "pods change as fast as the client reads, until every handler has seen the last states",
        cases: &["metadata", "typed"],
        subjects: &subjects::WITH_FLOOR,
        n_means: "changes (200,000)",
        columns: &STORM_COLUMNS,
        plan: live::plan,
    },
    Bench {
        name: "fanout",
        about: "the storm over 1, 10 and 100 handlers; 100 of kube-rs, each with a copy of all pods, are left out",
        cases: &["metadata", "typed"],
        subjects: &subjects::SUBJECTS,
        n_means: "changes (50,000); kube-rs has 20,000 at most with several handlers",
        columns: &STORM_COLUMNS,
        plan: live::plan,
    },
    Bench {
        name: "latency",
        about: "200 pods change a second, alone or among others: from the server's write until a handler has it",
        cases: &live::LATENCY_CASES,
        subjects: &live::LATENCY_SUBJECTS,
        n_means: "changes that are timed (2,000); under load kube-rs has 200 at most with several handlers",
        columns: &[
            column::RATE,
            column::WALL,
            column::CPU,
            column::OPS,
            column::P50,
            column::P99,
            column::HANDLER_RUNS,
        ],
        plan: live::plan_latency,
    },
    Bench {
        name: "relist",
        about: "the watch has expired, and one pod has changed; get, list: the longest a reader took",
        cases: &["metadata", "typed"],
        subjects: &subjects::SUBJECTS,
        n_means: "pods (10,000)",
        columns: &[
            column::SYNC_CPU,
            column::CPU,
            column::BEFORE,
            column::PEAK,
            column::STEADY,
            column::HANDLER_RUNS,
            column::GET,
            column::LIST,
            column::BLOCKED,
        ],
        plan: live::plan,
    },
    Bench {
        name: "reads",
        about: "one thread reads typed pods: by key, with others holding the value or not, and by label",
        cases: &live::READ_CASES,
        subjects: &live::READ_SUBJECTS,
        n_means: "pods (10,000)",
        columns: &[
            column::OPS,
            column::P50,
            column::P99,
            column::STEADY,
            column::PER_OBJECT,
        ],
        plan: live::plan_reads,
    },
    Bench {
        name: "sql",
        about: "pods in the SQL cache, beside a scan of the informer's store and a list from the server: load, changes, queries",
        cases: &sql::CASES,
        subjects: &sql::SUBJECTS,
        n_means: "pods (100,000), a fifth of which changes in storm",
        columns: &[
            column::WALL,
            column::CPU,
            column::OPS,
            column::P50,
            column::P99,
            column::STEADY,
            column::PEAK,
            column::FILE,
        ],
        plan: sql::plan,
    },
    Bench {
        name: "cluster",
        about: "the embedded cluster, as `lariat cluster` beside this program: start, memory, requests, watches",
        cases: &cluster::CASES,
        subjects: &cluster::SUBJECTS,
        n_means: "starts, objects or requests; each case has its own number; handlers are connections or watchers",
        columns: &[
            column::WALL,
            column::CPU,
            column::CPU_PER_OP,
            column::OPS,
            column::P50,
            column::P99,
            column::SYNC_CPU,
            column::BEFORE,
            column::STEADY,
            column::PEAK,
        ],
        plan: cluster::plan,
    },
];

impl Bench {
    /// Returns the cases that are to be run.
    pub(crate) fn cases<'a>(&'a self, options: &'a Options) -> Vec<&'a str> {
        if options.cases.is_empty() {
            self.cases.to_vec()
        } else {
            options.cases.iter().map(String::as_str).collect()
        }
    }
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
