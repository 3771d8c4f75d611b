//! The state of one key (phase, lanes, delays, failures) and of the keys in processing.

use std::collections::BTreeSet;
use std::hash::Hash;
use std::time::Duration;

use smallvec::SmallVec;

use super::clock::Stamp;
use super::delays::Deadline;
use super::index::Index;
use super::ready::{Since, Ticket};
use crate::{Add, LaneId, Lanes, Payload, Priority};

/// The phase of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing is due, and no lane waits at its gate. Lanes may be delayed.
    Delayed,
    /// Due, but deferred until the current drain ends.
    Deferred,
    /// Lanes wait at their gates; no other lane is due.
    Waiting,
    /// Due and in the ready queue, at this ticket.
    Ready(Ticket),
    /// Being processed by a worker since this time.
    Processing(Stamp),
}

/// The state of one key.
#[derive(Debug)]
pub(super) struct KeyEntry<P> {
    /// Where the key is.
    pub(super) phase: Phase,
    /// The lanes that are due and not dequeued yet: client-go's dirty set.
    ///
    /// Not empty in `Ready` and `Deferred`, possibly not empty in `Processing`, empty in `Waiting` and `Delayed`.
    pub(super) dirty: Lanes,
    /// The merged payloads of the dirty lanes.
    pub(super) payload: P,
    /// The highest priority requested for the dirty lanes.
    pub(super) priority: Priority,
    /// The time at which the first dirty lane became due.
    pub(super) since: Stamp,
    /// Whether the dirty lanes became due before the drain began.
    ///
    /// If so, they belong to the drain and the key is dequeued during it. Set when a drain begins, and when a worker
    /// returns a key unprocessed.
    pub(super) in_drain: bool,
    /// Whether the queue was shut down while a worker had the key. Its run is dropped when the worker returns the key.
    pub(super) is_dropped: bool,
    /// Delays, waits and failures, boxed because most entries have none.
    extra: Option<Box<Extra<P>>>,
}

/// The rarely used part of an entry.
#[derive(Debug)]
struct Extra<P> {
    /// The delayed lanes, at most one delay per lane; a dirty lane may be delayed too.
    delayed: SmallVec<[Delayed<P>; 1]>,
    /// Waits and places at gates, boxed because most delayed keys have none.
    gates: Option<Box<AtGates<P>>>,
    /// The number of failures in a row, for the lanes that have any.
    failures: SmallVec<[(LaneId, u32); 1]>,
}

/// What a key has at the gates of lanes.
#[derive(Debug)]
struct AtGates<P> {
    /// The lanes that wait; a waiting lane may be due or delayed too.
    waiting: Vec<Waiting<P>>,
    /// The lanes that have a place for their next call.
    places: Vec<LaneId>,
}

/// The delay of one lane.
#[derive(Debug)]
pub(super) struct Delayed<P> {
    /// The lane.
    pub(super) lane: LaneId,
    /// The time at which the lane becomes due.
    pub(super) deadline: Deadline,
    /// The priority with which the lane becomes due.
    pub(super) priority: Priority,
    /// The payload of the add that was delayed.
    pub(super) payload: P,
}

/// A lane that waits at its gate.
#[derive(Debug)]
pub(super) struct Waiting<P> {
    /// The lane.
    pub(super) lane: LaneId,
    /// The position in the gate's line.
    pub(super) ticket: Ticket,
    /// The time since which it waits.
    pub(super) since: Stamp,
    /// The priority with which the lane becomes due.
    pub(super) priority: Priority,
    /// The payload of its next call.
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
            in_drain: false,
            is_dropped: false,
            extra: None,
        }
    }
}

impl<P: Payload> KeyEntry<P> {
    /// Returns whether an immediate add would change nothing but the payload.
    ///
    /// This is the fast path of [`add`](super::QueueCore::add): it needs no clock, ticket or deadline.
    pub(super) fn covers(&self, add: &Add<P>) -> bool {
        // A delayed or waiting entry has dirty lanes only if user code panicked halfway through an earlier move. Such an
        // entry has no ticket, so the add must take the slow path, which gives it one.
        !matches!(self.phase, Phase::Delayed | Phase::Waiting)
            // A higher priority may move the key up, on the slow path.
            && !self.dirty.is_empty()
            && self.priority >= add.priority
            && self.dirty.includes(&add.lanes)
    }

    /// Returns whether any lane is delayed.
    fn has_delays(&self) -> bool {
        let extra = self.extra.as_ref();
        extra.is_some_and(|extra| !extra.delayed.is_empty())
    }

    /// Makes lanes due now. Delays of these lanes remain.
    pub(super) fn mark_dirty(&mut self, lanes: &Lanes, priority: Priority, payload: P) {
        // The priority is set before the lanes become dirty: `urgency` ignores the priority of a finished run only
        // while no lane is dirty.
        self.priority = self.urgency().max(priority);
        self.dirty.merge(lanes);
        self.payload.merge(payload);
    }

    /// Makes the lane due that has this deadline.
    pub(super) fn end_delay(&mut self, deadline: Deadline) {
        let delayed = self.extra.as_mut().and_then(|extra| {
            // A linear search: an entry has a handful of delays at most.
            let at = extra
                .delayed
                .iter()
                .position(|each| each.deadline == deadline)?;
            Some(extra.delayed.swap_remove(at))
        });
        if let Some(Delayed {
            lane,
            priority,
            payload,
            ..
        }) = delayed
        {
            self.mark_dirty(&lane.into(), priority, payload);
        }
    }

    /// Returns the priority of the dirty lanes, or the lowest if there are none.
    ///
    /// The field keeps the priority of the last run, which must not count for the next one.
    pub(super) fn urgency(&self) -> Priority {
        if self.dirty.is_empty() {
            Priority::Low
        } else {
            self.priority
        }
    }

    /// Delays a lane; merges the delay with an existing one of the same lane.
    ///
    /// Returns the deadline that does not count, if the lane was delayed already: the later of the two.
    pub(super) fn delay(&mut self, delayed: Delayed<P>) -> Option<Deadline> {
        let known = &mut self.extra_mut().delayed;
        let same = |known: &&mut Delayed<P>| known.lane == delayed.lane;
        let Some(known) = known.iter_mut().find(same) else {
            known.push(delayed);
            return None;
        };
        known.priority = known.priority.max(delayed.priority);
        known.payload.merge(delayed.payload);
        let (earlier, later) = (
            known.deadline.min(delayed.deadline),
            known.deadline.max(delayed.deadline),
        );
        known.deadline = earlier;
        Some(later)
    }

    /// Removes all delays and waits.
    pub(super) fn drop_later(&mut self) {
        if let Some(extra) = &mut self.extra {
            extra.delayed.clear();
            extra.gates.iter_mut().for_each(|at| at.waiting.clear());
        }
    }

    /// Returns the lanes that wait at their gates.
    pub(super) fn waiting(&self) -> &[Waiting<P>] {
        let gates = self.extra.as_ref().and_then(|extra| extra.gates.as_ref());
        gates.map_or(&[], |at| &at.waiting)
    }

    /// Returns the lanes that wait at their gates, to change them.
    pub(super) fn waiting_mut(&mut self) -> &mut Vec<Waiting<P>> {
        &mut self.gates_mut().waiting
    }

    /// Gives a lane a place at its gate.
    pub(super) fn give_place(&mut self, lane: LaneId) {
        self.gates_mut().places.push(lane);
    }

    /// Takes the place of a lane; returns whether it had one.
    pub(super) fn take_place(&mut self, lane: LaneId) -> bool {
        !self.take_places(|each| each == lane).is_empty()
    }

    /// Takes the places of the chosen lanes.
    pub(super) fn take_places(&mut self, chosen: impl Fn(LaneId) -> bool) -> Vec<LaneId> {
        let gates = self.extra.as_mut().and_then(|extra| extra.gates.as_mut());
        let mut taken = Vec::new();
        if let Some(at) = gates {
            (taken, at.places) = at.places.drain(..).partition(|lane| chosen(*lane));
        }
        taken
    }

    /// Takes the places that a run has not used.
    ///
    /// A lane that is due again keeps its place. During a drain it does not: the drain may defer its key.
    pub(super) fn unused_places(&mut self, draining: bool) -> Vec<LaneId> {
        let dirty = std::mem::replace(&mut self.dirty, Lanes::none());
        let unused = self.take_places(|lane| draining || !dirty.contains(lane));
        self.dirty = dirty;
        unused
    }

    /// Returns the earliest deadline that has passed and was not released yet.
    pub(super) fn overdue(&self, now: Stamp) -> Option<Deadline> {
        let deadlines = self.delayed().iter().map(|delayed| delayed.deadline);
        deadlines.filter(|deadline| deadline.at <= now).min()
    }

    /// Returns whether this is the earliest deadline of the entry.
    pub(super) fn is_next(&self, deadline: Deadline) -> bool {
        let deadlines = self.delayed().iter().map(|delayed| delayed.deadline);
        deadlines.min() == Some(deadline)
    }

    /// Returns the delays, in no particular order.
    pub(super) fn delayed(&self) -> &[Delayed<P>] {
        self.extra
            .as_ref()
            .map_or(&[][..], |extra| &extra.delayed[..])
    }

    /// Returns the failures in a row, for the lanes that have any.
    pub(super) fn failures(&self) -> &[(LaneId, u32)] {
        self.extra.as_ref().map_or(&[], |extra| &extra.failures)
    }

    /// Returns how many times in a row a lane has failed.
    pub(super) fn failures_of(&self, lane: LaneId) -> u32 {
        let mut known = self.failures().iter();
        known
            .find(|(each, _)| *each == lane)
            .map_or(0, |(_, count)| *count)
    }

    /// Counts one more failure of a lane and returns the new count.
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

    /// Resets the failures of a lane; [`LaneId::WHOLE`] resets those of all lanes.
    pub(super) fn forget(&mut self, lane: LaneId) {
        if let Some(extra) = &mut self.extra {
            extra
                .failures
                // The whole key includes its lanes, so a success of the whole key resets all of them.
                .retain(|(known, _)| *known != lane && lane != LaneId::WHOLE);
        }
    }

    /// Resets the failures of exactly this lane; [`LaneId::WHOLE`] is a lane here.
    pub(super) fn forget_exactly(&mut self, lane: LaneId) {
        if let Some(extra) = &mut self.extra {
            extra.failures.retain(|(known, _)| *known != lane);
        }
    }

    /// Returns whether the entry can be removed: no lane is due, waiting, delayed or in processing.
    pub(super) fn is_idle(&self) -> bool {
        // Callers check `dirty` first. An entry in `Delayed` is in none of the other phases.
        self.phase == Phase::Delayed && !self.has_delays()
    }

    /// Returns waits and places, allocated on first use.
    fn gates_mut(&mut self) -> &mut AtGates<P> {
        let gates = &mut self.extra_mut().gates;
        gates.get_or_insert_with(|| {
            Box::new(AtGates {
                waiting: Vec::new(),
                places: Vec::new(),
            })
        })
    }

    /// Returns the rarely used part, allocated on first use.
    fn extra_mut(&mut self) -> &mut Extra<P> {
        self.extra.get_or_insert_with(|| {
            Box::new(Extra {
                delayed: SmallVec::new(),
                gates: None,
                failures: SmallVec::new(),
            })
        })
    }
}

/// Returns whether tickets in the ready queue are valid.
pub(super) fn ready_since<K: Eq + Hash, P>(entries: &Index<K, KeyEntry<P>>) -> impl Since + Copy {
    |slot: u32, ticket: Ticket| {
        let entry = &entries.get(slot)?.value;
        (entry.phase == Phase::Ready(ticket)).then_some(entry.since)
    }
}

/// The keys in processing: the time of the dequeue and the slot of each, oldest first.
#[derive(Debug, Default)]
pub(super) struct Processing(BTreeSet<(Stamp, u32)>);

impl Processing {
    /// Returns the number of keys in processing.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Records that a key was dequeued.
    pub(super) fn begin(&mut self, slot: u32, now: Stamp) {
        self.0.insert((now, slot));
    }

    /// Records that the processing of a key that was dequeued at `since` has ended.
    pub(super) fn end(&mut self, slot: u32, since: Stamp) {
        self.0.remove(&(since, slot));
    }

    /// Iterates over the slots of the keys in processing, oldest first.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|(_, slot)| *slot)
    }

    /// Returns the total time spent so far on the keys in processing.
    pub(super) fn unfinished(&self, now: Stamp) -> Duration {
        self.0.iter().map(|(since, _)| now.since(*since)).sum()
    }

    /// Returns the time spent so far on the key that was dequeued first.
    pub(super) fn longest(&self, now: Stamp) -> Duration {
        let oldest = self.0.first();
        oldest.map_or(Duration::ZERO, |(since, _)| now.since(*since))
    }
}
