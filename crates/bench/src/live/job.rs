//! What runs beside a server have in common.

use std::time::Duration;

use crate::bench::Run;
use crate::subjects;
use crate::target::Target;

/// Pods of the benchmarks in which they change.
pub(crate) const PODS: usize = 10_000;

/// How long a process may calm down before its memory is looked at.
pub(crate) const SETTLING: Duration = Duration::from_secs(3);

/// Runs of kube-rs that would need more memory than this are left out: each handler has a copy of all pods.
const MOST_KB: usize = 12_000_000;

/// What kube-rs takes for each copy of a pod, and for one of its metadata.
const COPY_KB: usize = 40;

const METADATA_COPY_KB: usize = 27;

/// The most changes for kube-rs with a watch for each of several handlers.
///
/// Each change is read and decoded as often as there are handlers.
pub(crate) const MOST_CHANGES: usize = 20_000;

/// Returns whether a run fits into memory, and says so if it does not.
pub(crate) fn fits(run: &Run) -> bool {
    let copies = run.pods.unwrap_or(0) * run.handlers.unwrap_or(1);
    let needs = match run.case.as_str() {
        "metadata" => copies * METADATA_COPY_KB,
        _ => copies * COPY_KB,
    };
    let fits = run.subject != "kube-rs" || needs <= MOST_KB;
    if !fits {
        eprintln!(
            "left out, because it would need about {} GB: {run:?}",
            needs / 1_000_000
        );
    }
    // Two handlers are the fewest that can differ; a cache alone has none.
    let has_handlers = !run.subject.ends_with("-reflector") && !subjects::is_floor(&run.subject);
    fits && !(run.case == "mixed" && run.handlers == Some(1))
        && (has_handlers || run.handlers == Some(1))
}

/// Returns the subject's job, with `tally` to count how far it is.
pub(crate) fn job<'a>(run: &'a Run, target: &'a Target) -> subjects::Job<'a> {
    let (pods, handlers) = (run.pods.unwrap_or(0), run.handlers.unwrap_or(1));
    subjects::Job {
        subject: &run.subject,
        case: &run.case,
        // A storm's floor counts all lines.
        is_stamped: storms(&run.bench) && target.is_genuine && !subjects::is_floor(&run.subject),
        target,
        tally: subjects::Tally::new(pods, handlers, target.has_own_pods()),
    }
}

/// Returns whether a benchmark measures watches, without a list or another watch.
pub(crate) fn watches_on(bench: &str) -> bool {
    storms(bench) || bench == "latency"
}

/// Returns whether in a benchmark pods change as fast as they can.
pub(crate) fn storms(bench: &str) -> bool {
    matches!(bench, "storm" | "fanout")
}
