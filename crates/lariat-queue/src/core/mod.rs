//! The queue without clock and tasks: a state machine in which time is a parameter.

mod entry;
mod hand_out;
mod index;
mod ready;
#[cfg(test)]
mod tests;
mod waiting;

use std::hash::Hash;
use std::time::Instant;

use crate::stats::{Counters, QueueStats};
use crate::{Add, LaneId, Lanes, Payload, Priority};
use entry::{Delayed, Entry, Phase};
use index::Index;
use ready::Ready;
use waiting::Waiting;

pub use hand_out::{Taken, Verdict};
pub use ready::Ageing;

/// The state machine of a work queue.
///
/// Each key has at most one entry, which is in one of four phases: *ready* (in line to be handed
/// out), *held* (with a worker), *parked* (only delayed lanes, or remembered failures), or, during a
/// drain, *aside* (due, but for after the drain). Every call takes the present time, which must not
/// run backwards, and costs amortised constant time, or logarithmic time for a delay.
///
/// Prefer [`WorkQueue`](crate::WorkQueue), unless you drive time yourself.
///
/// ```
/// use std::time::{Duration, Instant};
/// use lariat_queue::{Add, Ageing, QueueCore};
///
/// let start = Instant::now();
/// let mut queue: QueueCore<&str, ()> = QueueCore::new(Ageing::default());
/// queue.add("a", Add::after(Duration::from_secs(5)), start);
/// assert!(queue.take(start).is_none());
/// let later = queue.next_deadline().unwrap();
/// assert_eq!(later, start + Duration::from_secs(5));
/// assert_eq!(queue.take(later).unwrap().key, "a");
/// ```
#[derive(Debug)]
pub struct QueueCore<K, P> {
    entries: Index<K, Entry<P>>,
    /// Tickets of every entry in phase `Ready`, and of no other.
    ready: Ready,
    /// Deadlines of every delayed lane, and stale ones.
    waiting: Waiting,
    /// The entries in phase `Aside`, in the order in which they became due.
    aside: Vec<u32>,
    /// How many entries are in phase `Held`.
    held: usize,
    draining: bool,
    shutting_down: bool,
    counters: Counters,
}

impl<K: Eq + Hash + Clone, P: Payload + Clone> QueueCore<K, P> {
    /// Makes an empty queue.
    #[must_use]
    pub fn new(ageing: Ageing) -> Self {
        Self {
            entries: Index::new(),
            ready: Ready::new(ageing),
            waiting: Waiting::new(),
            aside: Vec::new(),
            held: 0,
            draining: false,
            shutting_down: false,
            counters: Counters::default(),
        }
    }

    /// Adds a key; a queue that is shutting down ignores it.
    ///
    /// Lanes that are due already stay due (what is ready beats what waits, unless the delay is
    /// [`kept`](Add::kept)); of two delays of one lane the earlier wins; of two priorities the higher
    /// wins, and the key goes to the end of its new level.
    pub fn add(&mut self, key: K, add: Add<P>, now: Instant) {
        if self.shutting_down || add.lanes.is_empty() {
            return;
        }
        let slot = self.entries.find_or_insert(key, Entry::default);
        if add.after.is_zero() {
            let entry = &mut self.entries[slot].value;
            self.counters.adds += u64::from(entry.due.is_empty());
            entry.make_due(&add.lanes, add.priority, add.payload);
            self.line_up(slot, now);
        } else {
            for lane in add.lanes.ids() {
                let delayed = Delayed {
                    lane,
                    kept: add.kept,
                    deadline: self.waiting.deadline(now, add.after),
                    priority: add.priority,
                    payload: add.payload.clone(),
                };
                self.park(slot, delayed);
            }
        }
    }

    /// Hands out the next key whose time has come; during a drain, the next that was due before it.
    pub fn take(&mut self, now: Instant) -> Option<Taken<K, P>> {
        self.release_expired(now);
        let slot = self.ready.pop(&self.entries, now)?;
        let slotted = &mut self.entries[slot];
        let entry = &mut slotted.value;
        entry.phase = Phase::Held;
        entry.promised = false;
        self.held += 1;
        let waited = now.saturating_duration_since(entry.since.unwrap_or(now));
        self.counters.handed_out(waited);
        Some(Taken {
            slot,
            key: slotted.key.clone(),
            lanes: std::mem::replace(&mut entry.due, Lanes::none()),
            payload: std::mem::take(&mut entry.payload),
            priority: entry.priority,
            waited,
            failures: entry.failures().into(),
        })
    }

    /// Takes a key back from its worker, with what became of its lanes.
    ///
    /// Lanes without a verdict count as [`Verdict::Done`] without touching their failures. A key that
    /// became due meanwhile goes to the end of the line.
    ///
    /// # Panics
    ///
    /// If `slot` is not with a worker.
    pub fn finish(
        &mut self,
        slot: u32,
        priority: Priority,
        verdicts: impl IntoIterator<Item = (LaneId, Verdict<P>)>,
        now: Instant,
    ) {
        self.release(slot);
        let meanwhile = std::mem::take(&mut self.entries[slot].value.payload);
        for (lane, verdict) in verdicts {
            self.judge(slot, lane, verdict, (priority, now));
        }
        self.entries[slot].value.payload.merge(meanwhile);
        self.settle(slot, now);
    }

    /// Carries out the verdict on one lane of a returned entry.
    fn judge(
        &mut self,
        slot: u32,
        lane: LaneId,
        verdict: Verdict<P>,
        (priority, now): (Priority, Instant),
    ) {
        let entry = &mut self.entries[slot].value;
        let (after, payload, counter) = match verdict {
            Verdict::Done => return entry.forget(lane),
            Verdict::Again { after, payload } => {
                entry.forget(lane);
                (after, payload, &mut self.counters.requeues)
            }
            Verdict::Failed { after, payload } => {
                entry.count_failure(lane);
                (after, payload, &mut self.counters.retries)
            }
        };
        if self.shutting_down {
            return;
        }
        *counter += 1;
        if after.is_zero() {
            self.counters.adds += u64::from(entry.due.is_empty());
            entry.make_due(&lane.into(), priority, payload);
        } else {
            let delayed = Delayed {
                lane,
                kept: false,
                deadline: self.waiting.deadline(now, after),
                priority,
                payload,
            };
            self.park(slot, delayed);
        }
    }

    /// Takes a key back from a worker that did not do the work; all of it is due again, and belongs to
    /// the drain if there is one.
    ///
    /// # Panics
    ///
    /// If the slot is not with a worker.
    pub fn give_back(&mut self, taken: Taken<K, P>, now: Instant) {
        let slot = taken.slot;
        self.release(slot);
        let entry = &mut self.entries[slot].value;
        let meanwhile = std::mem::replace(&mut entry.payload, taken.payload);
        entry.payload.merge(meanwhile);
        entry.priority = entry.urgency().max(taken.priority);
        entry.due.merge(&taken.lanes);
        entry.promised = true;
        self.settle(slot, now);
    }

    /// Returns a time at which [`take`](Self::take) is worth calling again: when the next delayed lane
    /// comes due, or earlier where that lane has run meanwhile. There is none during a drain.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        self.waiting.next().filter(|_| !self.draining)
    }

    /// Returns whether [`take`](Self::take) would hand out a key now.
    pub fn has_ready(&mut self, now: Instant) -> bool {
        self.release_expired(now);
        !self.ready.is_empty()
    }

    /// Keeps what comes due from now on for later: until [`resume`](Self::resume), only what is due at
    /// this moment is handed out, so that a queue whose work makes more work can be emptied.
    ///
    /// Adds are accepted, merged and counted, and delays run, but none of them puts a key in line. A
    /// key that is with a worker comes once more if it was added before the drain.
    pub fn drain(&mut self, now: Instant) {
        if self.draining {
            return;
        }
        self.release_expired(now);
        self.draining = true;
        let slots: Vec<u32> = self.entries.slots().collect();
        for slot in slots {
            let entry = &mut self.entries[slot].value;
            entry.promised = !entry.due.is_empty();
        }
    }

    /// Ends a drain; what came due meanwhile goes in line, in the order in which it came.
    pub fn resume(&mut self, now: Instant) {
        self.draining = false;
        for slot in std::mem::take(&mut self.aside) {
            self.entries[slot].value.phase = Phase::Parked;
            self.line_up(slot, now);
        }
    }

    /// Refuses further adds and drops what is delayed or kept for after a drain; what is ready can
    /// still be taken.
    pub fn shut_down(&mut self) {
        self.shutting_down = true;
        self.waiting.clear();
        self.aside.clear();
        let slots: Vec<u32> = self.entries.slots().collect();
        for slot in slots {
            let entry = &mut self.entries[slot].value;
            entry.drop_delayed();
            if matches!(entry.phase, Phase::Parked | Phase::Aside) {
                self.entries.remove(slot);
            }
        }
    }

    /// Accepts adds again after [`shut_down`](Self::shut_down).
    pub fn reopen(&mut self) {
        self.shutting_down = false;
    }

    /// Returns whether the queue drains or shuts down, nothing is ready and no key is with a worker.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        (self.draining || self.shutting_down) && self.ready.is_empty() && self.held == 0
    }

    /// Returns the keys that are ready, in no order.
    #[must_use]
    pub fn ready_keys(&self) -> Vec<K> {
        let slotted = self.entries.slots().map(|slot| &self.entries[slot]);
        let ready = slotted.filter(|slotted| matches!(slotted.value.phase, Phase::Ready(_)));
        ready.map(|slotted| slotted.key.clone()).collect()
    }

    /// Returns the figures of this moment.
    #[must_use]
    pub fn stats(&self) -> QueueStats {
        let delayed = self.entries.len() - self.ready.len() - self.held;
        QueueStats::new(&self.counters, self.ready.depths(), delayed, self.held)
    }

    /// Puts an entry in line, or moves it up when its priority rose; a held one waits for its return.
    fn line_up(&mut self, slot: u32, since: Instant) {
        let entry = &mut self.entries[slot].value;
        match entry.phase {
            Phase::Held | Phase::Aside => {}
            Phase::Parked if self.draining && !entry.promised => {
                entry.phase = Phase::Aside;
                self.aside.push(slot);
            }
            Phase::Parked => {
                entry.since = Some(since);
                entry.phase = Phase::Ready(self.ready.push(slot, entry.priority));
            }
            Phase::Ready(ticket) if ticket.level() > entry.priority.level() => {
                self.ready.discard(ticket);
                entry.phase = Phase::Ready(self.ready.push(slot, entry.priority));
                self.ready.compact(&self.entries);
            }
            Phase::Ready(_) => {}
        }
    }

    /// Delays one lane, unless it is due already and the delay is not to be kept.
    fn park(&mut self, slot: u32, delayed: Delayed<P>) {
        let entry = &mut self.entries[slot].value;
        if !delayed.kept && entry.due.contains(delayed.lane) {
            entry.payload.merge(delayed.payload);
            return;
        }
        let deadline = delayed.deadline;
        if entry.delay(delayed) {
            self.waiting.push(deadline, slot);
            let entries = &self.entries;
            self.waiting.compact(|slot, deadline| {
                entries
                    .get(slot)
                    .is_some_and(|slotted| slotted.value.has_delay(deadline))
            });
        }
    }

    /// Makes every lane due whose time has come, in the order of their times.
    fn release_expired(&mut self, now: Instant) {
        if self.draining {
            return;
        }
        while let Some((deadline, slot)) = self.waiting.pop_expired(now) {
            // The deadline may be stale: its lane ran early, or the slot serves another key by now.
            let slotted = self.entries.get_mut(slot);
            if let Some(slotted) = slotted.filter(|slotted| slotted.value.has_delay(deadline)) {
                self.counters.adds += u64::from(slotted.value.due.is_empty());
                slotted.value.expire(now);
                self.line_up(slot, deadline.at);
            }
        }
    }

    fn release(&mut self, slot: u32) {
        let entry = &mut self.entries[slot].value;
        assert_eq!(entry.phase, Phase::Held, "slot {slot} is not with a worker");
        entry.phase = Phase::Parked;
        self.held -= 1;
    }

    /// Puts a returned entry where it belongs now.
    fn settle(&mut self, slot: u32, now: Instant) {
        let entry = &self.entries[slot].value;
        if !entry.due.is_empty() {
            self.line_up(slot, now);
        } else if entry.is_idle() {
            self.entries.remove(slot);
        }
    }
}
