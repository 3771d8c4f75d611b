//! The reconciler: keeps the Jobs of a KronJob as its schedule wants them.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use lariat::kube::api::{DeleteParams, Preconditions};
use lariat::operator::{ApiError, Event, ReconcilerRegistration, Rule};
use lariat::prelude::*;
use lariat::{Query, describe};
use parking_lot::Mutex;

use super::clock::Clock;
use super::jobs::{self, Jobs};
use super::kind::{ConcurrencyPolicy, KronJob, KronJobStatus};
use super::schedule::{MOST_MISSED, Schedule};
use crate::{Paint, print_action};

/// Registers the reconciler of KronJobs.
///
/// # Errors
///
/// It is registered already.
pub fn register(operator: &Operator, clock: &Clock) -> Result<ReconcilerRegistration> {
    let jobs = operator.factory().for_object::<Job>();
    let kronjobs = operator.factory().for_object::<KronJob>();
    let reconciler = KronJobReconciler {
        jobs: CachedApi::new(&jobs),
        clock: clock.clone(),
        reported: Arc::default(),
    };
    let reported = Arc::clone(&reconciler.reported);
    let registration = operator
        .reconciler("kronjob", &kronjobs)
        .owns(&jobs)
        // Not for its own writes of the status.
        .options(HandlerOptions::default().only(Predicate::generation_changed()))
        .report_errors("Ready")
        .on_deleted(move |cx: Reconcile<KronJob>| {
            reported.lock().remove(cx.key());
            async { Ok(Outcome::done()) }
        })
        // For `operator.cluster_role()`; reading both kinds is known.
        .writes_status()
        .needs(Rule::of(&jobs).verbs(["create", "delete"]))
        .needs(Rule::owner(&kronjobs))
        .needs(Rule::events())
        .register(move |cx: Reconcile<KronJob>| {
            let reconciler = reconciler.clone();
            async move { reconciler.reconcile(&cx).await }
        })?;
    Ok(registration)
}

/// The state of the reconciler.
#[derive(Clone)]
struct KronJobReconciler {
    jobs: CachedApi<Job>,
    clock: Clock,
    reported: Arc<Mutex<HashMap<ObjectKey, LastReports>>>,
}

/// The last time of the schedule reported per reason, because the same time is checked repeatedly.
type LastReports = HashMap<String, Timestamp>;

impl KronJobReconciler {
    async fn reconcile(&self, cx: &Reconcile<KronJob>) -> HandlerResult {
        let (spec, now) = (&cx.object().spec, self.clock.now());
        // A retry does not help an invalid schedule; the reconciler is called when the KronJob changes.
        let schedule = Schedule::parse(&spec.schedule).map_err(|error| {
            cx.event(Event::warning("InvalidSchedule", format!("{error:#}")));
            HandlerError::terminal(error)
        })?;
        let jobs = self.jobs.list(&Query::owned_by(cx.raw().uid())).await?;
        let jobs = Jobs::sort(jobs);
        let mut status = status(cx.object(), &jobs);
        if !spec.suspend
            && let Some(tick) = self.due(cx, &schedule, &status, now)
        {
            self.start(cx, tick, &jobs, &mut status).await?;
        }
        cx.set_status(&status).await?;
        // Last, so that Jobs that cannot be deleted do not keep others from being started.
        for (job, reason) in jobs.surplus(spec, now) {
            self.delete(cx, job, reason).await?;
        }
        let tick = schedule.next(now).filter(|_| !spec.suspend);
        let next = tick.into_iter().chain(jobs.next_expiry(spec, now)).min();
        let wait = next.map(|time| self.clock.until(time));
        Ok(wait.map_or(Outcome::done(), Outcome::requeue_after))
    }

    /// Starts the Job that is due, or leaves it waiting.
    async fn start(
        &self,
        cx: &Reconcile<KronJob>,
        tick: Timestamp,
        jobs: &Jobs,
        status: &mut KronJobStatus,
    ) -> Result<(), HandlerError> {
        match cx.object().spec.concurrency_policy {
            ConcurrencyPolicy::Forbid if !jobs.active.is_empty() => {
                // The end of that Job calls the reconciler again.
                let note = format!("the Job for {} waits: one still runs", hour(tick));
                self.report_once(cx, tick, Event::normal("JobAlreadyActive", note));
                return Ok(());
            }
            ConcurrencyPolicy::Replace => {
                for job in &jobs.active {
                    self.delete(cx, job, "replaced").await?;
                }
                status.active.clear();
            }
            ConcurrencyPolicy::Allow | ConcurrencyPolicy::Forbid => {}
        }
        let job = self.create(cx, tick).await?;
        status.active.extend(job.as_ref().map(jobs::reference));
        status.last_schedule_time = Some(Time(tick));
        Ok(())
    }

    /// Creates the Job for a time; `None` if it exists, from before the operator was killed.
    async fn create(
        &self,
        cx: &Reconcile<KronJob>,
        tick: Timestamp,
    ) -> Result<Option<Job>, HandlerError> {
        let job = jobs::job(cx.object(), cx.owner_reference(), tick);
        let name = job.name_any();
        match self.jobs.create(&job).await {
            Ok(job) => {
                let note = format!("started {name} for {}", hour(tick));
                report(cx, Event::normal("SuccessfulCreate", note));
                Ok(Some(job))
            }
            Err(error) if error.is_already_exists() => Ok(None),
            Err(error) => {
                report(cx, Event::warning("FailedCreate", describe(&error)));
                Err(error.into())
            }
        }
    }

    /// Deletes a Job, and its Pods with it.
    async fn delete(
        &self,
        cx: &Reconcile<KronJob>,
        job: &Job,
        reason: &str,
    ) -> Result<(), ApiError> {
        let key = ObjectKey::namespaced(&job.namespace().unwrap_or_default(), &job.name_any());
        // Not a successor with the same name.
        let this_one = Preconditions {
            uid: job.uid(),
            ..Preconditions::default()
        };
        let params = DeleteParams::background().preconditions(this_one);
        match self.jobs.delete(&key, &params).await {
            Err(error) if error.is_not_found() => return Ok(()),
            outcome => outcome?,
        }
        let note = format!("deleted {}, {reason}", key.name());
        report(cx, Event::normal("SuccessfulDelete", note));
        Ok(())
    }

    /// Returns the latest time of the schedule that has passed and was not handled.
    fn due(
        &self,
        cx: &Reconcile<KronJob>,
        schedule: &Schedule,
        status: &KronJobStatus,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let KronJob { metadata, spec, .. } = &**cx.object();
        // Not for times before the KronJob was created.
        let created = metadata.creation_timestamp.as_ref();
        let Time(last) = *status.last_schedule_time.as_ref().or(created)?;
        let missed = schedule.missed(last, now)?;
        let deadline = spec
            .starting_deadline_seconds
            .map(SignedDuration::from_secs);
        let too_late = deadline.and_then(|deadline| now.checked_sub(deadline).ok());
        let since = too_late.map_or(last, |time| time.max(last));
        let Some(missed) = schedule.missed(since, now) else {
            let note = format!("too late to start the Job for {}", hour(missed.latest));
            self.report_once(cx, missed.latest, Event::warning("MissSchedule", note));
            return None;
        };
        if missed.count > MOST_MISSED {
            let latest = hour(missed.latest);
            let note =
                format!("more than {MOST_MISSED} times were missed; only {latest} is started");
            let event = Event::warning("TooManyMissedTimes", note);
            self.report_once(cx, missed.latest, event);
        }
        Some(missed.latest)
    }

    /// Reports an Event about a time of the schedule, once per reason.
    fn report_once(&self, cx: &Reconcile<KronJob>, tick: Timestamp, event: Event) {
        let mut reported = self.reported.lock();
        let last = reported.entry(cx.key().clone()).or_default();
        if last.insert(event.reason().to_owned(), tick) != Some(tick) {
            report(cx, event);
        }
    }
}

/// Returns the status according to the Jobs.
fn status(kronjob: &KronJob, jobs: &Jobs) -> KronJobStatus {
    let status = kronjob.status.clone().unwrap_or_default();
    KronJobStatus {
        active: jobs.active.iter().map(|job| jobs::reference(job)).collect(),
        last_schedule_time: status
            .last_schedule_time
            .max(jobs.last_scheduled().map(Time)),
        last_successful_time: status
            .last_successful_time
            .max(jobs.last_success().map(Time)),
        ..status
    }
}

/// Reports what was done: as an Event for the users of the cluster, and as a line.
fn report(cx: &Reconcile<KronJob>, event: Event) {
    let colour = if event.is_warning() {
        Paint::Red
    } else {
        Paint::Green
    };
    print_action("KronJob", cx.key().name(), colour, event.note());
    cx.event(event);
}

fn hour(tick: Timestamp) -> impl std::fmt::Display {
    tick.strftime("%H:%M")
}
