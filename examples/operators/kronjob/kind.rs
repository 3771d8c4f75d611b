//! The kind KronJob: spec and status.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Jobs at the times of a schedule.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "batch.tutorial.skuber.io",
    version = "v1",
    kind = "KronJob",
    namespaced,
    shortname = "kj",
    status = "KronJobStatus",
    derive = "PartialEq"
)]
// The name of a Job is this one with a dash and ten digits, and a Pod has it in a label: at most 63 characters.
#[kube(validation = Rule::new("self.metadata.name.size() <= 52")
    .message("the name of a KronJob has at most 52 characters, since its Jobs are named NAME-SECONDS"))]
#[kube(printcolumn = r#"{"name": "Schedule", "type": "string", "jsonPath": ".spec.schedule"}"#)]
#[kube(printcolumn = r#"{"name": "Suspend", "type": "boolean", "jsonPath": ".spec.suspend"}"#)]
#[kube(
    printcolumn = r#"{"name": "Last Schedule", "type": "date", "jsonPath": ".status.lastScheduleTime"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct KronJobSpec {
    /// The schedule: minute, hour, day of the month, month, day of the week, in UTC; or `@hourly`, `@daily` and so on.
    #[schemars(length(min = 1, max = 256))]
    pub schedule: String,
    /// The Job to run.
    pub job_template: JobTemplate,
    /// The deadline for starting a Job late, in seconds; none by default.
    #[schemars(range(min = 1))]
    pub starting_deadline_seconds: Option<i64>,
    /// The policy for a Job that is due while an earlier one still runs.
    #[serde(default)]
    pub concurrency_policy: ConcurrencyPolicy,
    /// Whether starting Jobs is suspended.
    #[serde(default)]
    pub suspend: bool,
    /// The number of succeeded Jobs to keep.
    #[serde(default = "three")]
    #[schemars(range(max = 1000))]
    pub successful_jobs_history_limit: u32,
    /// The number of failed Jobs to keep.
    #[serde(default = "one")]
    #[schemars(range(max = 1000))]
    pub failed_jobs_history_limit: u32,
    /// The number of seconds to keep a Job after its end; by default only the limits apply.
    #[schemars(range(min = 0))]
    pub completed_jobs_expiry_seconds: Option<i64>,
}

/// A Job template in short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobTemplate {
    /// The image of its only container.
    #[schemars(length(min = 1))]
    pub image: String,
    /// The command; by default that of the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The arguments of the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Whether a failed container is restarted in its Pod, or a new Pod is created.
    #[serde(default)]
    pub restart_policy: RestartPolicy,
}

/// The restart policy of a Job's containers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RestartPolicy {
    /// The container is restarted.
    #[default]
    OnFailure,
    /// The Pod fails, and the Job creates another.
    Never,
}

/// The policy for a Job that is due while an earlier one still runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConcurrencyPolicy {
    /// Both run.
    #[default]
    Allow,
    /// The new one waits for the end of the earlier, and is skipped if the next is due by then.
    Forbid,
    /// The earlier one is deleted.
    Replace,
}

/// The observed state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KronJobStatus {
    /// The Jobs that run.
    #[serde(default)]
    pub active: Vec<ObjectReference>,
    /// The latest time of the schedule for which a Job was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,
    /// When the last Job succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_successful_time: Option<Time>,
    /// Whether the schedule can be followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

fn three() -> u32 {
    3
}

fn one() -> u32 {
    1
}
