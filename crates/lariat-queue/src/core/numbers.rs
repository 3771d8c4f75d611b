//! What the core says of itself.

use std::hash::Hash;
use std::time::Instant;

use super::QueueCore;
use crate::{Payload, Priority, QueueMemory, QueueStats};

impl<K: Eq + Hash + Clone, P: Payload + Clone> QueueCore<K, P> {
    /// Returns how much the queue remembers, at constant cost.
    #[must_use]
    pub fn memory(&self) -> [QueueMemory; 4] {
        let (ready, processing, waiting) = (&self.ready, &self.processing, &self.waiting);
        // Each key that is only delayed has a deadline.
        let keys = ready.len() + processing.count() + self.aside.len() + waiting.len();
        let of = QueueMemory::new;
        [
            of("queue keys", self.entries.len(), keys),
            of("queue tickets", ready.tickets(), ready.most_tickets()),
            of("queue deadlines", waiting.len(), waiting.most()),
            of(
                "queue hand-outs",
                processing.places(),
                processing.most_places(),
            ),
        ]
    }

    /// Returns the figures of this moment, at the cost of copying them.
    #[must_use]
    pub fn stats(&mut self, now: Instant) -> QueueStats {
        let now = self.clock.stamp(now);
        self.release_expired(now);
        let processing = self.processing.count();
        QueueStats {
            delayed: self.entries.len() - self.ready.len() - processing,
            processing,
            unfinished: self.processing.unfinished(now),
            longest: self.processing.longest(now),
            depths: self.depths(),
            ..self.counters.snapshot()
        }
    }

    /// Returns how many keys have something due that no worker has, by level.
    fn depths(&self) -> [usize; Priority::LEVELS] {
        let mut depths = self.ready.depths();
        if self.counters.dirty > 0 {
            let processing = self.processing.slots(&self.entries);
            let entries = processing.iter().map(|slot| &self.entries[*slot].value);
            for entry in entries.filter(|entry| !entry.dirty.is_empty()) {
                depths[entry.priority.level()] += 1;
            }
        }
        depths
    }
}
