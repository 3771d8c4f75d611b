//! Moves entries between phases: one at a time, and all together in a drain or a shutdown.
//!
//! An entry goes from delayed to ready ([`line_up`](QueueCore::line_up)), to processing ([`get`](QueueCore::get)), and
//! back to delayed ([`release`](QueueCore::release)), from where [`settle`](QueueCore::settle) queues it again, leaves
//! it delayed, or removes it.

use std::hash::Hash;
use std::time::Instant;

use smallvec::SmallVec;

use super::clock::{Clock, Stamp};
use super::delays::Deadline;
use super::entry::{Delayed, Phase, ready_since};
use super::machine::{QueueCore, Verdict, group_of};
use crate::{LaneId, Lanes, Payload, Priority};

impl<K: Eq + Hash + Clone, P: Payload> QueueCore<K, P> {
    /// Starts the waiting time of an entry whose first lane is about to become dirty.
    pub(super) fn note_dirty(&mut self, slot: u32, at: Stamp) {
        let entry = &mut self.entries[slot].value;
        if entry.dirty.is_empty() {
            entry.since = at;
            // As in client-go's `adds_total`, adds that merge count once.
            self.counters.adds += 1;
            if matches!(entry.phase, Phase::Processing(_)) {
                self.counters.dirty += 1;
            }
        }
    }

    /// Queues an entry with dirty lanes, or moves it up if its priority rose.
    ///
    /// An entry in processing stays there until its worker returns it. During a drain, an entry that became due after
    /// the drain began is deferred.
    pub(super) fn line_up(&mut self, slot: u32) {
        self.leave_waiting(slot);
        let slotted = &mut self.entries[slot];
        let entry = &mut slotted.value;
        let old = match entry.phase {
            // `settle` calls this again when the worker returns the key.
            Phase::Processing(_) => return,
            // `resume` calls this again.
            Phase::Deferred if !entry.in_drain => return,
            // Became due after the drain began, so it is queued by `resume`, in this order.
            Phase::Delayed if self.draining && !entry.in_drain => {
                entry.phase = Phase::Deferred;
                self.deferred.push(slot);
                return;
            }
            // A lane that waited at its limit when the drain began has its turn.
            Phase::Deferred => {
                self.deferred.retain(|each| *each != slot);
                None
            }
            Phase::Delayed | Phase::Waiting => None,
            // A lower level is a higher priority. A ready key never moves to a lower priority.
            Phase::Ready(ticket) if ticket.level() > entry.priority.level() => Some(ticket),
            Phase::Ready(_) => return,
        };
        let group = group_of(self.group.as_ref(), &slotted.key);
        entry.phase = Phase::Ready(self.ready.push(slot, entry.priority, group));
        if let Some(old) = old {
            // The old ticket cannot be removed from the middle of its queue. The new ticket in the phase makes it
            // stale, and it is skipped when it reaches the front.
            self.ready.discard(old);
            self.ready.compact(ready_since(&self.entries));
        }
    }

    /// Delays one lane, whether or not it is due.
    pub(super) fn delay(&mut self, delayed: Delayed<P>) {
        let deadline = delayed.deadline;
        let entry = &mut self.entries[deadline.slot].value;
        let superseded = entry.delay(delayed);
        self.deadlines.insert(deadline);
        if let Some(superseded) = superseded {
            self.deadlines.remove(superseded);
        }
    }

    /// Makes lanes due whose deadline has passed, in the order of the deadlines; `most` at most.
    pub(super) fn release_at_most(&mut self, most: usize, now: Stamp) {
        // During a drain nothing new becomes ready. The deadlines stay in `deadlines`, in order, until `resume`.
        if self.draining {
            return;
        }
        for _ in 0..most {
            let Some(deadline) = self.deadlines.pop_expired(now) else {
                return;
            };
            self.end_delay(deadline);
        }
    }

    /// Makes the lanes of one key due whose deadline has passed, before lanes of it are delayed again.
    ///
    /// While all workers are busy, and during a drain, expired delays stay in `deadlines`. A delay that has ended is
    /// due; it must not count as the earlier one of two delays, or the later one would end with it.
    pub(super) fn release_key(&mut self, slot: u32, now: Stamp) {
        while let Some(deadline) = self.entries[slot].value.overdue(now) {
            self.deadlines.remove(deadline);
            self.end_delay(deadline);
        }
    }

    /// Makes the lane due that has this deadline, which is not in `deadlines` any more.
    pub(super) fn end_delay(&mut self, deadline: Deadline) {
        // The key has been due since its deadline, not since a worker noticed it.
        self.note_dirty(deadline.slot, deadline.at);
        self.entries[deadline.slot].value.end_delay(deadline);
        self.line_up(deadline.slot);
    }

    /// Ends the processing of an entry; the caller judges its lanes and settles it.
    pub(super) fn release(&mut self, slot: u32, now: Stamp) {
        let entry = &mut self.entries[slot].value;
        // A second `done` for one `get` is a bug of the caller: silently accepted, it could release the key from under
        // another worker.
        let Phase::Processing(since) = entry.phase else {
            panic!("slot {slot} is not being processed");
        };
        entry.phase = Phase::Delayed;
        self.counters.dirty -= usize::from(!entry.dirty.is_empty());
        self.counters.worked(now.since(since));
        self.processing.end(slot, since);
    }

    /// Applies the verdict on one lane of an entry that its worker returned.
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
        // A queue that shuts down refuses retries as it refuses adds.
        if self.shutting_down {
            return;
        }
        *counter += 1;
        if after.is_zero() {
            self.note_dirty(slot, now);
            let entry = &mut self.entries[slot].value;
            entry.mark_dirty(&lane.into(), priority, payload);
        } else {
            let delayed = Delayed {
                lane,
                deadline: self.deadlines.deadline(Clock::later(now, after), slot),
                priority,
                payload,
            };
            self.delay(delayed);
        }
    }

    /// Queues an entry that its worker returned, leaves it waiting or delayed, or removes it.
    pub(super) fn settle(&mut self, slot: u32) {
        let entry = &self.entries[slot].value;
        if self.dropping {
            self.entries.remove(slot);
        } else if !entry.dirty.is_empty() {
            self.line_up(slot);
        } else if !entry.waiting().is_empty() {
            self.entries[slot].value.phase = Phase::Waiting;
            self.waiting += 1;
        // Removing idle entries bounds the memory by the keys that have work. The failures of the key go with it.
        } else if entry.is_idle() {
            self.entries.remove(slot);
        }
    }

    /// Limits the queue to the keys that are due now, until [`resume`](Self::resume).
    ///
    /// So a queue whose work creates more work can be emptied. Adds are accepted and merged, and delays are kept, but
    /// none of them makes a key ready before the drain ends. A key in processing is dequeued once more if it was added
    /// again before the drain began. The cost is proportional to the number of keys.
    ///
    /// ```
    /// use std::time::Instant;
    /// use lariat::queue::{Add, Ageing, QueueCore};
    ///
    /// let now = Instant::now();
    /// let mut queue: QueueCore<&str, ()> = QueueCore::new(Ageing::default());
    /// queue.drain(now);
    /// queue.add("a", Add::now(), now);
    /// assert!(queue.get(now).is_none());
    /// queue.resume(now);
    /// assert!(queue.get(now).is_some());
    /// ```
    pub fn drain(&mut self, now: Instant) {
        if self.draining {
            return;
        }
        let now = self.clock.stamp(now);
        // A delay that has ended is due, whether or not a worker has noticed, so it belongs to the drain.
        self.release_at_most(usize::MAX, now);
        self.draining = true;
        let slots: Vec<u32> = self.entries.slots().collect();
        for slot in slots {
            let entry = &mut self.entries[slot].value;
            // Ready keys have tickets anyway. For a key in processing this remembers that it was added again before the
            // drain.
            entry.in_drain = !entry.dirty.is_empty();
        }
    }

    /// Ends a drain and queues the keys that became due during it, in that order.
    pub fn resume(&mut self, now: Instant) {
        self.draining = false;
        for slot in std::mem::take(&mut self.deferred) {
            // `line_up` decides again, now without a drain.
            self.entries[slot].value.phase = Phase::Delayed;
            self.line_up(slot);
        }
        let now = self.clock.stamp(now);
        let lanes: SmallVec<[LaneId; 4]> = self.gates.iter().map(|gate| gate.lane).collect();
        for lane in lanes {
            self.let_pass(lane, usize::MAX, now);
        }
    }

    /// Refuses further adds and drops delayed keys: client-go's `ShutDown`.
    ///
    /// Ready keys can still be dequeued. A drain ends, and keys that it deferred are dropped, as are lanes that wait.
    pub fn shut_down(&mut self) {
        self.shut_down_and_drop(|phase| !matches!(phase, Phase::Ready(_) | Phase::Processing(_)));
    }

    /// Refuses further adds and drops all keys: controller-runtime's `ShutDown`.
    ///
    /// Keys in processing are dropped when their workers return them, also after [`reopen`](Self::reopen); what is
    /// added to them then stays.
    pub fn shut_down_now(&mut self) {
        self.dropping = true;
        self.shut_down_and_drop(|phase| !matches!(phase, Phase::Processing(_)));
        self.ready.clear();
        // The keys in processing have no dirty lanes any more.
        self.counters.dirty = 0;
    }

    /// Refuses adds, drops all delays, and removes the entries in the chosen phases.
    fn shut_down_and_drop(&mut self, drops: impl Fn(Phase) -> bool) {
        self.shutting_down = true;
        self.draining = false;
        self.deadlines.clear();
        self.deferred.clear();
        self.gates.iter_mut().for_each(|gate| gate.line.clear());
        self.waiting = 0;
        let slots: Vec<u32> = self.entries.slots().collect();
        for slot in slots {
            let entry = &mut self.entries[slot].value;
            // client-go's `ShutDown` drops waiting items. Entries that stay lose their delays and waits too: their
            // deadlines and tickets were cleared.
            entry.drop_later();
            if self.dropping {
                (entry.dirty, entry.payload) = (Lanes::none(), P::default());
                entry.is_dropped = true;
                let places = entry.take_places(|_| true);
                for gate in self.gates.iter_mut().filter(|gate| gate.most.is_some()) {
                    let its = places.iter().filter(|lane| **lane == gate.lane);
                    gate.inside -= its.count();
                }
            }
            if drops(entry.phase) {
                self.entries.remove(slot);
            }
        }
    }

    /// Accepts adds again after a shutdown.
    pub fn reopen(&mut self) {
        self.shutting_down = false;
        self.dropping = false;
    }

    /// Returns whether a drain or shutdown is complete.
    ///
    /// No key is ready or in processing then.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        (self.draining || self.shutting_down)
            && self.ready.is_empty()
            && self.processing.count() == 0
    }
}
