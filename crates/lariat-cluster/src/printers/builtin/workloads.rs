//! Cells of what runs Pods.

use jiff::Timestamp;

use crate::printers::age;
use crate::printers::source::Row;

/// Returns how many replicas are ready, of how many.
pub(super) fn ready(set: Row<'_>) -> String {
    let ready = set.number("/status/readyReplicas");
    format!("{ready}/{}", set.number("/spec/replicas"))
}

/// Returns how many Pods of a Job have succeeded, of how many.
pub(super) fn completions(job: Row<'_>) -> String {
    let succeeded = job.number("/status/succeeded");
    let completions = job.get("/spec/completions").as_i64();
    match (completions, job.number("/spec/parallelism")) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

/// Returns how long a Job has run.
pub(super) fn duration(job: Row<'_>) -> String {
    let times = ["/status/startTime", "/status/completionTime"];
    match times.map(|time| job.text(time)) {
        ["", _] => String::new(),
        [start, ""] => age::since(start, job.now),
        [start, end] => between(start, end).unwrap_or_default(),
    }
}

/// Returns the time between two, if both are times.
fn between(start: &str, end: &str) -> Option<String> {
    let [start, end] = [start, end].map(|time| time.parse::<Timestamp>().ok());
    Some(age::human(end?.as_second() - start?.as_second()))
}

pub(super) fn job_status(job: Row<'_>) -> &'static str {
    let has = |kind: &&&str| job.condition(kind) == "True";
    let first_of = |kinds: &[&'static str]| kinds.iter().find(has).copied();
    let deleted = || job.is_deleting().then_some("Terminating");
    // A Job that has ended shows this also while it is being deleted.
    first_of(&["Complete", "Failed"])
        .or_else(deleted)
        .or_else(|| first_of(&["Suspended", "FailureTarget", "SuccessCriteriaMet"]))
        .unwrap_or("Running")
}
