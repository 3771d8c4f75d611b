//! What the queue knows of one key.

use std::time::Instant;

use super::ready::Ticket;
use super::waiting::Deadline;
use crate::{LaneId, Lanes, Payload, Priority};

/// Where an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing is due; lanes may be delayed.
    Parked,
    /// Something is due, but became so during a drain; waits for the resumption.
    Aside,
    /// In line, under this ticket.
    Ready(Ticket),
    /// With a worker.
    Held,
}

#[derive(Debug)]
pub(super) struct Entry<P> {
    pub(super) phase: Phase,
    /// Lanes due and not handed out; not empty exactly in `Ready` and `Aside`, possibly not in `Held`.
    pub(super) due: Lanes,
    /// What travels with `due`.
    pub(super) payload: P,
    /// The highest priority asked for `due`.
    pub(super) priority: Priority,
    /// Since when the entry is in line.
    pub(super) since: Option<Instant>,
    /// What is due of a held entry became so before the drain, and belongs to it.
    pub(super) promised: bool,
    /// What most entries lack.
    extra: Option<Box<Extra<P>>>,
}

#[derive(Debug)]
struct Extra<P> {
    /// At most one of each sort per lane; of a lane that is due there is only the kept sort.
    delayed: Vec<Delayed<P>>,
    /// Failures in a row, of lanes that have any.
    failures: Vec<(LaneId, u32)>,
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

impl<P: Payload> Default for Entry<P> {
    fn default() -> Self {
        Self {
            phase: Phase::Parked,
            due: Lanes::none(),
            payload: P::default(),
            priority: Priority::Low,
            since: None,
            promised: false,
            extra: None,
        }
    }
}

impl<P: Payload> Entry<P> {
    /// Makes lanes due now; delayed lanes among them come early, unless their delay is kept.
    pub(super) fn make_due(&mut self, lanes: &Lanes, priority: Priority, payload: P) {
        self.absorb(|delayed| !delayed.kept && lanes.contains(delayed.lane));
        self.priority = self.urgency().max(priority);
        self.due.merge(lanes);
        self.payload.merge(payload);
    }

    /// Makes the lanes due whose time has come.
    pub(super) fn expire(&mut self, now: Instant) {
        self.absorb(|delayed| delayed.deadline.at <= now);
        if self.due.is_all() {
            self.absorb(|delayed| !delayed.kept);
        }
    }

    /// Moves delayed lanes to the due ones; what travels with them is the older.
    fn absorb(&mut self, chosen: impl Fn(&Delayed<P>) -> bool) {
        let Some(extra) = &mut self.extra else {
            return;
        };
        let mut chosen: Vec<_> = extra.delayed.extract_if(.., |each| chosen(each)).collect();
        if chosen.is_empty() {
            return;
        }
        chosen.sort_by_key(|delayed| delayed.deadline);
        let newer = std::mem::take(&mut self.payload);
        for delayed in chosen {
            self.priority = self.urgency().max(delayed.priority);
            self.due.merge(&delayed.lane.into());
            self.payload.merge(delayed.payload);
        }
        self.payload.merge(newer);
    }

    /// Returns the priority of what is due, the lowest if nothing is.
    pub(super) fn urgency(&self) -> Priority {
        if self.due.is_empty() {
            Priority::Low
        } else {
            self.priority
        }
    }

    /// Delays a lane; tells whether the entry has a new deadline.
    pub(super) fn delay(&mut self, delayed: Delayed<P>) -> bool {
        let known = &mut self.extra_mut().delayed;
        let same =
            |known: &&mut Delayed<P>| known.lane == delayed.lane && known.kept == delayed.kept;
        let Some(known) = known.iter_mut().find(same) else {
            known.push(delayed);
            return true;
        };
        known.priority = known.priority.max(delayed.priority);
        known.payload.merge(delayed.payload);
        let earlier = delayed.deadline < known.deadline;
        known.deadline = known.deadline.min(delayed.deadline);
        earlier
    }

    /// Forgets every delayed lane.
    pub(super) fn drop_delayed(&mut self) {
        if let Some(extra) = &mut self.extra {
            extra.delayed.clear();
        }
    }

    /// Returns whether a lane is delayed until exactly this deadline.
    pub(super) fn has_delay(&self, deadline: Deadline) -> bool {
        let delayed = self.extra.as_ref().map_or(&[][..], |extra| &extra.delayed);
        delayed.iter().any(|delayed| delayed.deadline == deadline)
    }

    pub(super) fn failures(&self) -> &[(LaneId, u32)] {
        self.extra.as_ref().map_or(&[], |extra| &extra.failures)
    }

    pub(super) fn count_failure(&mut self, lane: LaneId) {
        let failures = &mut self.extra_mut().failures;
        match failures.iter_mut().find(|(known, _)| *known == lane) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => failures.push((lane, 1)),
        }
    }

    /// Forgets the failures of a lane, or of all when the whole key is meant.
    pub(super) fn forget(&mut self, lane: LaneId) {
        if let Some(extra) = &mut self.extra {
            extra
                .failures
                .retain(|(known, _)| *known != lane && lane != LaneId::WHOLE);
        }
    }

    /// Returns whether nothing is due, delayed or with a worker.
    pub(super) fn is_idle(&self) -> bool {
        self.phase == Phase::Parked
            && self
                .extra
                .as_ref()
                .is_none_or(|extra| extra.delayed.is_empty())
    }

    fn extra_mut(&mut self) -> &mut Extra<P> {
        self.extra.get_or_insert_with(|| {
            Box::new(Extra {
                delayed: Vec::new(),
                failures: Vec::new(),
            })
        })
    }
}
