//! What a controller does at one moment: calls, queued keys, failing keys.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::ObjectKey;
use lariat_queue::{KeyState, Priority};

/// A key that a worker is processing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InProgress {
    /// The key.
    pub key: ObjectKey,
    /// The handler that is being called; `None` before the first.
    pub handler: Option<Arc<str>>,
    /// How long the call has been running.
    pub lasts: Duration,
}

/// The first queued keys of a controller.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct QueuedKeys {
    /// Keys in the queue, those that are due first, then keys that wait for handlers outside the queue.
    pub keys: Vec<QueuedKey>,
    /// The number of keys in the queue and outside, those that were left out included.
    ///
    /// A key that waits for several handlers, or is in the queue too, counts each time.
    pub total: usize,
}

/// A key that is queued, or waits for handlers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct QueuedKey {
    /// The key.
    pub key: ObjectKey,
    /// Its state in the queue; `None` if it only waits for handlers outside the queue.
    pub state: Option<KeyState>,
    /// The priority of what is due, or else the highest of what is delayed or waits.
    pub priority: Priority,
    /// How long something of it has been due in the queue; zero if nothing is.
    pub due_for: Duration,
    /// How long a worker has been processing it; `None` unless it is in processing.
    pub processing_for: Option<Duration>,
    /// What is due, delayed or waits, soonest first.
    pub lanes: Vec<QueuedLane>,
}

/// What is due, delayed or waits for a handler.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct QueuedLane {
    /// The handler; `None` for all of them.
    pub handler: Option<Arc<str>>,
    /// In what time it is due; zero if it is due or waits.
    pub due_in: Duration,
    /// How many times in a row the handler has failed for the key; for all handlers, the highest number of one.
    pub failures: u32,
    /// What the key waits for outside the queue, if it does.
    pub waits_for: Option<WaitsFor>,
}

/// What a key waits for outside the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitsFor {
    /// The end of the handler's [pause](crate::SharedController::pause).
    Resume,
    /// The caches of related kinds, or the content of the object.
    Caches,
    /// A call at the handler's [concurrency](crate::HandlerOptions::concurrency) limit to end.
    Limit,
}

impl WaitsFor {
    /// Returns a name in lower case: `resume`, `caches` or `limit`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resume => "resume",
            Self::Caches => "caches",
            Self::Limit => "limit",
        }
    }
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
    /// The last error, if its run is still in the [history](crate::ControllerOptions::history).
    pub error: Option<Arc<str>>,
    /// In what time it is retried; `None` if the retry is due.
    pub retry_in: Option<Duration>,
}
