//! Controllers, their queues and their handlers.

use serde::{Deserialize, Serialize};

use super::KindRef;

/// A controller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Controller {
    /// The kind.
    #[serde(flatten)]
    pub kind: KindRef,
    /// The phase of the cache, such as `synced` or `listing, 400 of 20000`.
    pub phase: String,
    /// The number of workers; `None` if the controller does not run.
    pub workers: Option<usize>,
    /// The queue.
    pub queue: Queue,
    /// The handlers, in the order of registration.
    pub handlers: Vec<Handler>,
    /// The number of objects in the cache.
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
    /// The ready keys of high, normal and low priority.
    pub by_priority: [usize; 3],
    /// Keys that wait for a delay to end.
    pub delayed: usize,
    /// Keys that workers are processing.
    pub processing: usize,
    /// The number of times that a key became due.
    pub adds: u64,
    /// The number of retries scheduled.
    pub retries: u64,
    /// The longest time for which a key has been in processing, in seconds.
    pub longest: f64,
    /// The times for which keys waited for a worker.
    pub wait: Quantiles,
    /// The times for which workers processed keys.
    pub work: Quantiles,
}

/// Quantiles of durations, in seconds; upper bounds within a factor of two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Quantiles {
    /// The number of durations measured.
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
    /// The name.
    pub name: String,
    /// Why the handler is not called: `paused` or `waits for caches`; `None` if it is.
    pub blocked: Option<String>,
    /// Calls that have ended.
    pub calls: u64,
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
    /// The number of keys that wait for the handler, without a worker.
    pub waiting: usize,
    /// The number of keys that the handler fails for, and is called again for.
    pub failing: usize,
    /// The number of keys that the handler has given up: their last call failed, and no other is scheduled.
    pub given_up: usize,
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
    /// Calls that ended since the previous sample.
    pub calls: u64,
    /// Calls that failed since the previous sample.
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
    /// The number of all keys in the queue.
    pub queued_total: usize,
    /// The slowest of the last runs, slowest first; at most twenty.
    pub slowest: Vec<Slow>,
    /// The keys that handlers fail for, most failures first; at most a hundred.
    pub failing_keys: Vec<Failing>,
    /// The keys that handlers have given up, those of the newest calls first; at most a hundred.
    pub given_up_keys: Vec<GivenUp>,
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
    /// The state: `ready`, `delayed`, `processing`, `deferred` or `waiting`.
    ///
    /// A deferred key waits for the end of a drain, a waiting one for handlers.
    pub state: String,
    /// The priority of the due handlers: `high`, `normal` or `low`.
    pub priority: String,
    /// How long the key has been due, in seconds.
    pub due_for: f64,
    /// The handlers that the key is queued for.
    pub lanes: Vec<QueuedLane>,
}

/// A handler that a key is queued for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QueuedLane {
    /// The handler; `*` for all of them.
    pub handler: String,
    /// The time until the handler is due, in seconds; zero if it is due.
    pub due_in: f64,
    /// How many times in a row the handler has failed for the key.
    pub failures: u32,
    /// What the key waits for, if it waits: `resume`, `caches` or `limit`.
    ///
    /// That is the end of the handler's pause, caches that sync, or the handler's concurrency limit.
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
    /// When the run began.
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
    /// How many times in a row the handler has failed for the key.
    pub failures: u32,
    /// The last error, if its run is in the history.
    pub error: Option<String>,
    /// The time until the retry, in seconds; `None` if it is due or there is none.
    pub retry_in: Option<f64>,
}

/// A key that a handler has given up.
///
/// The handler is called for it again when the object changes, the key is enqueued, or a resync comes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GivenUp {
    /// The key, as `namespace/name`.
    pub key: String,
    /// The handler.
    pub handler: String,
    /// The last error, if its run is in the history.
    pub error: Option<String>,
    /// The time since the last call ended, in seconds.
    pub ago: f64,
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
    /// The pattern of the loop, as a sentence.
    pub pattern: String,
    /// The handlers that write or enqueue.
    pub handlers: Vec<String>,
    /// What enqueues the key; `None` if it is a change of its own object.
    pub triggered_by: Option<String>,
    /// The fields that are written.
    pub fields: Vec<String>,
    /// The number of runs or reverts that were counted.
    pub rounds: u32,
}
