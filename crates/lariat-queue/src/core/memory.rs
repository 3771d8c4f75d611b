//! How much the core remembers.

use std::hash::Hash;

use super::QueueCore;
use crate::{Payload, QueueMemory};

impl<K: Eq + Hash + Clone, P: Payload + Clone> QueueCore<K, P> {
    /// Returns how much the queue remembers, at constant cost.
    #[must_use]
    pub fn memory(&self) -> [QueueMemory; 4] {
        let (ready, held, waiting) = (&self.ready, &self.held, &self.waiting);
        // Each key that is only delayed has a deadline.
        let keys = ready.len() + held.count() + self.aside.len() + waiting.len();
        let of = QueueMemory::new;
        [
            of("queue keys", self.entries.len(), keys),
            of("queue tickets", ready.tickets(), ready.most_tickets()),
            of("queue deadlines", waiting.len(), waiting.most()),
            of("queue hand-outs", held.places(), held.most_places()),
        ]
    }
}
