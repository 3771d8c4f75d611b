//! A controller at one moment: running calls, queued, failing and given up keys.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::ObjectKey;
use lariat_queue::{KeyState, Priority, WaitsFor};

/// A key that a worker is processing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InProgress {
    /// The key.
    pub key: ObjectKey,
    /// The handler of the running call; `None` before the first call.
    pub handler: Option<Arc<str>>,
    /// How long the call has been running.
    pub lasts: Duration,
}

/// The first queued keys of a controller.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct QueuedKeys {
    /// The first keys.
    ///
    /// See [`SharedController::queued`](crate::SharedController::queued) for the order.
    pub keys: Vec<QueuedKey>,
    /// The number of all keys, including those that were left out.
    pub total: usize,
}

/// A key in the queue.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct QueuedKey {
    /// The key.
    pub key: ObjectKey,
    /// Its state.
    pub state: KeyState,
    /// The priority of the due lanes; if none is due, the highest of the others.
    pub priority: Priority,
    /// How long the key has been due or has waited; zero if it is not due and does not wait.
    pub due_for: Duration,
    /// How long a worker has been processing the key; `None` if none is.
    pub processing_for: Option<Duration>,
    /// The handlers that the key is queued for, those that are due first.
    pub lanes: Vec<QueuedLane>,
}

/// A handler that a key is queued for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct QueuedLane {
    /// The handler; `None` for all of them.
    pub handler: Option<Arc<str>>,
    /// The time until the handler is due; zero if it is due or waits.
    pub due_in: Duration,
    /// How many times in a row the handler has failed for the key.
    ///
    /// For an entry of all handlers, it is the highest number.
    pub failures: u32,
    /// What the key waits for, if it waits.
    pub waits_for: Option<WaitsFor>,
}

/// A key that a handler has given up.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GivenUpKey {
    /// The key.
    pub key: ObjectKey,
    /// The handler.
    pub handler: Arc<str>,
    /// The last error; `None` if its run is no longer in the history.
    pub error: Option<Arc<str>>,
    /// The time since the last call ended.
    pub ago: Duration,
}

/// A key that a handler fails for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FailingKey {
    /// The key.
    pub key: ObjectKey,
    /// The handler.
    pub handler: Arc<str>,
    /// How many times in a row it has failed.
    pub failures: u32,
    /// The last error; `None` if its run is no longer in the history.
    pub error: Option<Arc<str>>,
    /// The time until the retry; `None` if the retry is due.
    pub retry_in: Option<Duration>,
}
