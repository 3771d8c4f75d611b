//! The controller of CronJobs: a Job at every time of a schedule.
//!
//! Source: `k8s.io/kubernetes/pkg/controller/cronjob`. All schedules are in UTC, whatever `timeZone` says.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::child::Child;
use super::conditions::is_true;
use super::cron::Schedule;
use super::events;
use super::kind::Kind;
use super::reconcile::{FAILED_CREATE, Reconcile, Requeue};
use super::template;

const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

pub(super) fn reconcile(cron: &Reconcile<'_>) -> Requeue {
    if cron.stored.is_deleting() {
        return Requeue::OnChange;
    }
    let jobs = cron.children(Kind::Job);
    let mut status = status(cron, &jobs);
    let next = clean_up(cron, &jobs);
    let due = if cron.at("/spec/suspend") == true {
        Requeue::OnChange
    } else {
        run(cron, &jobs, &mut status)
    };
    next.or(due).or(Requeue::from(cron.write_status(status)))
}

fn is_complete(job: &Child) -> bool {
    is_true(job.at("/status/conditions"), "Complete")
}

fn is_finished(job: &Child) -> bool {
    is_complete(job) || is_true(job.at("/status/conditions"), "Failed")
}

/// Returns the status that follows from the present Jobs.
fn status(cron: &Reconcile<'_>, jobs: &[Child]) -> Value {
    let mut status = cron.at("/status").clone();
    if !status.is_object() {
        status = json!({});
    }
    let completed = jobs.iter().filter(|job| is_complete(job));
    let last = completed
        .map(|job| job.text("/status/completionTime"))
        .max();
    // Times in the same format sort as their texts do.
    if let Some(last) = last.filter(|last| Some(*last) > status["lastSuccessfulTime"].as_str()) {
        status["lastSuccessfulTime"] = last.into();
    }
    let known = status["active"].as_array().cloned().unwrap_or_default();
    let active = jobs.iter().filter(|job| !is_finished(job)).map(|job| {
        // The reference to a Job that is known already stays as it is.
        let same = known.iter().find(|each| each["uid"] == job.stored.uid());
        same.cloned().unwrap_or_else(|| reference(job))
    });
    set_active(&mut status, active.collect());
    status
}

fn set_active(status: &mut Value, active: Vec<Value>) {
    if active.is_empty() {
        drop(status.as_object_mut().map(|status| status.remove("active")))
    } else {
        status["active"] = active.into()
    }
}

fn reference(job: &Child) -> Value {
    json!({
        "kind": "Job", "apiVersion": "batch/v1", "namespace": job.stored.key().namespace(),
        "name": job.name(), "uid": job.stored.uid(),
        "resourceVersion": job.stored.revision().to_string(),
    })
}

/// Deletes the oldest finished Jobs, beyond the limits of the history.
fn clean_up(cron: &Reconcile<'_>, jobs: &[Child]) -> Requeue {
    let limits = [
        ("/spec/successfulJobsHistoryLimit", 3, true),
        ("/spec/failedJobsHistoryLimit", 1, false),
    ];
    let mut next = Requeue::OnChange;
    for (pointer, default, succeeded) in limits {
        let limit = usize::try_from(cron.number(pointer).unwrap_or(default)).unwrap_or(0);
        let is_meant =
            |job: &&Child| is_finished(job) && is_complete(job) == succeeded && !job.is_going();
        let mut over: Vec<&Child> = jobs.iter().filter(is_meant).collect();
        over.sort_by_key(|job| {
            (
                job.text("/status/startTime").to_owned(),
                job.name().to_owned(),
            )
        });
        let surplus = over.len().saturating_sub(limit);
        for job in &over[..surplus] {
            next = next.or(Requeue::from(cron.delete(job, None)));
        }
    }
    next
}

/// Creates the Job that is due, if any, and requeues for the next time.
fn run(cron: &Reconcile<'_>, jobs: &[Child], status: &mut Value) -> Requeue {
    let Some(schedule) = Schedule::parse(cron.text("/spec/schedule")) else {
        return Requeue::OnChange;
    };
    let now = cron.plane.server.clock.timestamp();
    let following = match schedule.next(now) {
        Some(at) => Requeue::At(instant(at, now)),
        None => Requeue::OnChange,
    };
    let Some(due) = due(cron, &schedule, now) else {
        return following;
    };
    // As getJobName: the time in minutes.
    let name = format!("{}-{}", cron.name(), due.as_second() / 60);
    let is_known = jobs.iter().any(|job| job.name() == name);
    let active: Vec<&Child> = jobs.iter().filter(|job| !is_finished(job)).collect();
    let policy = cron.text("/spec/concurrencyPolicy");
    if is_known || (policy == "Forbid" && !active.is_empty()) {
        return following;
    }
    let mut next = following;
    if policy == "Replace" {
        for job in active {
            next = next.or(Requeue::from(cron.delete(job, None)));
        }
        set_active(status, Vec::new());
    }
    let created = cron.try_create(Kind::Job, &job(cron, &name, due));
    if let Err(refusal) = &created
        && !refusal.is_end
        && !refusal.is_taken
    {
        let message = format!("Error creating job: {}", refusal.message);
        events::warn(cron, FAILED_CREATE, &message);
    }
    if created.is_ok() {
        status["lastScheduleTime"] = due.to_string().into();
        if let Some(job) = cron.find(Kind::Job, &name) {
            let mut active = status["active"].as_array().cloned().unwrap_or_default();
            active.push(reference(&job));
            set_active(status, active);
        }
    }
    next
}

/// Returns the last time that was missed, unless its starting deadline has passed.
fn due(cron: &Reconcile<'_>, schedule: &Schedule, now: Timestamp) -> Option<Timestamp> {
    let time = |pointer: &str| cron.text(pointer).parse::<Timestamp>().ok();
    let since = time("/status/lastScheduleTime").or_else(|| time("/metadata/creationTimestamp"));
    let deadline = cron.at("/spec/startingDeadlineSeconds").as_u64();
    let oldest = deadline.map(|seconds| {
        let seconds = Duration::from_secs(seconds);
        now.checked_sub(seconds).unwrap_or(Timestamp::MIN)
    });
    let since = since?.max(oldest.unwrap_or(Timestamp::MIN));
    schedule.last(since, now)
}

fn instant(at: Timestamp, now: Timestamp) -> Instant {
    let left = Duration::try_from(at.duration_since(now)).unwrap_or_default();
    // What is too far ahead for the clock is enqueued for tomorrow, and then again.
    let begun = Instant::now();
    begun
        .checked_add(left)
        .unwrap_or(begun + Duration::from_secs(86_400))
}

fn job(cron: &Reconcile<'_>, name: &str, due: Timestamp) -> Value {
    let template = cron.at("/spec/jobTemplate");
    let mut metadata = json!({"name": name, "ownerReferences": [cron.controller_reference()]});
    for member in ["labels", "annotations"] {
        if !template["metadata"][member].is_null() {
            metadata[member] = template["metadata"][member].clone();
        }
    }
    let mut job = json!({
        "kind": "Job", "apiVersion": "batch/v1", "metadata": metadata, "spec": template["spec"],
    });
    template::annotate(&mut job, SCHEDULED, &due.to_string());
    job
}
