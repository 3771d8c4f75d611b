//! The state of one key: its phase, its lanes, and their times.

use std::collections::VecDeque;
use std::hash::Hash;
use std::time::Duration;

use smallvec::SmallVec;

use super::clock::Stamp;
use super::delays::Deadline;
use super::index::Index;
use crate::{Add, LaneId, Lanes, Payload, Priority};

/// A place in line. An entry has at most one; all others of its slot are stale and skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) level: u8,
    pub(super) number: u32,
}

impl Ticket {
    pub(super) fn level(self) -> usize {
        self.level.into()
    }
}

/// The phase of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing is due; lanes may be delayed.
    Delayed,
    /// Due, but kept for after the drain that is under way.
    Deferred,
    /// In line, under this ticket.
    Ready(Ticket),
    /// With a worker, since this time.
    Processing(Stamp),
}

#[derive(Debug)]
pub(super) struct KeyEntry<P> {
    pub(super) phase: Phase,
    /// Lanes that are due and not dequeued.
    ///
    /// Not empty in `Ready` and `Deferred`; possibly not empty in `Processing`.
    pub(super) dirty: Lanes,
    /// The merged payload of the due lanes.
    pub(super) payload: P,
    /// The highest priority requested for the due lanes.
    pub(super) priority: Priority,
    /// The time since which something is due.
    pub(super) since: Stamp,
    /// In `Processing`, whether the due lanes became due before the drain.
    ///
    /// It belongs to the drain then.
    pub(super) promised: bool,
    /// State that most entries lack.
    extra: Option<Box<Extra<P>>>,
}

#[derive(Debug)]
struct Extra<P> {
    /// At most one kept and one other delay per lane; a due lane has only the kept one.
    delayed: SmallVec<[Delayed<P>; 1]>,
    /// Failures in a row, for the lanes that have any.
    failures: SmallVec<[(LaneId, u32); 1]>,
}

/// A delayed lane.
#[derive(Debug)]
pub(super) struct Delayed<P> {
    pub(super) lane: LaneId,
    /// Whether the delay stays if the lane becomes due earlier.
    pub(super) kept: bool,
    pub(super) deadline: Deadline,
    pub(super) priority: Priority,
    pub(super) payload: P,
}

impl<P: Payload> Default for KeyEntry<P> {
    fn default() -> Self {
        Self {
            phase: Phase::Delayed,
            dirty: Lanes::none(),
            payload: P::default(),
            priority: Priority::Low,
            since: Stamp::default(),
            promised: false,
            extra: None,
        }
    }
}

impl<P: Payload> KeyEntry<P> {
    /// Returns whether an immediate add changes nothing but the payload.
    pub(super) fn covers(&self, add: &Add<P>) -> bool {
        // A delayed entry has due lanes only after a panic in the user's code; it must be put in line again.
        self.phase != Phase::Delayed
            && !self.has_delays()
            && !self.dirty.is_empty()
            && self.priority >= add.priority
            && self.dirty.includes(&add.lanes)
    }

    fn has_delays(&self) -> bool {
        let extra = self.extra.as_ref();
        extra.is_some_and(|extra| !extra.delayed.is_empty())
    }

    /// Makes lanes due now; delays of these lanes end early, unless they are kept.
    ///
    /// Returns how many delays ended.
    pub(super) fn mark_dirty(&mut self, lanes: &Lanes, priority: Priority, payload: P) -> usize {
        // A delay that is not kept is satisfied by an earlier run, as in controller-runtime's priority queue.
        let early = self.absorb(|delayed| !delayed.kept && lanes.contains(delayed.lane));
        self.priority = self.urgency().max(priority);
        self.dirty.merge(lanes);
        self.payload.merge(payload);
        early
    }

    /// Makes the lanes due whose deadline has passed.
    ///
    /// Other delays of the same lanes end early, unless they are kept. Returns how many delays ended.
    pub(super) fn expire(&mut self, now: Stamp) -> usize {
        let expired = self.absorb(|delayed| delayed.deadline.at <= now);
        if !self.has_delays() {
            return expired;
        }
        // The run that is due now also satisfies later delays of its lanes.
        let due = self.dirty.clone();
        expired + self.absorb(|delayed| !delayed.kept && due.contains(delayed.lane))
    }

    /// Turns the chosen delayed lanes into due ones; returns how many.
    ///
    /// Payloads of delays count as older than the payload of the due lanes.
    fn absorb(&mut self, chosen: impl Fn(&Delayed<P>) -> bool) -> usize {
        let Some(mut next) = self.extract_earliest(&chosen) else {
            return 0;
        };
        // Payloads of delays count as older than that of what is due now.
        let newer = std::mem::take(&mut self.payload);
        let mut count = 0;
        loop {
            count += 1;
            self.priority = self.urgency().max(next.priority);
            self.dirty.insert(next.lane);
            self.payload.merge(next.payload);
            match self.extract_earliest(&chosen) {
                Some(another) => next = another,
                None => break,
            }
        }
        self.payload.merge(newer);
        count
    }

    /// Removes the chosen delay with the earliest deadline. An entry has a handful at most.
    fn extract_earliest(&mut self, chosen: impl Fn(&Delayed<P>) -> bool) -> Option<Delayed<P>> {
        let delayed = &mut self.extra.as_mut()?.delayed;
        let candidates = delayed.iter().enumerate().filter(|(_, each)| chosen(each));
        let (at, _) = candidates.min_by_key(|(_, each)| each.deadline)?;
        Some(delayed.swap_remove(at))
    }

    /// Returns the priority of the due lanes, the lowest if none is due.
    pub(super) fn urgency(&self) -> Priority {
        if self.dirty.is_empty() {
            Priority::Low
        } else {
            self.priority
        }
    }

    /// Delays a lane, and merges the delay into an existing one of the same sort.
    ///
    /// Returns `None` if the existing deadline remains, and otherwise how many deadlines became stale.
    pub(super) fn delay(&mut self, delayed: Delayed<P>) -> Option<usize> {
        let known = &mut self.extra_mut().delayed;
        let same =
            |known: &&mut Delayed<P>| known.lane == delayed.lane && known.kept == delayed.kept;
        let Some(known) = known.iter_mut().find(same) else {
            known.push(delayed);
            return Some(0);
        };
        // One delay per lane and sort: the urgency of both, the payloads in order, and the earlier time.
        known.priority = known.priority.max(delayed.priority);
        known.payload.merge(delayed.payload);
        let earlier = delayed.deadline < known.deadline;
        known.deadline = known.deadline.min(delayed.deadline);
        earlier.then_some(1)
    }

    /// Removes all delayed lanes.
    pub(super) fn drop_delayed(&mut self) {
        if let Some(extra) = &mut self.extra {
            extra.delayed.clear();
        }
    }

    /// Returns whether a lane is delayed until exactly this deadline.
    pub(super) fn has_delay(&self, deadline: Deadline) -> bool {
        let mut delayed = self.delayed().iter();
        delayed.any(|delayed| delayed.deadline == deadline)
    }

    /// Returns whether this is the earliest deadline of the delayed lanes.
    pub(super) fn is_next(&self, deadline: Deadline) -> bool {
        let deadlines = self.delayed().iter().map(|delayed| delayed.deadline);
        deadlines.min() == Some(deadline)
    }

    /// Returns the delayed lanes, in no order.
    pub(super) fn delayed(&self) -> &[Delayed<P>] {
        self.extra
            .as_ref()
            .map_or(&[][..], |extra| &extra.delayed[..])
    }

    pub(super) fn failures(&self) -> &[(LaneId, u32)] {
        self.extra.as_ref().map_or(&[], |extra| &extra.failures)
    }

    pub(super) fn failures_of(&self, lane: LaneId) -> u32 {
        let mut known = self.failures().iter();
        known
            .find(|(each, _)| *each == lane)
            .map_or(0, |(_, count)| *count)
    }

    /// Counts one more failure of a lane, and returns the new count.
    pub(super) fn count_failure(&mut self, lane: LaneId) -> u32 {
        let failures = &mut self.extra_mut().failures;
        let at = failures
            .iter()
            .position(|(known, _)| *known == lane)
            .unwrap_or_else(|| {
                failures.push((lane, 0));
                failures.len() - 1
            });
        failures[at].1 = failures[at].1.saturating_add(1);
        failures[at].1
    }

    /// Resets the failures of a lane, or of all lanes for the key as a whole.
    pub(super) fn forget(&mut self, lane: LaneId) {
        if let Some(extra) = &mut self.extra {
            extra
                .failures
                .retain(|(known, _)| *known != lane && lane != LaneId::WHOLE);
        }
    }

    /// Raises the failures of a lane to at least this number.
    pub(super) fn count_at_least(&mut self, lane: LaneId, least: u32) {
        let failures = &mut self.extra_mut().failures;
        match failures.iter_mut().find(|(known, _)| *known == lane) {
            Some((_, count)) => *count = least.max(*count),
            None => failures.push((lane, least)),
        }
    }

    /// Resets the failures of one lane only, also for the key as a whole.
    pub(super) fn forget_exactly(&mut self, lane: LaneId) {
        if let Some(extra) = &mut self.extra {
            extra.failures.retain(|(known, _)| *known != lane);
        }
    }

    /// Returns whether nothing is due, delayed or with a worker.
    pub(super) fn is_idle(&self) -> bool {
        self.phase == Phase::Delayed && !self.has_delays()
    }

    fn extra_mut(&mut self) -> &mut Extra<P> {
        self.extra.get_or_insert_with(|| {
            Box::new(Extra {
                delayed: SmallVec::new(),
                failures: SmallVec::new(),
            })
        })
    }
}

/// The place of a key in the line of those in processing.
#[derive(Debug, Clone, Copy)]
struct DequeuedSlot {
    slot: u32,
    since: Stamp,
}

impl DequeuedSlot {
    /// Returns whether the key is still processed since then.
    fn is_current<K: Eq + Hash, P>(&self, entries: &Index<K, KeyEntry<P>>) -> bool {
        let entry = entries.get(self.slot);
        entry.is_some_and(|slotted| slotted.value.phase == Phase::Processing(self.since))
    }
}

/// Counts and times of the keys in processing, at constant cost per dequeue.
#[derive(Debug, Default)]
pub(super) struct Processing {
    /// In the order of their dequeues; stale ones are skipped.
    line: VecDeque<DequeuedSlot>,
    count: usize,
    /// The sum of the dequeue times of all keys in processing, in nanoseconds.
    since: u128,
}

impl Processing {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn begin(&mut self, slot: u32, now: Stamp) {
        self.line.push_back(DequeuedSlot { slot, since: now });
        self.count += 1;
        self.since += u128::from(now.nanos());
    }

    /// Notes that a key that was dequeued at `since` is back.
    pub(super) fn end<K: Eq + Hash, P>(&mut self, since: Stamp, entries: &Index<K, KeyEntry<P>>) {
        self.count -= 1;
        self.since -= u128::from(since.nanos());
        while self
            .line
            .front()
            .is_some_and(|first| !first.is_current(entries))
        {
            self.line.pop_front();
        }
        // A key that is processed for long must not keep the stale places behind it.
        if self.line.len() > self.most_places() {
            self.line.retain(|each| each.is_current(entries));
        }
    }

    /// Returns the number of places, stale ones included.
    pub(super) fn places(&self) -> usize {
        self.line.len()
    }

    /// Returns the upper bound on the places, given the keys in processing.
    pub(super) fn most_places(&self) -> usize {
        2 * self.count + 64
    }

    /// Returns the slots in processing, each once.
    pub(super) fn slots<K: Eq + Hash, P>(&self, entries: &Index<K, KeyEntry<P>>) -> Vec<u32> {
        let mut slots: Vec<u32> = self
            .line
            .iter()
            .filter(|each| each.is_current(entries))
            .map(|each| each.slot)
            .collect();
        // A key that came back and was dequeued again at the same moment is in the line twice.
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Returns how long the keys in processing have been processed, all together.
    pub(super) fn unfinished(&self, now: Stamp) -> Duration {
        let nanos = (u128::from(now.nanos()) * self.count as u128).saturating_sub(self.since);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns how long the oldest key in processing has been processed.
    pub(super) fn longest(&self, now: Stamp) -> Duration {
        let oldest = self.line.front();
        oldest.map_or(Duration::ZERO, |oldest| now.since(oldest.since))
    }
}
