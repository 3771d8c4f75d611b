//! How controllers are doing.

use std::sync::Arc;
use std::time::Duration;

use lariat_cache::KindStatus;
use lariat_queue::QueueStats;

/// State and totals of one handler, for as long as it is registered.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HandlerStatus {
    /// The name it was registered under.
    pub name: Arc<str>,
    /// Calls that have ended.
    pub runs: u64,
    /// Calls that came after a failure; the queue's `retries` counts those that were scheduled.
    pub retries: u64,
    /// Calls that failed, panics and timeouts included.
    pub failures: u64,
    /// Calls that panicked.
    pub panics: u64,
    /// Calls that took longer than allowed.
    pub timeouts: u64,
    /// The time all calls took together.
    pub busy: Duration,
}

/// State and totals of one kind.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ControllerStatus {
    /// The cache.
    pub cache: KindStatus,
    /// The queue.
    pub queue: QueueStats,
    /// The handlers, in the order of their registration.
    pub handlers: Vec<HandlerStatus>,
}
