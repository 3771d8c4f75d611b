//! The deadlines of delayed lanes, earliest first.

use std::collections::BTreeSet;

use super::clock::Stamp;

/// The time at which a lane of an entry becomes due.
///
/// Equal times are ordered by arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Deadline {
    /// The time.
    pub(super) at: Stamp,
    /// The number of the deadline, in the order of creation.
    ///
    /// It wraps: two deadlines of the same nanosecond may swap if four billion others were created between them.
    arrival: u32,
    /// The slot of the entry.
    pub(super) slot: u32,
}

/// The deadline of every delayed lane.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    /// The deadlines, earliest first.
    all: BTreeSet<Deadline>,
    /// The number of the last deadline created.
    arrivals: u32,
}

impl Deadlines {
    /// Creates a deadline without adding it; [`insert`](Self::insert) adds it.
    pub(super) fn deadline(&mut self, at: Stamp, slot: u32) -> Deadline {
        self.arrivals = self.arrivals.wrapping_add(1);
        Deadline {
            at,
            arrival: self.arrivals,
            slot,
        }
    }

    /// Adds a deadline.
    pub(super) fn insert(&mut self, deadline: Deadline) {
        self.all.insert(deadline);
    }

    /// Removes a deadline.
    pub(super) fn remove(&mut self, deadline: Deadline) {
        self.all.remove(&deadline);
    }

    /// Removes and returns the earliest deadline if it has passed.
    pub(super) fn pop_expired(&mut self, now: Stamp) -> Option<Deadline> {
        self.next().filter(|at| *at <= now)?;
        self.all.pop_first()
    }

    /// Returns the time of the earliest deadline.
    pub(super) fn next(&self) -> Option<Stamp> {
        self.all.first().map(|deadline| deadline.at)
    }

    /// Iterates over the deadlines, earliest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = Deadline> {
        self.all.iter().copied()
    }

    /// Removes all deadlines.
    pub(super) fn clear(&mut self) {
        self.all.clear();
    }

    /// Returns the number of deadlines.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }
}
