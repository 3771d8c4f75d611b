//! The history of a key.

use serde::{Deserialize, Serialize};

use super::KindRef;
use super::controller::{HotLoop, InProgress, QueuedKey};

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
    /// Its state in the queue; `None` if nothing is due or delayed.
    pub queued: Option<QueuedKey>,
    /// The call that is running for it.
    pub in_progress: Option<InProgress>,
    /// The hot loop that it is in.
    pub hot_loop: Option<HotLoop>,
    /// The last runs, newest first.
    pub runs: Vec<RunInfo>,
}

/// A run: why a key was processed, and what its handlers did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunInfo {
    /// The number of the run, unique within its factory.
    pub run: u64,
    /// When it began.
    pub at: String,
    /// How long ago that was, in seconds.
    pub ago: f64,
    /// How long the key had been due, in seconds.
    pub waited: f64,
    /// The duration of the run, in seconds.
    pub took: f64,
    /// Why it happened, oldest cause first.
    pub causes: Vec<CauseInfo>,
    /// The calls, in the order of the handlers' registration.
    pub calls: Vec<CallInfo>,
}

/// One cause of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CauseInfo {
    /// `added`, `updated`, `deleted`, `wrote`, `related`, `resync`, `enqueued`, `retry`, `requeued` or `late-handler`.
    pub what: String,
    /// The cause as a sentence.
    pub text: String,
    /// The paths of the fields that differ, for a change that is still remembered; at most twenty.
    pub fields: Vec<String>,
    /// The handler that wrote, enqueued or failed.
    pub handler: Option<String>,
    /// The object that the cause is about, if it is another one.
    pub link: Option<Link>,
    /// The run in which that handler wrote or enqueued.
    pub by_run: Option<RunLink>,
    /// How many runs in a row led to this one, each caused by the one before.
    pub chain: u32,
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
    /// How it ended: `done`, `requeued`, `ignored`, `failed`, `terminal`, `panicked` or `timed_out`.
    pub ended: String,
    /// Whether that is a failure.
    pub failed: bool,
    /// Its duration, in seconds.
    pub took: f64,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// Whether a write was refused with 409 Conflict.
    pub conflict: bool,
    /// The error, if it failed.
    pub error: Option<String>,
    /// The delay until the handler is called again, in seconds from the end of the call.
    pub again: Option<f64>,
    /// What a successful call noted, such as what it waits for.
    pub note: Option<String>,
}
