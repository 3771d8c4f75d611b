//! The kinds of the group `batch`.

mod cron_job;
mod failure;
mod indexes;
mod job;
mod job_status;
mod job_update;
mod schedule;
mod success;
mod zone;

pub(super) use cron_job::cron_job;
pub(super) use job::job;
