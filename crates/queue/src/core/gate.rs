//! The gate of a lane: its limit, why it is closed, and the line of keys that wait.

use std::hash::Hash;

use smallvec::SmallVec;

use super::entry::KeyEntry;
use super::index::Index;
use super::ready::{Ready, Since, Ticket};
use crate::{LaneId, Payload, WaitsFor};

/// The gates of lanes; a lane without a gate is open and not limited.
pub(super) type Gates = SmallVec<[Gate; 1]>;

/// The gate of one lane.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) lane: LaneId,
    /// The most calls at once; `None` without a limit.
    pub(super) most: Option<usize>,
    /// The number of running calls and of places for the next ones; zero without a limit.
    pub(super) inside: usize,
    pub(super) is_paused: bool,
    pub(super) awaits_caches: bool,
    /// The tickets of the keys that wait.
    pub(super) line: Ready,
}

impl Gate {
    /// Creates the open gate of a lane without a limit.
    pub(super) fn new(lane: LaneId, line: Ready) -> Self {
        Self {
            lane,
            most: None,
            inside: 0,
            is_paused: false,
            awaits_caches: false,
            line,
        }
    }

    /// Returns what keys wait for at the gate; `None` if the next one may pass.
    pub(super) fn waits_for(&self) -> Option<WaitsFor> {
        if self.is_paused {
            Some(WaitsFor::Resume)
        } else if self.awaits_caches {
            Some(WaitsFor::Caches)
        } else {
            let is_full = self.most.is_some_and(|most| self.inside >= most);
            is_full.then_some(WaitsFor::Limit)
        }
    }

    /// Closes or opens the gate; returns whether it was closed for this reason.
    pub(super) fn set_closed(&mut self, why: WaitsFor, is_closed: bool) -> bool {
        let closed = match why {
            WaitsFor::Resume => &mut self.is_paused,
            WaitsFor::Caches => &mut self.awaits_caches,
            WaitsFor::Limit => return false,
        };
        std::mem::replace(closed, is_closed)
    }
}

/// Returns whether tickets in the line of a lane are valid.
pub(super) fn in_line<K: Eq + Hash, P: Payload>(
    entries: &Index<K, KeyEntry<P>>,
    lane: LaneId,
) -> impl Since + Copy {
    move |slot: u32, ticket: Ticket| {
        let mut waiting = entries.get(slot)?.value.waiting().iter();
        let its = waiting.find(|each| each.lane == lane && each.ticket == ticket);
        its.map(|each| each.since)
    }
}
