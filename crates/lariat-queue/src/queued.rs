//! What a queue contains, for people who look at it.

use std::time::Duration;

use crate::{LaneId, Priority};

/// The first keys of a queue at one moment; see [`WorkQueue::snapshot`](crate::WorkQueue::snapshot).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct QueueSnapshot<K> {
    /// The keys: those in line, then those in processing, deferred, and delayed.
    pub keys: Vec<QueuedKey<K>>,
    /// How many keys the queue contains, those that were left out included.
    pub total: usize,
}

/// The state of a key in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyState {
    /// In line for a worker.
    Ready,
    /// With a worker; lanes of it may be due again, or delayed.
    Processing,
    /// Due, but kept until the end of the drain that is under way.
    Deferred,
    /// Nothing is due; lanes of it are delayed.
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
            Self::Delayed => "delayed",
        }
    }
}

/// A key in a queue.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct QueuedKey<K> {
    /// The key.
    pub key: K,
    /// Its state.
    pub state: KeyState,
    /// The priority of what is due; of the run in processing, or the highest of what is delayed, if nothing is due.
    pub priority: Priority,
    /// How long something of it has been due; zero if nothing is.
    pub due_for: Duration,
    /// How long a worker has been processing it; `None` unless it is in processing.
    pub processing_for: Option<Duration>,
    /// What is due and what is delayed, soonest first.
    ///
    /// A lane that is due may be delayed too: see [`Add::kept`](crate::Add::kept). [`LaneId::WHOLE`] stands for all lanes.
    pub lanes: Vec<QueuedLane>,
    /// Failures in a row, for the lanes that have any, whether they are due or not.
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

/// A lane of a key that is due or delayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueuedLane {
    /// The lane.
    pub lane: LaneId,
    /// In what time it becomes due; zero if it is due.
    pub due_in: Duration,
}
