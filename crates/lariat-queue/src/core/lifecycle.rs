//! Draining, resuming, shutting down.

use std::hash::Hash;
use std::time::Instant;

use super::QueueCore;
use super::entry::Phase;
use crate::{Lanes, Payload};

impl<K: Eq + Hash + Clone, P: Payload + Clone> QueueCore<K, P> {
    /// Keeps what comes due from now on for later: until [`resume`](Self::resume), only what is due at
    /// this moment is handed out, so that a queue whose work makes more work can be emptied.
    ///
    /// Adds are accepted, merged and counted, and delays run, but none of them puts a key in line. A
    /// key that is with a worker comes once more if it was added before the drain. Costs as much as
    /// looking at every key.
    pub fn drain(&mut self, now: Instant) {
        if self.draining {
            return;
        }
        let now = self.clock.stamp(now);
        self.release_expired(now);
        self.draining = true;
        let slots: Vec<u32> = self.entries.slots().collect();
        for slot in slots {
            let entry = &mut self.entries[slot].value;
            entry.promised = !entry.dirty.is_empty();
        }
    }

    /// Ends a drain; what came due meanwhile goes in line, in the order in which it came.
    pub fn resume(&mut self) {
        self.draining = false;
        for slot in std::mem::take(&mut self.aside) {
            self.entries[slot].value.phase = Phase::Parked;
            self.line_up(slot);
        }
    }

    /// Refuses further adds and drops what is delayed or kept for after a drain, which ends; what is
    /// ready can still be taken: client-go's `ShutDown`.
    pub fn shut_down(&mut self) {
        self.shut_down_and_drop(|phase| matches!(phase, Phase::Parked | Phase::Aside));
    }

    /// Refuses further adds and drops everything; what is with workers is forgotten when it comes back:
    /// controller-runtime's `ShutDown`.
    pub fn shut_down_now(&mut self) {
        self.dropping = true;
        self.shut_down_and_drop(|phase| !matches!(phase, Phase::Processing(_)));
        self.ready.clear();
        self.counters.dirty = 0;
    }

    fn shut_down_and_drop(&mut self, drops: impl Fn(Phase) -> bool) {
        self.shutting_down = true;
        self.draining = false;
        self.waiting.clear();
        self.aside.clear();
        let slots: Vec<u32> = self.entries.slots().collect();
        for slot in slots {
            let entry = &mut self.entries[slot].value;
            entry.drop_delayed();
            if self.dropping {
                (entry.dirty, entry.payload) = (Lanes::none(), P::default());
            }
            if drops(entry.phase) {
                self.entries.remove(slot);
            }
        }
    }

    /// Accepts adds again after [`shut_down`](Self::shut_down).
    pub fn reopen(&mut self) {
        self.shutting_down = false;
        self.dropping = false;
    }

    /// Returns whether the queue drains or shuts down, nothing is ready and no key is with a worker.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        (self.draining || self.shutting_down)
            && self.ready.is_empty()
            && self.processing.count() == 0
    }
}
