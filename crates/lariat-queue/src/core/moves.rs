//! How entries move between phases: one by one, and all together in a drain or shutdown.

use std::hash::Hash;
use std::time::Instant;

use super::clock::{Clock, Stamp};
use super::entry::{Delayed, Phase};
use super::machine::{QueueCore, Verdict, group_of};
use crate::{LaneId, Lanes, Payload, Priority};

impl<K: Eq + Hash + Clone, P: Payload + Clone> QueueCore<K, P> {
    /// Notes that something of an entry becomes due, if nothing was.
    pub(super) fn note_dirty(&mut self, slot: u32, at: Stamp) {
        let entry = &mut self.entries[slot].value;
        if entry.dirty.is_empty() {
            entry.since = at;
            self.counters.adds += 1;
            if matches!(entry.phase, Phase::Processing(_)) {
                self.counters.dirty += 1;
            }
        }
    }

    /// Puts a due entry in line, or moves it up if its priority rose.
    ///
    /// An entry in processing stays where it is, until its worker gives it back.
    pub(super) fn line_up(&mut self, slot: u32) {
        let slotted = &mut self.entries[slot];
        let entry = &mut slotted.value;
        let old = match entry.phase {
            Phase::Processing(_) | Phase::Deferred => return,
            // Became due after the drain began, so it is kept for `resume`, in this order.
            Phase::Delayed if self.draining && !entry.promised => {
                entry.phase = Phase::Deferred;
                self.deferred.push(slot);
                return;
            }
            Phase::Delayed => None,
            // A smaller level is a higher priority. A key never moves down.
            Phase::Ready(ticket) if ticket.level() > entry.priority.level() => Some(ticket),
            Phase::Ready(_) => return,
        };
        let group = group_of(self.group.as_ref(), &slotted.key);
        entry.phase = Phase::Ready(self.ready.push(slot, entry.priority, group));
        if let Some(old) = old {
            // The old ticket stays in its line until it gets to the front; the new one makes it stale.
            self.ready.discard(old);
            self.ready.compact(&self.entries);
        }
    }

    /// Notes that deadlines have become stale; removes them if they are the majority.
    pub(super) fn note_early(&mut self, count: usize) {
        self.waiting.note_stale(count);
        self.compact_waiting();
    }

    fn compact_waiting(&mut self) {
        let entries = &self.entries;
        self.waiting.compact(|slot, deadline| {
            let slotted = entries.get(slot);
            slotted.is_some_and(|slotted| slotted.value.has_delay(deadline))
        });
    }

    /// Delays one lane, unless it is due already and the delay is not kept.
    pub(super) fn delay(&mut self, slot: u32, delayed: Delayed<P>) {
        let entry = &mut self.entries[slot].value;
        // What is ready beats what waits: the due lane satisfies this request too.
        if !delayed.kept && entry.dirty.contains(delayed.lane) {
            entry.priority = entry.priority.max(delayed.priority);
            entry.payload.merge(delayed.payload);
            return self.line_up(slot);
        }
        let deadline = delayed.deadline;
        if let Some(stale) = entry.delay(delayed) {
            self.waiting.push(deadline, slot);
            self.note_early(stale);
        }
    }

    /// Makes every lane due whose deadline has passed, in the order of the deadlines.
    pub(super) fn release_expired(&mut self, now: Stamp) {
        self.release_at_most(usize::MAX, now);
    }

    /// Makes lanes due whose deadlines have passed, in that order.
    ///
    /// Stops after `most` deadlines, once a key is ready.
    pub(super) fn release_at_most(&mut self, most: usize, now: Stamp) {
        if self.draining {
            return;
        }
        let mut count = 0;
        while count < most || self.ready.is_empty() {
            let Some((deadline, slot)) = self.waiting.pop_expired(now) else {
                break;
            };
            count += 1;
            // The deadline may be stale: its lane ran early, or the slot belongs to another key by now.
            let slotted = self.entries.get(slot);
            if slotted.is_some_and(|slotted| slotted.value.has_delay(deadline)) {
                self.released += 1;
                self.note_dirty(slot, deadline.at);
                // Other lanes may have come due with this one. Their deadlines remain, and are stale now.
                let expired = self.entries[slot].value.expire(now);
                self.waiting.note_stale(expired.saturating_sub(1));
                self.line_up(slot);
            } else {
                self.waiting.forget_stale();
            }
        }
        if count > 0 {
            self.compact_waiting();
        }
    }

    /// Takes an entry back from its worker.
    pub(super) fn release(&mut self, slot: u32, now: Stamp) {
        let entry = &mut self.entries[slot].value;
        let Phase::Processing(since) = entry.phase else {
            panic!("slot {slot} is not with a worker");
        };
        entry.phase = Phase::Delayed;
        self.counters.dirty -= usize::from(!entry.dirty.is_empty());
        self.counters.worked(now.since(since));
        self.processing.end(since, &self.entries);
    }

    /// Applies the verdict on one lane of a returned entry.
    pub(super) fn judge(
        &mut self,
        slot: u32,
        lane: LaneId,
        verdict: Verdict<P>,
        priority: Priority,
        now: Stamp,
    ) {
        let entry = &mut self.entries[slot].value;
        let (after, payload, asked, counter) = match verdict {
            Verdict::Done => return entry.forget(lane),
            Verdict::Again {
                after,
                payload,
                priority,
            } => {
                entry.forget(lane);
                (after, payload, priority, &mut self.counters.requeues)
            }
            Verdict::Failed {
                after,
                payload,
                priority,
            } => {
                entry.count_failure(lane);
                (after, payload, priority, &mut self.counters.retries)
            }
            Verdict::Postponed {
                after,
                payload,
                priority,
            } => (after, payload, priority, &mut self.counters.retries),
        };
        let priority = asked.unwrap_or(priority);
        // A queue that shuts down takes no retries; the failure was counted above, which does no harm.
        if self.shutting_down {
            return;
        }
        *counter += 1;
        if after.is_zero() {
            self.note_dirty(slot, now);
            let entry = &mut self.entries[slot].value;
            let early = entry.mark_dirty(&lane.into(), priority, payload);
            self.note_early(early);
        } else {
            let delayed = Delayed {
                lane,
                kept: false,
                deadline: self.waiting.deadline(Clock::later(now, after)),
                priority,
                payload,
            };
            self.delay(slot, delayed);
        }
    }

    /// Puts a returned entry in line, delays it, or removes it if nothing of it is left.
    pub(super) fn settle(&mut self, slot: u32) {
        let entry = &self.entries[slot].value;
        if self.dropping {
            self.entries.remove(slot);
        } else if !entry.dirty.is_empty() {
            self.line_up(slot);
        } else if entry.is_idle() {
            self.entries.remove(slot);
        }
    }

    /// Limits the queue to the keys that are due now, until [`resume`](Self::resume).
    ///
    /// So a queue whose work creates more work can be emptied. Adds are accepted, merged and counted, and delays run,
    /// but none of them puts a key in line. A key in processing comes once more if it was added before the drain. The
    /// cost is proportional to the number of keys.
    pub fn drain(&mut self, now: Instant) {
        if self.draining {
            return;
        }
        let now = self.clock.stamp(now);
        // Delays that have ended belong to the drain.
        self.release_expired(now);
        self.draining = true;
        let slots: Vec<u32> = self.entries.slots().collect();
        for slot in slots {
            let entry = &mut self.entries[slot].value;
            // A key in processing comes once more in this drain if it was dirty when the drain began.
            entry.promised = !entry.dirty.is_empty();
        }
    }

    /// Ends a drain; keys that became due meanwhile are queued in that order.
    pub fn resume(&mut self) {
        self.draining = false;
        for slot in std::mem::take(&mut self.deferred) {
            // `line_up` decides again, now without a drain.
            self.entries[slot].value.phase = Phase::Delayed;
            self.line_up(slot);
        }
    }

    /// Refuses further adds and drops delayed keys: client-go's `ShutDown`.
    ///
    /// A drain ends, and the keys kept for after it are dropped too. Ready keys can still be dequeued.
    pub fn shut_down(&mut self) {
        self.shut_down_and_drop(|phase| matches!(phase, Phase::Delayed | Phase::Deferred));
    }

    /// Refuses further adds and drops everything: controller-runtime's `ShutDown`.
    ///
    /// Keys in processing are removed when their workers give them back.
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
        self.deferred.clear();
        let slots: Vec<u32> = self.entries.slots().collect();
        for slot in slots {
            let entry = &mut self.entries[slot].value;
            // Delayed lanes of all keys are dropped, as client-go's `ShutDown` drops waiting items.
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

    /// Returns whether a draining or closed queue has no key ready or in processing.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        (self.draining || self.shutting_down)
            && self.ready.is_empty()
            && self.processing.count() == 0
    }
}
