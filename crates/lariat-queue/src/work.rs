//! A key that is with a worker.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use crate::core::{Item, Verdict};
use crate::shared::Shared;
use crate::{LaneId, Lanes, Payload, Priority};

/// A key that a worker processes; no other worker gets it until this is done or dropped.
///
/// Dropping it without an outcome (a worker that panicked or was cancelled) gives the key back, with
/// the same lanes due and without counting a failure.
#[must_use = "dropping it puts the key back into the queue"]
pub struct Work<K: Eq + Hash + Clone, P: Payload + Clone = ()> {
    queue: Arc<Shared<K, P>>,
    /// None only after it was done.
    item: Option<Item<K, P>>,
}

impl<K: Eq + Hash + Clone, P: Payload + Clone> Work<K, P> {
    pub(crate) fn new(queue: Arc<Shared<K, P>>, item: Item<K, P>) -> Self {
        Self {
            queue,
            item: Some(item),
        }
    }

    fn item(&self) -> &Item<K, P> {
        self.item.as_ref().expect("`done` consumes the work")
    }

    /// Returns the key.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.item().key
    }

    /// Returns the lanes that are due.
    #[must_use]
    pub fn lanes(&self) -> &Lanes {
        &self.item().lanes
    }

    /// Returns what travelled with the key.
    #[must_use]
    pub fn payload(&self) -> &P {
        &self.item().payload
    }

    /// Returns the priority under which the key was handed out.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.item().priority
    }

    /// Returns how long the key was ready before it was handed out.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.item().waited
    }

    /// Returns how many times in a row a lane has failed.
    #[must_use]
    pub fn failures(&self, lane: LaneId) -> u32 {
        let mut failures = self.item().failures.iter();
        failures
            .find(|(known, _)| *known == lane)
            .map_or(0, |(_, count)| *count)
    }

    /// Returns the delay the queue's limiter asks for after one more failure of a lane.
    #[must_use]
    pub fn backoff(&self, lane: LaneId) -> Duration {
        self.queue.backoff(self.failures(lane).saturating_add(1))
    }

    /// Gives the key back as done; all its failures are forgotten.
    pub fn done(self) {
        self.done_with([(LaneId::WHOLE, Verdict::Done)]);
    }

    /// Gives the key back with a verdict on each lane.
    ///
    /// Lanes without a verdict are done, with their failures left as they are, as long as something of
    /// the key is left in the queue: a key of which nothing is has no memory.
    pub fn done_with(mut self, verdicts: impl IntoIterator<Item = (LaneId, Verdict<P>)>) {
        if let Some(item) = self.item.take() {
            self.queue.done(item.slot, item.priority, verdicts);
        }
    }

    /// Gives the key back as [`done_with`](Self::done_with) does, and gets the next one if there is one now.
    ///
    /// Both happen under one lock of the queue, so a busy worker pays for one where `done_with` and
    /// [`WorkQueue::get`](crate::WorkQueue::get) take two.
    #[must_use = "dropping the next work puts its key back into the queue"]
    pub fn done_and_try_get(
        mut self,
        verdicts: impl IntoIterator<Item = (LaneId, Verdict<P>)>,
    ) -> Option<Self> {
        let item = self.item.take()?;
        self.item = self
            .queue
            .done_and_try_get(item.slot, item.priority, verdicts);
        self.item.is_some().then_some(self)
    }

    /// Gives the key back to be tried again as a whole after the limiter's delay.
    pub fn retry(mut self) {
        let after = self.backoff(LaneId::WHOLE);
        let payload = self
            .item
            .as_mut()
            .map(|item| std::mem::take(&mut item.payload));
        let payload = payload.unwrap_or_default();
        self.done_with([(
            LaneId::WHOLE,
            Verdict::Failed {
                after,
                payload,
                priority: None,
            },
        )]);
    }
}

impl<K: Eq + Hash + Clone, P: Payload + Clone> Drop for Work<K, P> {
    fn drop(&mut self) {
        if let Some(item) = self.item.take() {
            self.queue.give_back(item);
        }
    }
}

impl<K: Eq + Hash + Clone + fmt::Debug, P: Payload + Clone> fmt::Debug for Work<K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work")
            .field("key", self.key())
            .field("lanes", self.lanes())
            .finish_non_exhaustive()
    }
}
