//! The work queue of a controller.

use std::hash::Hash;

use lariat_queue::{Add, Ageing, Item, LaneId, QueueCore, Verdict};
use tokio::time::Instant;

/// Keys a controller has to process, each with the time at which it is due.
///
/// A key is in the queue at most once, for the earliest of the times it was added for. Keys are taken in the order of
/// their times, those of one moment in the order in which they were added; a key that is added for now may come before
/// one whose time has passed meanwhile. Time is tokio's clock, and nothing else decides the order.
#[derive(Debug)]
pub(super) struct Queue<K> {
    core: QueueCore<K, ()>,
}

impl<K: Eq + Hash + Clone> Queue<K> {
    pub(super) fn new() -> Self {
        Self {
            core: QueueCore::new(Ageing::default()),
        }
    }

    /// Adds a key that is due now.
    pub(super) fn add(&mut self, key: K) {
        self.core.add(key, Add::now(), Instant::now().into_std());
    }

    /// Adds a key that is due at some time.
    pub(super) fn add_at(&mut self, key: K, at: Instant) {
        let now = Instant::now();
        let add = Add::after(at.saturating_duration_since(now));
        self.core.add(key, add, now.into_std());
    }

    /// Dequeues the next key that is due.
    pub(super) fn take_due(&mut self) -> Option<K> {
        let now = Instant::now().into_std();
        let Item {
            slot,
            key,
            priority,
            ..
        } = self.core.get(now)?;
        // One task processes the keys of all controllers, so none has to be kept from another worker.
        let done = [(LaneId::WHOLE, Verdict::Done)];
        self.core.done(slot, priority, done, now);
        Some(key)
    }

    /// Returns whether a key is due now.
    pub(super) fn has_due(&mut self) -> bool {
        self.core.has_ready(Instant::now().into_std())
    }

    /// Returns when [`take_due`](Self::take_due) should be called next.
    ///
    /// Nothing need be due then.
    pub(super) fn next_due(&self) -> Option<Instant> {
        if self.core.is_empty() {
            self.core.next_deadline().map(Instant::from_std)
        } else {
            Some(Instant::now())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_is_due_at_the_earliest_time_it_was_added_for() {
        let mut queue = Queue::new();
        let start = Instant::now();
        let second = Duration::from_secs(1);
        queue.add_at("late", start + 3 * second);
        queue.add_at("early", start + 2 * second);
        queue.add_at("late", start + second);
        queue.add_at("late", start + 5 * second);
        assert_eq!(queue.next_due(), Some(start + second));
        assert!(!queue.has_due() && queue.take_due().is_none());
        time::advance(second).await;
        assert!(queue.has_due());
        assert_eq!(queue.take_due(), Some("late"));
        assert_eq!(queue.take_due(), None);
        time::advance(10 * second).await;
        assert_eq!(queue.take_due(), Some("early"));
        assert_eq!(queue.take_due(), None);
        assert_eq!(queue.next_due(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn keys_of_one_moment_are_taken_in_the_order_of_their_adds() {
        let mut queue = Queue::new();
        let at = Instant::now() + Duration::from_secs(1);
        for key in ["c", "a", "b", "a"] {
            queue.add_at(key, at);
        }
        time::advance(Duration::from_secs(1)).await;
        let taken: Vec<&str> = std::iter::from_fn(|| queue.take_due()).collect();
        assert_eq!(taken, ["c", "a", "b"]);
    }
}
