//! Reads the keys of the queue without changing it.

use std::hash::Hash;
use std::time::{Duration, Instant};

use super::clock::Stamp;
use super::delays::Deadline;
use super::entry::{KeyEntry, Phase, ready_since};
use super::gate::{Gate, in_line};
use super::machine::QueueCore;
use crate::{KeyState, Payload, Priority, QueueSnapshot, QueuedKey, QueuedLane, WaitsFor};

/// The most tickets, and the most deadlines, that one snapshot reads.
///
/// Reading them takes less than a millisecond, during which the lock is held.
const MOST_LOOKED_AT: usize = 16 * 1024;

impl<K: Eq + Hash + Clone, P: Payload> QueueCore<K, P> {
    /// Returns the first keys: ready, in processing, deferred, waiting, delayed.
    ///
    /// See [`WorkQueue::snapshot`](crate::WorkQueue::snapshot).
    #[must_use]
    pub fn snapshot(&self, limit: usize, now: Instant) -> QueueSnapshot<K> {
        let now = self.clock.stamp_of(now);
        let entries = &self.entries;
        let mut slots: Vec<u32> = self
            .ready
            .in_order(ready_since(entries), MOST_LOOKED_AT)
            .chain(self.processing.slots())
            .chain(self.deferred.iter().copied())
            .chain(self.waiting_slots())
            .take(limit)
            .collect();
        // A key with several delays has several deadlines; only the earliest counts, so that the key is listed once.
        let is_next = |deadline: &Deadline| {
            let entry = &entries[deadline.slot].value;
            entry.phase == Phase::Delayed && entry.is_next(*deadline)
        };
        let read = self.deadlines.iter().take(MOST_LOOKED_AT);
        let delayed = read.filter(is_next).map(|deadline| deadline.slot);
        let room = limit - slots.len();
        slots.extend(delayed.take(room));
        QueueSnapshot {
            keys: slots.into_iter().map(|slot| self.seen(slot, now)).collect(),
            total: entries.len(),
        }
    }

    /// Returns the state of a key; `None` if the queue does not contain it.
    #[must_use]
    pub fn queued(&self, key: &K, now: Instant) -> Option<QueuedKey<K>> {
        let slot = self.entries.find(key)?;
        Some(self.seen(slot, self.clock.stamp_of(now)))
    }

    /// Returns the ready keys, and those that wait at a limit.
    ///
    /// The ready ones come first, in the order of the next dequeues, ignoring ageing. A drain dequeues both, and no keys
    /// that wait for anything else.
    #[must_use]
    pub fn due_keys(&self) -> Vec<K> {
        let at_limits = self.at_limits();
        let keys = at_limits.map(|slot| self.entries[slot].key.clone());
        self.ready_keys().into_iter().chain(keys).collect()
    }

    /// Returns the number of [`due_keys`](Self::due_keys).
    #[must_use]
    pub fn due(&self) -> usize {
        self.ready.len() + self.at_limits().count()
    }

    /// Iterates over the slots of the keys that wait at a limit, and are not ready or processed, each once.
    fn at_limits(&self) -> impl Iterator<Item = u32> {
        let limited = |gate: &&Gate| gate.waits_for() == Some(WaitsFor::Limit);
        self.gates.iter().filter(limited).flat_map(move |gate| {
            let is_limited = move |lane| {
                let mut limits = self.gates.iter().filter(limited);
                limits.any(|limit| limit.lane == lane)
            };
            // A key that waits at several limits is listed with the first. One that a drain defers has its turn there
            // too.
            let is_first = move |slot: &u32| {
                let entry = &self.entries[*slot].value;
                let first = entry.waiting().iter().find(|each| is_limited(each.lane));
                matches!(entry.phase, Phase::Waiting | Phase::Deferred)
                    && first.is_some_and(|first| first.lane == gate.lane)
            };
            let line = gate
                .line
                .in_order(in_line(&self.entries, gate.lane), usize::MAX);
            line.filter(is_first)
        })
    }

    /// Iterates over the slots of the keys that only wait, each once.
    fn waiting_slots(&self) -> impl Iterator<Item = u32> {
        let entries = &self.entries;
        self.gates.iter().flat_map(move |gate| {
            let lane = gate.lane;
            // A key that waits for several lanes is listed with the first.
            let is_first = move |slot: &u32| {
                let entry = entries.get(*slot).map(|slotted| &slotted.value);
                entry.is_some_and(|entry| {
                    let first = entry.waiting().first();
                    entry.phase == Phase::Waiting && first.is_some_and(|first| first.lane == lane)
                })
            };
            let slots = gate.line.in_order(in_line(entries, lane), MOST_LOOKED_AT);
            slots.filter(is_first)
        })
    }

    /// Returns the lanes of a key that are due, waiting or delayed, soonest first.
    fn lanes(&self, entry: &KeyEntry<P>, now: Stamp) -> Vec<QueuedLane> {
        let lane = |lane, due_in, waits_for| QueuedLane {
            lane,
            due_in,
            waits_for,
        };
        let due = entry.dirty.ids().map(|id| lane(id, Duration::ZERO, None));
        let waiting = entry.waiting().iter().map(|waiting| {
            let gate = self.gates.iter().find(|gate| gate.lane == waiting.lane);
            let why = gate.and_then(Gate::waits_for).unwrap_or(WaitsFor::Limit);
            lane(waiting.lane, Duration::ZERO, Some(why))
        });
        let delayed = entry.delayed().iter().map(|delayed| {
            let due_in = delayed.deadline.at.since(now);
            lane(delayed.lane, due_in, None)
        });
        let mut lanes: Vec<QueuedLane> = due.chain(waiting).chain(delayed).collect();
        // A stable sort: due and waiting lanes stay before delays that have just ended.
        lanes.sort_by_key(|lane| lane.due_in);
        lanes
    }

    /// Returns the state of the key in a slot, as users see it.
    fn seen(&self, slot: u32, now: Stamp) -> QueuedKey<K> {
        let slotted = &self.entries[slot];
        let entry = &slotted.value;
        let lanes = self.lanes(entry, now);
        let overdue = overdue(entry, now);
        let since = (!entry.dirty.is_empty()).then_some(entry.since);
        let waiting = entry.waiting().iter().map(|waiting| waiting.since).min();
        QueuedKey {
            key: slotted.key.clone(),
            state: match entry.phase {
                Phase::Ready(_) => KeyState::Ready,
                Phase::Processing(_) => KeyState::Processing,
                Phase::Deferred => KeyState::Deferred,
                Phase::Waiting if overdue.is_none() => KeyState::Waiting,
                // The delay has ended, and the next `get` will notice. A snapshot changes nothing, so it shows the
                // phase that the key will have then.
                _ if overdue.is_some() && self.draining => KeyState::Deferred,
                _ if overdue.is_some() => KeyState::Ready,
                _ => KeyState::Delayed,
            },
            priority: priority(entry),
            due_for: since
                .or(overdue)
                .or(waiting)
                .map_or(Duration::ZERO, |since| now.since(since)),
            processing_for: match entry.phase {
                Phase::Processing(since) => Some(now.since(since)),
                _ => None,
            },
            lanes,
            failures: entry.failures().to_vec(),
        }
    }
}

/// Returns the priority of the due lanes, of the run, or of the waits and delays.
fn priority<P: Payload>(entry: &KeyEntry<P>) -> Priority {
    if entry.dirty.is_empty() && !matches!(entry.phase, Phase::Processing(_)) {
        let delayed = entry.delayed().iter().map(|delayed| delayed.priority);
        let waiting = entry.waiting().iter().map(|waiting| waiting.priority);
        delayed.chain(waiting).max().unwrap_or(entry.priority)
    } else {
        entry.priority
    }
}

/// Returns the earliest deadline that has passed.
fn overdue<P: Payload>(entry: &KeyEntry<P>, now: Stamp) -> Option<Stamp> {
    let deadlines = entry.delayed().iter().map(|delayed| delayed.deadline.at);
    deadlines.filter(|at| *at <= now).min()
}
