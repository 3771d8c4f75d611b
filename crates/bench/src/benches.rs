//! The benchmarks there are, and which runs each consists of.

use crate::bench::{Bench, Run};
use crate::options::Options;
use crate::report::{self as column, Column};
use crate::{cluster, live, queue, sql, subjects};

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

/// All benchmarks.
pub(crate) static BENCHES: [Bench; 9] = [
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
    },
    Bench {
        name: "storm",
        about: "pods change as fast as the client reads, until every handler has seen the last states",
        cases: &["metadata", "typed"],
        subjects: &subjects::WITH_FLOOR,
        n_means: "changes (200,000)",
        columns: &STORM_COLUMNS,
    },
    Bench {
        name: "fanout",
        about: "the storm over 1, 10 and 100 handlers; 100 of kube-rs, each with a copy of all pods, are left out",
        cases: &["metadata", "typed"],
        subjects: &subjects::SUBJECTS,
        n_means: "changes (50,000); kube-rs has 20,000 at most with several handlers",
        columns: &STORM_COLUMNS,
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
    },
];

/// Returns the runs that were asked for.
pub(crate) fn plan(options: &Options) -> Vec<Run> {
    match options.bench.name {
        "queue" => queue::plan(options),
        "latency" => live::plan_latency(options),
        "reads" => live::plan_reads(options),
        "sql" => sql::plan(options),
        "cluster" => cluster::plan(options),
        _ => live::plan(options),
    }
}
