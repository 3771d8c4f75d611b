//! Cells of what runs Pods.

use serde_json::Value;

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
    let time = |member: &str| match job.get("/status").get(member)? {
        Value::String(time) => time.parse().ok(),
        // What is written of a time without value; Go counts from the year 1.
        _ => Some(age::ZERO),
    };
    match (time("startTime"), time("completionTime")) {
        (None, _) => String::new(),
        (Some(start), end) => age::between(start, end.unwrap_or(job.now)),
    }
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
