//! The Jobs of a KronJob: existing, surplus and new ones.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{Container, ObjectReference, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::{Resource, ResourceExt};

use super::{KronJob, KronJobSpec, RestartPolicy};

/// The annotation of a Job with the time of the schedule it was started for.
pub const SCHEDULED_AT: &str = "batch.tutorial.skuber.io/scheduled-at";

/// The Jobs of a KronJob, oldest first in each list.
///
/// Conditions say whether a Job has ended. Counters do not: a Job whose first Pod failed and that tries another has
/// failed Pods and has not ended, and a new Job has no counts yet.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    pub(super) active: Vec<Arc<Job>>,
    pub(super) succeeded: Vec<Arc<Job>>,
    pub(super) failed: Vec<Arc<Job>>,
}

impl Jobs {
    pub(super) fn sort(mut all: Vec<Arc<Job>>) -> Self {
        all.sort_by_cached_key(|job| (scheduled_at(job), job.name_any()));
        let mut jobs = Self::default();
        for job in all {
            let of_its_kind = match ended(&job) {
                None => &mut jobs.active,
                Some(("Complete", _)) => &mut jobs.succeeded,
                Some(_) => &mut jobs.failed,
            };
            of_its_kind.push(job);
        }
        jobs
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.active.iter().chain(self.over())
    }

    fn over(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.succeeded.iter().chain(&self.failed)
    }

    /// Returns the latest time of the schedule that has a Job.
    ///
    /// The status has it too, unless the operator was killed between creating the Job and writing the status.
    pub(super) fn last_scheduled(&self) -> Option<Timestamp> {
        self.all().filter_map(|job| scheduled_at(job)).max()
    }

    /// Returns when the last Job succeeded.
    pub(super) fn last_success(&self) -> Option<Timestamp> {
        self.succeeded
            .iter()
            .filter_map(|job| Some(ended(job)?.1))
            .max()
    }

    /// Returns the ended Jobs to delete, with the reason.
    pub(super) fn surplus(
        &self,
        spec: &KronJobSpec,
        now: Timestamp,
    ) -> Vec<(&Arc<Job>, &'static str)> {
        let expired = |job: &&Arc<Job>| expiry(job, spec).is_some_and(|time| time <= now);
        let (old, kept): (Vec<_>, Vec<_>) = self.over().partition(expired);
        let mut surplus: Vec<_> = old.into_iter().map(|job| (job, "expired")).collect();
        for (jobs, limit) in [
            (&self.succeeded, spec.successful_jobs_history_limit),
            (&self.failed, spec.failed_jobs_history_limit),
        ] {
            let jobs = jobs.iter().filter(|job| kept.contains(job));
            let newest_first = jobs
                .rev()
                .skip(usize::try_from(limit).unwrap_or(usize::MAX));
            surplus.extend(newest_first.map(|job| (job, "beyond the limit of the history")));
        }
        surplus.retain(|(job, _)| job.meta().deletion_timestamp.is_none());
        surplus
    }

    /// Returns when the next Job expires.
    pub(super) fn next_expiry(&self, spec: &KronJobSpec, now: Timestamp) -> Option<Timestamp> {
        let expiries = self.over().filter_map(|job| expiry(job, spec));
        expiries.filter(|time| *time > now).min()
    }
}

/// Creates the Job for a time. Its name contains the time, so a second Job for that time is refused.
pub(super) fn job(kronjob: &KronJob, owner: OwnerReference, tick: Timestamp) -> Job {
    let template = &kronjob.spec.job_template;
    let container = Container {
        name: "job".to_owned(),
        image: Some(template.image.clone()),
        command: Some(template.command.clone()).filter(|command| !command.is_empty()),
        args: Some(template.args.clone()).filter(|args| !args.is_empty()),
        ..Container::default()
    };
    let restart_policy = match template.restart_policy {
        RestartPolicy::OnFailure => "OnFailure",
        RestartPolicy::Never => "Never",
    };
    let pod = PodSpec {
        containers: vec![container],
        restart_policy: Some(restart_policy.to_owned()),
        ..PodSpec::default()
    };
    Job {
        metadata: ObjectMeta {
            name: Some(format!("{}-{}", kronjob.name_any(), tick.as_second())),
            namespace: kronjob.namespace(),
            annotations: Some([(SCHEDULED_AT.to_owned(), tick.to_string())].into()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(JobSpec {
            backoff_limit: Some(2),
            template: PodTemplateSpec {
                spec: Some(pod),
                ..PodTemplateSpec::default()
            },
            ..JobSpec::default()
        }),
        ..Job::default()
    }
}

/// Creates a reference to a Job for the status.
pub(super) fn reference(job: &Job) -> ObjectReference {
    ObjectReference {
        api_version: Some("batch/v1".to_owned()),
        kind: Some("Job".to_owned()),
        name: job.meta().name.clone(),
        namespace: job.namespace(),
        uid: job.uid(),
        ..ObjectReference::default()
    }
}

fn scheduled_at(job: &Job) -> Option<Timestamp> {
    job.annotations().get(SCHEDULED_AT)?.parse().ok()
}

/// Returns how and when a Job ended, if it did. A failed Job has no completion time, but its condition has a time.
fn ended(job: &Job) -> Option<(&str, Timestamp)> {
    let status = job.status.as_ref()?;
    let conditions = status.conditions.iter().flatten();
    let mut ends = conditions.filter(|each| matches!(&*each.type_, "Complete" | "Failed"));
    let end = ends.find(|each| each.status == "True")?;
    let times = [
        &status.completion_time,
        &end.last_transition_time,
        &status.start_time,
    ];
    let time = times.into_iter().flatten().next();
    Some((
        &end.type_,
        time.map_or(Timestamp::UNIX_EPOCH, |Time(time)| *time),
    ))
}

fn expiry(job: &Job, spec: &KronJobSpec) -> Option<Timestamp> {
    let kept = SignedDuration::from_secs(spec.completed_jobs_expiry_seconds?);
    ended(job)?.1.checked_add(kept).ok()
}
