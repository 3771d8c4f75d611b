//! Observing every step of a queue.

use std::time::{Duration, Instant};

use crate::{Add, Item, LaneId, Lanes, Priority, Verdict};

/// An observer of every step of a queue, for recordings.
///
/// It is called under the lock of the queue, in the order of the steps, so it must be quick and must not use the queue.
/// A [`QueueCore`](crate::QueueCore) that is given the same steps at the same times dequeues the same keys.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Instant;
/// use parking_lot::Mutex;
/// use lariat_queue::{Add, QueueBuilder, QueueStep, Tap, WorkQueue};
///
/// #[derive(Clone, Default)]
/// struct Dequeued(Arc<Mutex<Vec<&'static str>>>);
///
/// impl Tap<&'static str, ()> for Handed {
///     fn step(&self, _at: Instant, step: &QueueStep<'_, &'static str, ()>) {
///         if let QueueStep::Get(item) = step {
///             self.0.lock().push(item.key);
///         }
///     }
/// }
///
/// let dequeued = Dequeued::default();
/// let queue = WorkQueue::<&str>::builder().build_tapped(dequeued.clone());
/// queue.add("pod-a", Add::now());
/// queue.try_get().expect("a key is due").done();
/// assert_eq!(*dequeued.0.lock(), ["pod-a"]);
/// ```
pub trait Tap<K, P>: Send + Sync {
    /// Receives a step and the time at which it happens.
    ///
    /// The time is taken before the lock. So the time of a step may be before that of the previous step, by as long as
    /// its thread waited for the lock.
    fn step(&self, at: Instant, step: &QueueStep<'_, K, P>);
}

/// A step of a queue.
#[derive(Debug)]
#[non_exhaustive]
pub enum QueueStep<'a, K, P> {
    /// A key is added.
    Add {
        /// The key.
        key: &'a K,
        /// The options of the add.
        request: Request<'a, P>,
        /// The delay that the limiter chose, for a rate limited add.
        limited: Option<Duration>,
        /// The key's group, in a queue with fair queuing.
        group: Option<u64>,
    },
    /// Delays had ended by the time of a call that got no key.
    Release,
    /// A key was dequeued.
    Get(&'a Item<K, P>),
    /// A worker finished a key.
    Done {
        /// The key.
        key: &'a K,
        /// The verdicts on its lanes.
        verdicts: &'a [(LaneId, Verdict<P>)],
    },
    /// Nothing is left in the queue, which is like a new one from now on.
    Emptied,
    /// A worker gave a key back without processing it.
    GiveBack {
        /// The key.
        key: &'a K,
    },
    /// A drain begins.
    Drain,
    /// A drain ends.
    Resume,
    /// The queue shuts down.
    ShutDown {
        /// Whether ready keys were dropped.
        now: bool,
    },
    /// The queue accepts keys again.
    Reopen,
    /// The failures of a lane were reset.
    Forget {
        /// The key.
        key: &'a K,
        /// The lane.
        lane: LaneId,
    },
}

/// The options of an [`Add`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Request<'a, P> {
    /// The lanes it is for.
    pub lanes: &'a Lanes,
    /// The delay.
    pub after: Duration,
    /// Whether the delay is [kept](Add::kept).
    pub kept: bool,
    /// The priority.
    pub priority: Priority,
    /// How many times in a row the lanes have [failed](Add::failures).
    pub failures: u32,
    /// The payload.
    pub payload: &'a P,
}

impl<'a, P> From<&'a Add<P>> for Request<'a, P> {
    fn from(add: &'a Add<P>) -> Self {
        Self {
            lanes: &add.lanes,
            after: add.after,
            kept: add.kept,
            priority: add.priority,
            failures: add.failures,
            payload: &add.payload,
        }
    }
}

#[cfg(test)]
mod tests;
