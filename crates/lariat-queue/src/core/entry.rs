//! What the queue knows of one key: its phase, its lanes, and the times of both.

use std::collections::VecDeque;
use std::hash::Hash;
use std::time::Duration;

use smallvec::SmallVec;

use super::clock::Stamp;
use super::delays::Deadline;
use super::index::Index;
use crate::{Add, LaneId, Lanes, Payload, Priority};

/// A place in line. An entry holds at most one; others of its slot are stale and skipped.
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

/// Where an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing is due; lanes may be delayed.
    Parked,
    /// Something is due, but became so during a drain; waits for the resumption.
    Aside,
    /// In line, under this ticket.
    Ready(Ticket),
    /// With a worker, since then.
    Processing(Stamp),
}

#[derive(Debug)]
pub(super) struct KeyEntry<P> {
    pub(super) phase: Phase,
    /// Lanes due and not dequeued; not empty exactly in `Ready` and `Aside`, possibly not in `Processing`.
    pub(super) dirty: Lanes,
    /// What travels with `due`.
    pub(super) payload: P,
    /// The highest priority asked for `due`.
    pub(super) priority: Priority,
    /// Since when something is due.
    pub(super) since: Stamp,
    /// What is due of an entry in `Processing` became so before the drain, and belongs to it.
    pub(super) promised: bool,
    /// What most entries lack.
    extra: Option<Box<Extra<P>>>,
}

#[derive(Debug)]
struct Extra<P> {
    /// At most one of each sort per lane; of a lane that is due there is only the kept sort.
    delayed: SmallVec<[Delayed<P>; 1]>,
    /// Failures in a row, of lanes that have any.
    failures: SmallVec<[(LaneId, u32); 1]>,
}

/// A lane whose time has not come.
#[derive(Debug)]
pub(super) struct Delayed<P> {
    pub(super) lane: LaneId,
    /// Stays when the lane comes due early.
    pub(super) kept: bool,
    pub(super) deadline: Deadline,
    pub(super) priority: Priority,
    pub(super) payload: P,
}

impl<P: Payload> Default for KeyEntry<P> {
    fn default() -> Self {
        Self {
            phase: Phase::Parked,
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
    /// Returns whether an add for now changes nothing but the payload.
    pub(super) fn covers(&self, add: &Add<P>) -> bool {
        // Something due of a parked entry is what a panic in a user's code has left; it gets in line.
        self.phase != Phase::Parked
            && !self.has_delays()
            && !self.dirty.is_empty()
            && self.priority >= add.priority
            && self.dirty.includes(&add.lanes)
    }

    fn has_delays(&self) -> bool {
        let extra = self.extra.as_ref();
        extra.is_some_and(|extra| !extra.delayed.is_empty())
    }

    /// Makes lanes due now; delayed lanes among them come early, unless their delay is kept. Returns
    /// how many did.
    pub(super) fn mark_dirty(&mut self, lanes: &Lanes, priority: Priority, payload: P) -> usize {
        let early = self.absorb(|delayed| !delayed.kept && lanes.contains(delayed.lane));
        self.priority = self.urgency().max(priority);
        self.dirty.merge(lanes);
        self.payload.merge(payload);
        early
    }

    /// Makes the lanes due whose time has come, and delayed ones of the same lanes; returns how many
    /// there were.
    pub(super) fn expire(&mut self, now: Stamp) -> usize {
        let expired = self.absorb(|delayed| delayed.deadline.at <= now);
        if !self.has_delays() {
            return expired;
        }
        let due = self.dirty.clone();
        expired + self.absorb(|delayed| !delayed.kept && due.contains(delayed.lane))
    }

    /// Moves delayed lanes to the due ones; what travels with them is the older. Returns how many.
    fn absorb(&mut self, chosen: impl Fn(&Delayed<P>) -> bool) -> usize {
        let Some(mut next) = self.extract_earliest(&chosen) else {
            return 0;
        };
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

    /// Takes out the chosen delay that ends first. An entry has a handful of them at most.
    fn extract_earliest(&mut self, chosen: impl Fn(&Delayed<P>) -> bool) -> Option<Delayed<P>> {
        let delayed = &mut self.extra.as_mut()?.delayed;
        let candidates = delayed.iter().enumerate().filter(|(_, each)| chosen(each));
        let (at, _) = candidates.min_by_key(|(_, each)| each.deadline)?;
        Some(delayed.swap_remove(at))
    }

    /// Returns the priority of what is due, the lowest if nothing is.
    pub(super) fn urgency(&self) -> Priority {
        if self.dirty.is_empty() {
            Priority::Low
        } else {
            self.priority
        }
    }

    /// Delays a lane; returns how many deadlines become stale if the entry has a new one.
    pub(super) fn delay(&mut self, delayed: Delayed<P>) -> Option<usize> {
        let known = &mut self.extra_mut().delayed;
        let same =
            |known: &&mut Delayed<P>| known.lane == delayed.lane && known.kept == delayed.kept;
        let Some(known) = known.iter_mut().find(same) else {
            known.push(delayed);
            return Some(0);
        };
        known.priority = known.priority.max(delayed.priority);
        known.payload.merge(delayed.payload);
        let earlier = delayed.deadline < known.deadline;
        known.deadline = known.deadline.min(delayed.deadline);
        earlier.then_some(1)
    }

    /// Forgets every delayed lane.
    pub(super) fn drop_delayed(&mut self) {
        if let Some(extra) = &mut self.extra {
            extra.delayed.clear();
        }
    }

    /// Returns whether a lane is delayed until exactly this deadline.
    pub(super) fn has_delay(&self, deadline: Deadline) -> bool {
        let delayed = self
            .extra
            .as_ref()
            .map_or(&[][..], |extra| &extra.delayed[..]);
        delayed.iter().any(|delayed| delayed.deadline == deadline)
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
        let at = failures.iter().position(|(known, _)| *known == lane);
        let at = at.unwrap_or_else(|| {
            failures.push((lane, 0));
            failures.len() - 1
        });
        failures[at].1 = failures[at].1.saturating_add(1);
        failures[at].1
    }

    /// Forgets the failures of a lane, or of all when the whole key is meant.
    pub(super) fn forget(&mut self, lane: LaneId) {
        if let Some(extra) = &mut self.extra {
            extra
                .failures
                .retain(|(known, _)| *known != lane && lane != LaneId::WHOLE);
        }
    }

    /// Raises the failures of a lane to a number they have at least.
    pub(super) fn count_at_least(&mut self, lane: LaneId, least: u32) {
        let failures = &mut self.extra_mut().failures;
        match failures.iter_mut().find(|(known, _)| *known == lane) {
            Some((_, count)) => *count = least.max(*count),
            None => failures.push((lane, least)),
        }
    }

    /// Forgets the failures of one lane, or of the key as such.
    pub(super) fn forget_exactly(&mut self, lane: LaneId) {
        if let Some(extra) = &mut self.extra {
            extra.failures.retain(|(known, _)| *known != lane);
        }
    }

    /// Returns whether nothing is due, delayed or with a worker.
    pub(super) fn is_idle(&self) -> bool {
        self.phase == Phase::Parked && !self.has_delays()
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

/// Counts and times of keys that are processed, at constant cost per dequeue.
#[derive(Debug, Default)]
pub(super) struct Processing {
    /// Slots with the time of their dequeue; stale ones are skipped.
    line: VecDeque<(u32, Stamp)>,
    count: usize,
    /// The sum of the times of dequeue of all of them, in nanoseconds.
    since: u128,
}

impl Processing {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn begin(&mut self, slot: u32, now: Stamp) {
        self.line.push_back((slot, now));
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
            .is_some_and(|first| !is_processing(*first, entries))
        {
            self.line.pop_front();
        }
        // One that is processed for long must not keep those behind it.
        if self.line.len() > self.most_places() {
            self.line.retain(|each| is_processing(*each, entries));
        }
    }

    /// Returns how many places there are, stale ones included.
    pub(super) fn places(&self) -> usize {
        self.line.len()
    }

    /// Returns how many places there are at most with the keys that are processed now.
    pub(super) fn most_places(&self) -> usize {
        2 * self.count + 64
    }

    /// Returns the slots that are processed, each once.
    pub(super) fn slots<K: Eq + Hash, P>(&self, entries: &Index<K, KeyEntry<P>>) -> Vec<u32> {
        let slots = self
            .line
            .iter()
            .filter(|each| is_processing(**each, entries));
        let mut slots: Vec<u32> = slots.map(|(slot, _)| *slot).collect();
        // One that came back and was dequeued again at the same moment is in the line twice.
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Returns how long the present holders have had their keys, all together.
    pub(super) fn unfinished(&self, now: Stamp) -> Duration {
        let nanos = (u128::from(now.nanos()) * self.count as u128).saturating_sub(self.since);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns how long the present holder with the oldest dequeue has had its key.
    pub(super) fn longest(&self, now: Stamp) -> Duration {
        let oldest = self.line.front();
        oldest.map_or(Duration::ZERO, |(_, since)| now.since(*since))
    }
}

fn is_processing<K: Eq + Hash, P>(
    (slot, since): (u32, Stamp),
    entries: &Index<K, KeyEntry<P>>,
) -> bool {
    let entry = entries.get(slot);
    entry.is_some_and(|slotted| slotted.value.phase == Phase::Processing(since))
}
