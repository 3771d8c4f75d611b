//! Admission of calls at the gates of lanes: how many may run at once, and whether any may begin.
//!
//! A worker asks a lane's gate before it calls the lane ([`admit`](QueueCore::admit)). If the gate is closed or full,
//! the lane waits in the key's entry, with a ticket in the gate's line, and the worker goes on. When the gate opens or a
//! call ends, the next key in line becomes due for the lane. At a limit it has a *place* from then on, so that no key
//! that is dequeued in between overtakes it; a run that does not use it gives it on. So a key waits at a limit only
//! while as many calls are running or places are taken as the limit allows, and the end of each lets a key pass.

use std::hash::Hash;
use std::time::Instant;

use super::clock::Stamp;
use super::entry::{Phase, Waiting};
use super::gate::{Gate, in_line};
use super::machine::{QueueCore, group_of};
use crate::{LaneId, LaneWaits, Payload, Priority, WaitsFor};

impl<K: Eq + Hash + Clone, P: Payload> QueueCore<K, P> {
    /// Sets how many calls of a lane may run at once; zero means one.
    ///
    /// Call it before the first call of the lane.
    pub fn limit(&mut self, lane: LaneId, most: usize) {
        self.gate(lane).most = Some(most.max(1));
    }

    /// Lets no call of a lane begin until [`open`](Self::open); returns whether that is new.
    pub fn close(&mut self, lane: LaneId, why: WaitsFor) -> bool {
        !self.gate(lane).set_closed(why, true)
    }

    /// Ends what [`close`](Self::close) began, and makes the keys due that may pass.
    ///
    /// Returns how many waited, or `None` if the lane was not closed for this reason. During a drain they become due at
    /// its end.
    pub fn open(&mut self, lane: LaneId, why: WaitsFor, now: Instant) -> Option<usize> {
        let mut gates = self.gates.iter_mut();
        let gate = gates.find(|gate| gate.lane == lane)?;
        if !gate.set_closed(why, false) {
            return None;
        }
        let waiting = gate.line.len();
        if !self.draining {
            let now = self.clock.stamp(now);
            self.let_pass(lane, usize::MAX, now);
        }
        Some(waiting)
    }

    /// Forgets the gate of a lane. The keys that wait for it become due.
    pub fn forget_lane(&mut self, lane: LaneId, now: Instant) {
        let Some(at) = self.gates.iter().position(|gate| gate.lane == lane) else {
            return;
        };
        let gate = self.gates.remove(at);
        let waiting = gate.line.in_order(in_line(&self.entries, lane), usize::MAX);
        let slots: Vec<u32> = waiting.collect();
        let now = self.clock.stamp(now);
        for slot in slots {
            self.end_wait(slot, lane, now);
        }
    }

    /// Admits a call of a lane, or lets the lane wait; returns what it waits for.
    ///
    /// `slot` is that of a key in processing, and `later` returns priority and payload of the later call. End an
    /// admitted call of a limited lane with [`leave`](Self::leave). After a shutdown, a lane that would have to wait is
    /// dropped.
    pub fn admit(
        &mut self,
        slot: u32,
        lane: LaneId,
        later: impl FnOnce() -> (Priority, P),
        now: Instant,
    ) -> Option<WaitsFor> {
        let mut gates = self.gates.iter_mut();
        let gate = gates.find(|gate| gate.lane == lane)?;
        if self.entries[slot].value.take_place(lane) && gate.most.is_some() {
            gate.inside -= 1;
        }
        let why = gate.waits_for();
        if why.is_some() {
            self.wait(slot, lane, later(), now);
        } else if gate.most.is_some() {
            gate.inside += 1;
        }
        why
    }

    /// Lets a lane of a key in processing wait at its gate, even if that is open.
    pub fn wait(&mut self, slot: u32, lane: LaneId, later: (Priority, P), now: Instant) {
        // A queue that shuts down refuses waits as it refuses adds, and drops the runs of that time.
        if self.shutting_down || self.entries[slot].value.is_dropped {
            return;
        }
        let (since, (priority, payload)) = (self.clock.stamp(now), later);
        let group = group_of(self.group.as_ref(), &self.entries[slot].key);
        let gates = self.gates.iter_mut();
        let mut line = gates
            .filter(|gate| gate.lane == lane)
            .map(|gate| &mut gate.line);
        let Some(line) = line.next() else {
            return;
        };
        let waiting = self.entries[slot].value.waiting_mut();
        let Some(known) = waiting.iter_mut().find(|each| each.lane == lane) else {
            return waiting.push(Waiting {
                lane,
                ticket: line.push(slot, priority, group),
                since,
                priority,
                payload,
            });
        };
        known.payload.merge(payload);
        if known.priority < priority {
            known.priority = priority;
            line.discard(known.ticket);
            known.ticket = line.push(slot, priority, group);
            line.compact(in_line(&self.entries, lane));
        }
    }

    /// Ends an admitted call of a limited lane.
    ///
    /// The next key in line becomes due for it.
    pub fn leave(&mut self, lane: LaneId, now: Instant) {
        let now = self.clock.stamp(now);
        self.give_on([lane], now);
    }

    /// Returns how many keys wait for a lane, and whether it is closed.
    #[must_use]
    pub fn waits(&self, lane: LaneId) -> LaneWaits {
        let gate = self.gates.iter().find(|gate| gate.lane == lane);
        gate.map_or_else(LaneWaits::default, |gate| LaneWaits {
            keys: gate.line.len(),
            is_paused: gate.is_paused,
            awaits_caches: gate.awaits_caches,
        })
    }

    /// Returns the gate of a lane; creates it if there is none.
    fn gate(&mut self, lane: LaneId) -> &mut Gate {
        let at = self.gates.iter().position(|gate| gate.lane == lane);
        let at = at.unwrap_or_else(|| {
            self.gates.push(Gate::new(lane, self.ready.of_lane()));
            self.gates.len() - 1
        });
        &mut self.gates[at]
    }

    /// Makes the next keys due that wait for a lane, as many as may pass and `most` at most.
    pub(super) fn let_pass(&mut self, lane: LaneId, most: usize, now: Stamp) {
        for _ in 0..most {
            let mut gates = self.gates.iter_mut();
            let Some(gate) = gates.find(|gate| gate.lane == lane && gate.waits_for().is_none())
            else {
                return;
            };
            let Some(slot) = gate.line.pop(in_line(&self.entries, lane), now) else {
                return;
            };
            if gate.most.is_some() {
                gate.inside += 1;
                self.entries[slot].value.give_place(lane);
            }
            // A key that waits at a limit is due, so a drain dequeues it, and no key that the drain defers has a place.
            self.entries[slot].value.in_drain = true;
            self.end_wait(slot, lane, now);
        }
    }

    /// Makes a lane due that has waited.
    fn end_wait(&mut self, slot: u32, lane: LaneId, now: Stamp) {
        let waiting = self.entries[slot].value.waiting_mut();
        let Some(at) = waiting.iter().position(|each| each.lane == lane) else {
            return;
        };
        let ended = waiting.remove(at);
        self.note_dirty(slot, now);
        let entry = &mut self.entries[slot].value;
        entry.mark_dirty(&lane.into(), ended.priority, ended.payload);
        self.line_up(slot);
    }

    /// Releases places of lanes; the next keys in line get them.
    pub(super) fn give_on(&mut self, places: impl IntoIterator<Item = LaneId>, now: Stamp) {
        for lane in places {
            // A handler may be deregistered before its last call has ended, and then be paused, which makes a gate
            // without a limit.
            let mut gates = self.gates.iter_mut();
            let gate = gates.find(|gate| gate.lane == lane && gate.most.is_some());
            if let Some(gate) = gate {
                gate.inside -= 1;
                self.let_pass(lane, 1, now);
            }
        }
    }

    /// Ends the waiting phase of an entry.
    pub(super) fn leave_waiting(&mut self, slot: u32) {
        let entry = &mut self.entries[slot].value;
        if entry.phase == Phase::Waiting {
            entry.phase = Phase::Delayed;
            self.waiting -= 1;
        }
    }
}
