//! Seeing what goes into a queue and what comes out.

use std::time::{Duration, Instant};

use crate::{Add, Item, LaneId, Lanes, Priority, Verdict};

/// Sees every step of a queue, for a recording of it.
///
/// It is called under the lock of the queue, in the order of the steps, so it must be quick and must not use the queue. A
/// [`QueueCore`](crate::QueueCore) that is given the same steps at the same times dequeues the same keys.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Instant;
/// use parking_lot::Mutex;
/// use lariat_queue::{Add, QueueBuilder, QueueStep, Tap, WorkQueue};
///
/// #[derive(Clone, Default)]
/// struct Handed(Arc<Mutex<Vec<&'static str>>>);
///
/// impl Tap<&'static str, ()> for Handed {
///     fn step(&self, _at: Instant, step: &QueueStep<'_, &'static str, ()>) {
///         if let QueueStep::Get(item) = step {
///             self.0.lock().push(item.key);
///         }
///     }
/// }
///
/// let handed = Handed::default();
/// let queue = WorkQueue::<&str>::builder().build_tapped(handed.clone());
/// queue.add("pod-a", Add::now());
/// queue.try_get().expect("a key is due").done();
/// assert_eq!(*handed.0.lock(), ["pod-a"]);
/// ```
pub trait Tap<K, P>: Send + Sync {
    /// Receives a step, and the time at which it happens for the queue.
    ///
    /// The time is taken before the lock, so that of a step may be earlier than that of the one before, by as long as
    /// its thread waited.
    fn step(&self, at: Instant, step: &QueueStep<'_, K, P>);
}

/// What happens to a queue.
#[derive(Debug)]
#[non_exhaustive]
pub enum QueueStep<'a, K, P> {
    /// A key is added.
    Add {
        /// The key.
        key: &'a K,
        /// What is asked for.
        request: Request<'a, P>,
        /// The delay the limiter chose, for a key that is added after one.
        limited: Option<Duration>,
        /// The key's group, in a queue whose groups take turns.
        group: Option<u64>,
    },
    /// Delays were found to have ended, by someone who did not take a key.
    Release,
    /// A key was dequeued.
    Get(&'a Item<K, P>),
    /// A key comes back.
    Done {
        /// The key.
        key: &'a K,
        /// What became of its lanes.
        verdicts: &'a [(LaneId, Verdict<P>)],
    },
    /// After a step nothing is left in the queue, which is like a new one since.
    Emptied,
    /// A key comes back undone.
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
        /// Whether what was ready is dropped.
        now: bool,
    },
    /// The queue accepts keys again.
    Reopen,
    /// Failures are forgotten.
    Forget {
        /// The key.
        key: &'a K,
        /// The lane.
        lane: LaneId,
    },
}

/// What an [`Add`] asks for.
#[derive(Debug)]
#[non_exhaustive]
pub struct Request<'a, P> {
    /// For which lanes.
    pub lanes: &'a Lanes,
    /// After which delay.
    pub after: Duration,
    /// Whether the delay is [kept](Add::kept).
    pub kept: bool,
    /// How urgent it is.
    pub priority: Priority,
    /// How many times in a row the lanes have [failed](Add::failures).
    pub failures: u32,
    /// What travels with the key.
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
