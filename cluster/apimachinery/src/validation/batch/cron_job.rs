//! CronJobs.

use super::{job, schedule, zone};
use crate::validation::causes::Causes;
use crate::validation::context::{Context, Part};
use crate::validation::field::Field;
use crate::validation::rule::{self, Rule, Rules};

const DEADLINE: Rules = &[("startingDeadlineSeconds", Rule::NotNegative)];
const CONCURRENCY: Rules = &[(
    "concurrencyPolicy",
    Rule::OneOf(&["Allow", "Forbid", "Replace"]),
)];
const LIMITS: Rules = &[(
    "successfulJobsHistoryLimit failedJobsHistoryLimit",
    Rule::NotNegative,
)];

pub(in crate::validation) fn cron_job(context: &Context<'_>, causes: &mut Causes) {
    // Go checks nothing of the status of a CronJob.
    if context.updates(Part::Status) {
        return;
    }
    let (spec, old) = (context.get("spec"), context.old("spec"));
    // `validateCronJobSpec`.
    check_schedule(&spec, old.as_ref(), causes);
    rule::check(&spec, DEADLINE, causes);
    let zone = spec.get("timeZone");
    if zone.is_set()
        && old
            .as_ref()
            .is_none_or(|old| old.member("timeZone") != zone.value())
    {
        zone::check(&zone, causes);
    }
    rule::check(&spec, CONCURRENCY, causes);
    let was = old.map(|old| old.get("jobTemplate").get("spec"));
    check_job(&spec.get("jobTemplate").get("spec"), was.as_ref(), causes);
    rule::check(&spec, LIMITS, causes);
    let name = context.get("metadata").get("name");
    // The controller appends eleven characters to name a Job, which may have 63.
    if context.is_creation() && name.text().len() > 52 {
        causes.invalid(&name, "must be no more than 52 characters");
    }
}

fn check_schedule(spec: &Field<'_>, old: Option<&Field<'_>>, causes: &mut Causes) {
    let at = spec.get("schedule");
    if !causes.check_given(&at, "") {
        return;
    }
    let has_zone = |text: &str| text.contains("TZ");
    if let Err(error) = zone::without(at.text()).and_then(schedule::check) {
        causes.invalid(&at, &error);
    }
    // A zone in the schedule was never documented, but it worked, so it may stay where it was.
    let had_zone = old.is_some_and(|old| has_zone(old.text_of("schedule")));
    if !has_zone(at.text()) {
        return;
    }
    if !had_zone {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        causes.invalid(&at, detail);
    } else if spec.has("timeZone") {
        let detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
        causes.invalid(&at, detail);
    }
}

fn check_job(spec: &Field<'_>, old: Option<&Field<'_>>, causes: &mut Causes) {
    job::check_spec(spec, old, causes);
    let selector = spec.get("selector");
    if selector.is_set() {
        // `ValidateJobTemplateSpec`: each Job of the CronJob gets a selector of its own.
        causes.invalid(&selector, "`selector` will be auto-generated");
    }
    if spec.is_true("manualSelector") {
        causes.unsupported_as(&spec.get("manualSelector"), true, &["nil", "false"]);
    }
}
