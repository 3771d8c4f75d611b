//! A read-only copy of the keys in a queue, for diagnostics.

use std::time::Duration;

use crate::{LaneId, Priority};

/// The first keys of a queue at one moment.
///
/// Returned by [`WorkQueue::snapshot`](crate::WorkQueue::snapshot).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct QueueSnapshot<K> {
    /// The keys: ready ones first, then those in processing, deferred, waiting, and delayed.
    pub keys: Vec<QueuedKey<K>>,
    /// How many keys the queue contains, including those that were left out.
    pub total: usize,
}

/// The state of a key in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyState {
    /// Queued for a worker.
    Ready,
    /// Being processed by a worker; lanes of it may be due again or delayed.
    Processing,
    /// Due, but deferred until the current drain ends.
    Deferred,
    /// Lanes wait: see [`QueuedLane::waits_for`]; no other lane is due.
    Waiting,
    /// Nothing is due; at least one lane is delayed.
    Delayed,
}

impl KeyState {
    /// Returns the name in lower case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Processing => "processing",
            Self::Deferred => "deferred",
            Self::Waiting => "waiting",
            Self::Delayed => "delayed",
        }
    }
}

/// A key in a queue and its state.
///
/// ```
/// use std::time::Duration;
/// use lariat::queue::{Add, KeyState, WorkQueue};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let queue: WorkQueue<&str> = WorkQueue::default();
/// queue.add("pod-a", Add::after(Duration::from_secs(5)));
/// let queued = queue.queued(&"pod-a").expect("the queue contains it");
/// assert_eq!(queued.state, KeyState::Delayed);
/// assert!(queued.lanes[0].due_in <= Duration::from_secs(5));
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct QueuedKey<K> {
    /// The key.
    pub key: K,
    /// The state of the key.
    pub state: KeyState,
    /// The priority of the lanes that are due.
    ///
    /// If no lane is due, the priority of the run in processing, or the highest of the waiting and delayed lanes.
    pub priority: Priority,
    /// How long a lane has been due or has waited; zero if none is due or waits.
    pub due_for: Duration,
    /// How long a worker has been processing the key; `None` if none is.
    pub processing_for: Option<Duration>,
    /// The lanes that are due, wait, or are delayed, soonest first.
    ///
    /// A lane that is due may wait or be delayed too: see [`Add::after`](crate::Add::after). [`LaneId::WHOLE`] stands for all
    /// lanes.
    pub lanes: Vec<QueuedLane>,
    /// The failures in a row of each lane that has any, due or not.
    pub failures: Vec<(LaneId, u32)>,
}

impl<K> QueuedKey<K> {
    /// Returns how many times in a row a lane has failed.
    #[must_use]
    pub fn failures_of(&self, lane: LaneId) -> u32 {
        let known = self.failures.iter().find(|(each, _)| *each == lane);
        known.map_or(0, |(_, count)| *count)
    }
}

/// A lane of a key that is due, waits, or is delayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueuedLane {
    /// The lane.
    pub lane: LaneId,
    /// The time until it becomes due; zero if it is due or waits.
    pub due_in: Duration,
    /// What the lane waits for, if it waits.
    pub waits_for: Option<WaitsFor>,
}

/// What a lane of a key waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitsFor {
    /// The end of the lane's pause.
    Resume,
    /// The caches that the lane's work reads.
    Caches,
    /// The end of a call: the lane is at its limit of concurrent calls.
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

/// How many keys wait for a lane, and whether it is closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneWaits {
    /// The number of keys that wait for the lane.
    pub keys: usize,
    /// Whether the lane is closed with [`WaitsFor::Resume`].
    pub is_paused: bool,
    /// Whether the lane is closed with [`WaitsFor::Caches`].
    pub awaits_caches: bool,
}
