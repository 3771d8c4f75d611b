//! Observes every step of a queue, to record and replay it.

use std::time::{Duration, Instant};

use crate::{Add, Item, LaneId, Lanes, Priority, Verdict};

/// An observer of every step of a queue.
///
/// It is called under the lock of the queue, in the order of the steps, so it must be quick and must not use the queue.
/// A [`QueueCore`](crate::QueueCore) that receives the same steps at the same times dequeues the same keys in the same
/// order.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Instant;
/// use parking_lot::Mutex;
/// use lariat::queue::{Add, QueueBuilder, QueueStep, Tap, WorkQueue};
///
/// #[derive(Clone, Default)]
/// struct Dequeued(Arc<Mutex<Vec<&'static str>>>);
///
/// impl Tap<&'static str, ()> for Dequeued {
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
    /// Receives a step and its time.
    ///
    /// The time is read before the lock is taken. So it may be earlier than the time of the previous step, by as long
    /// as the thread waited for the lock.
    fn step(&self, at: Instant, step: &QueueStep<'_, K, P>);
}

/// A step of a queue.
#[derive(Debug)]
#[non_exhaustive]
pub enum QueueStep<'a, K, P> {
    /// A key was added.
    Add {
        /// The key.
        key: &'a K,
        /// The options of the add.
        request: Request<'a, P>,
        /// The delay from the rate limiter; `None` for an add without it.
        limited: Option<Duration>,
        /// The group of the key; `None` without fair queuing.
        group: Option<u64>,
    },
    /// Delays ended in a call that dequeued no key.
    Release,
    /// A key was dequeued.
    Get(&'a Item<K, P>),
    /// A worker finished a key.
    Done {
        /// The key.
        key: &'a K,
        /// The verdicts on the lanes.
        verdicts: &'a [(LaneId, Verdict<P>)],
    },
    /// The queue contains nothing any more and behaves like a new one.
    Emptied,
    /// A worker returned a key without processing it.
    GiveBack {
        /// The key.
        key: &'a K,
    },
    /// A drain began.
    Drain,
    /// A drain ended.
    Resume,
    /// The queue was shut down.
    ShutDown {
        /// Whether ready keys were dropped.
        now: bool,
    },
    /// The queue accepts adds again.
    Reopen,
    /// The failures of a lane were reset.
    Forget {
        /// The key.
        key: &'a K,
        /// The lane.
        lane: LaneId,
    },
}

/// The options of an [`Add`], borrowed.
#[derive(Debug)]
#[non_exhaustive]
pub struct Request<'a, P> {
    /// The lanes.
    pub lanes: &'a Lanes,
    /// The delay; zero means now.
    pub after: Duration,
    /// Whether the delay is [kept](Add::kept).
    pub kept: bool,
    /// The priority.
    pub priority: Priority,
    /// The failures in a row that the caller [passed](Add::failures).
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
