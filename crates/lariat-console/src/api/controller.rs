//! Controllers, their queues and their handlers.

use serde::{Deserialize, Serialize};

use super::KindRef;

/// A controller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Controller {
    /// Its kind.
    #[serde(flatten)]
    pub kind: KindRef,
    /// The phase of its cache, such as `synced` or `listing, 400 of 20000`.
    pub phase: String,
    /// The number of workers; `None` if the controller does not run.
    pub workers: Option<usize>,
    /// Its queue.
    pub queue: Queue,
    /// Its handlers, in the order of their registration.
    pub handlers: Vec<Handler>,
    /// The number of objects in its cache.
    pub objects: usize,
    /// The number of keys in hot loops.
    pub hot_loops: usize,
    /// Samples of the last minutes, oldest first, one every two seconds.
    pub samples: Vec<Sample>,
}

/// The state of a queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    /// Keys that are due and wait for a worker.
    pub ready: usize,
    /// Those of high, normal and low priority.
    pub by_priority: [usize; 3],
    /// Keys that wait for a delay to end.
    pub delayed: usize,
    /// Keys that workers are processing.
    pub processing: usize,
    /// How many times a key became due.
    pub adds: u64,
    /// How many retries were scheduled.
    pub retries: u64,
    /// How long the slowest key in processing has been processed, in seconds.
    pub longest: f64,
    /// How long keys waited for a worker.
    pub wait: Quantiles,
    /// How long workers processed keys.
    pub work: Quantiles,
}

/// Quantiles of durations, in seconds; upper bounds within a factor of two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Quantiles {
    /// How many durations were measured.
    pub count: u64,
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The maximum.
    pub max: f64,
}

/// A handler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Handler {
    /// Its name.
    pub name: String,
    /// Why it is not called: `paused` or `waits for caches`; `None` if it is called.
    pub held: Option<String>,
    /// Calls that have ended.
    pub runs: u64,
    /// Calls that failed.
    pub failures: u64,
    /// Calls that were retries.
    pub retries: u64,
    /// Failures after which the retries were exhausted.
    pub exhausted: u64,
    /// Calls that panicked.
    pub panics: u64,
    /// Calls that timed out.
    pub timeouts: u64,
    /// Calls per second, over the last minute.
    pub rate: f64,
    /// Failures per second, over the last minute.
    pub failure_rate: f64,
    /// The durations of calls.
    pub time: Quantiles,
    /// The times from a change to the call for it.
    pub lag: Quantiles,
    /// The number of keys that wait for it outside the queue.
    pub waiting: usize,
    /// The number of keys it fails for.
    pub failing: usize,
}

/// The state of a controller at one time, for sparklines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    /// Keys that are due.
    pub ready: usize,
    /// Keys in processing.
    pub processing: usize,
    /// Calls that ended since the sample before.
    pub runs: u64,
    /// Calls that failed since the sample before.
    pub failures: u64,
}

/// A controller with its keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ControllerDetail {
    /// The controller.
    #[serde(flatten)]
    pub controller: Controller,
    /// The calls that are running, longest first.
    pub in_progress: Vec<InProgress>,
    /// The keys in the queue, those that are due first; at most a hundred.
    pub queued: Vec<QueuedKey>,
    /// The number of keys in the queue, those left out included.
    pub queued_total: usize,
    /// The slowest of the last runs, slowest first; at most twenty.
    pub slowest: Vec<Slow>,
    /// The keys that handlers fail for, most failures first; at most a hundred.
    pub failing_keys: Vec<Failing>,
    /// The keys in hot loops.
    pub loops: Vec<HotLoop>,
}

/// A running call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InProgress {
    /// The key, as `namespace/name`.
    pub key: String,
    /// The handler; `None` before the first.
    pub handler: Option<String>,
    /// How long the call has been running, in seconds.
    pub lasts: f64,
}

/// A key in the queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QueuedKey {
    /// The key, as `namespace/name`.
    pub key: String,
    /// `ready`, `delayed`, `processing`, `deferred` until the end of a drain, or `waiting` outside the queue.
    pub state: String,
    /// The priority of what is due: `high`, `normal` or `low`.
    pub priority: String,
    /// How long something has been due, in seconds.
    pub due_for: f64,
    /// What is due or delayed, by handler.
    pub lanes: Vec<QueuedLane>,
}

/// What is due or delayed for a handler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QueuedLane {
    /// The handler; `*` for all of them.
    pub handler: String,
    /// In how many seconds it is due; zero if it is due.
    pub due_in: f64,
    /// How many times in a row the handler has failed for the key.
    pub failures: u32,
    /// What the key waits for outside the queue: `resume` of the handler, `caches`, or the handler's `limit`.
    pub waits_for: Option<String>,
}

/// A slow run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Slow {
    /// The key, as `namespace/name`.
    pub key: String,
    /// The slowest handler of the run.
    pub handler: String,
    /// The duration of the run, in seconds.
    pub took: f64,
    /// When it began.
    pub at: String,
}

/// A key that a handler fails for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Failing {
    /// The key, as `namespace/name`.
    pub key: String,
    /// The handler.
    pub handler: String,
    /// How many times in a row it has failed; zero if no run is kept.
    pub failures: u32,
    /// The last error, if its run is kept.
    pub error: Option<String>,
    /// In how many seconds it is retried; `None` if it is due or not retried.
    pub retry_in: Option<f64>,
}

/// A key in a hot loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HotLoop {
    /// The kind.
    #[serde(flatten)]
    pub kind: KindRef,
    /// The key, as `namespace/name`.
    pub key: String,
    /// What is wrong, as a sentence.
    pub pattern: String,
    /// The handlers that write the object.
    pub handlers: Vec<String>,
    /// What enqueues the key, if not a write of its own object.
    pub brought_by: Option<String>,
    /// The fields that are written.
    pub fields: Vec<String>,
    /// The field manager that reverts them.
    pub manager: Option<String>,
    /// The number of runs or writes that were counted.
    pub rounds: u32,
    /// The delay of the next run, in seconds.
    pub pause: f64,
}
