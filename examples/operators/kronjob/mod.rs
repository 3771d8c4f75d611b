//! KronJob: a Job at every time of a cron schedule, like Kubernetes' CronJob.
//!
//! Every decision depends only on the present state: the KronJob, its Jobs and the time. So it does not matter how
//! often it is made, nor whether the operator was down in between: the name and the annotation of a Job, and later the
//! status, show which times of the schedule were handled.

mod clock;
mod jobs;
mod kind;
mod reconciler;
mod schedule;
#[cfg(test)]
mod tests;

pub use clock::Clock;
pub use jobs::SCHEDULED_AT;
pub use kind::{
    ConcurrencyPolicy, JobTemplate, KronJob, KronJobSpec, KronJobStatus, RestartPolicy,
};
pub use reconciler::register;
pub use schedule::{MOST_MISSED, Missed, Schedule};
