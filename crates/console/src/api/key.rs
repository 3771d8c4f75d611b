//! The history of a key.

use serde::{Deserialize, Serialize};

use super::KindRef;
use super::controller::{GivenUp, HotLoop, InProgress, QueuedKey};

/// A key: its state and its last runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct KeyDetail {
    /// The kind.
    #[serde(flatten)]
    pub kind: KindRef,
    /// The namespace; empty for an object without one.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The resource version of the cached object; `None` if there is none.
    pub resource_version: Option<String>,
    /// The state in the queue; `None` if the key is not queued.
    pub queued: Option<QueuedKey>,
    /// The running call for the key.
    pub in_progress: Option<InProgress>,
    /// The handlers that have given the key up.
    pub given_up: Vec<GivenUp>,
    /// The hot loop that the key is in.
    pub hot_loop: Option<HotLoop>,
    /// The last runs, newest first.
    pub runs: Vec<RunInfo>,
}

/// A run of a key: its causes, and the calls of handlers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunInfo {
    /// The number of the run, unique within its factory.
    pub run: u64,
    /// When the run began.
    pub at: String,
    /// The time since the run began, in seconds.
    pub ago: f64,
    /// How long the key had been due when the run began, in seconds.
    pub waited: f64,
    /// The duration of the run, in seconds.
    pub took: f64,
    /// The causes, oldest first.
    pub causes: Vec<CauseInfo>,
    /// The calls, in the order of the handlers' registration.
    pub calls: Vec<CallInfo>,
}

/// One cause of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CauseInfo {
    /// The type of the cause, such as `added` or `retry`.
    ///
    /// The others are `updated`, `deleted`, `wrote`, `related`, `resync`, `enqueued`, `requeued` and `late-handler`.
    pub what: String,
    /// The cause as a sentence.
    pub text: String,
    /// The paths of the fields that differ; at most twenty.
    ///
    /// Empty if the cause is no change, or the change is no longer kept.
    pub fields: Vec<String>,
    /// The handler that wrote, enqueued or failed.
    pub handler: Option<String>,
    /// The other object that the cause comes from, if there is one.
    pub link: Option<Link>,
    /// The run in which the handler wrote or enqueued.
    pub by_run: Option<RunLink>,
}

/// A key of some kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// The kind.
    #[serde(flatten)]
    pub kind: KindRef,
    /// The key, as `namespace/name`.
    pub key: String,
}

/// A run of a key of some kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunLink {
    /// The key.
    #[serde(flatten)]
    pub link: Link,
    /// The number of the run.
    pub run: u64,
}

/// One call of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CallInfo {
    /// The handler.
    pub handler: String,
    /// How the call ended.
    ///
    /// `done`, `requeued`, `ignored`, `failed`, `terminal`, `panicked` or `timed_out`.
    pub ended: String,
    /// Whether the call failed.
    pub failed: bool,
    /// The duration, in seconds.
    pub took: f64,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// Whether a write was refused with 409 Conflict.
    pub conflict: bool,
    /// The error, if the call returned one.
    pub error: Option<String>,
    /// The delay from the end of the call to the next one, in seconds.
    pub again: Option<f64>,
    /// The note of a successful call.
    pub note: Option<String>,
}
