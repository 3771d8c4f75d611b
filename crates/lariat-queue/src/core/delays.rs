//! The deadlines of delayed lanes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::entry::Stamp;

/// When a lane comes due, in the order of arrival among equal times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Deadline {
    pub(super) at: Stamp,
    /// Wraps: two deadlines of one nanosecond that are four billion arrivals apart may swap.
    arrival: u32,
}

/// A heap of deadlines. A deadline whose lane ran early stays until its time or the next compaction.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Time, arrival and slot in one number each, so that sinking in the heap moves and compares little.
    heap: BinaryHeap<Reverse<u128>>,
    arrivals: u32,
    /// The size at which stale deadlines are looked for.
    compact_at: usize,
    /// How many are known to be stale.
    stale: usize,
}

const COMPACT_FROM: usize = 1024;

/// A heap smaller than this is not worth shrinking, only to grow again.
const SHRINK_FROM: usize = 16 * 1024;

impl Waiting {
    pub(super) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            arrivals: 0,
            compact_at: COMPACT_FROM,
            stale: 0,
        }
    }

    /// Makes a deadline, which counts once it is pushed.
    pub(super) fn deadline(&mut self, at: Stamp) -> Deadline {
        self.arrivals = self.arrivals.wrapping_add(1);
        Deadline {
            at,
            arrival: self.arrivals,
        }
    }

    pub(super) fn push(&mut self, deadline: Deadline, slot: u32) {
        self.heap.push(Reverse(pack(deadline, slot)));
    }

    /// Takes the earliest deadline that is not in the future.
    pub(super) fn pop_expired(&mut self, now: Stamp) -> Option<(Deadline, u32)> {
        self.next().filter(|at| *at <= now)?;
        let expired = self.heap.pop().map(|Reverse(packed)| unpack(packed));
        self.shrink();
        expired
    }

    pub(super) fn next(&self) -> Option<Stamp> {
        let Reverse(packed) = self.heap.peek()?;
        Some(unpack(*packed).0.at)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }

    /// Notes that some deadlines are stale: their lanes ran early.
    pub(super) fn note_stale(&mut self, count: usize) {
        self.stale += count;
    }

    /// Notes that one that was stale has been taken out.
    pub(super) fn forget_stale(&mut self) {
        self.stale = self.stale.saturating_sub(1);
    }

    /// Returns how many deadlines there are, stale ones included.
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Returns how many deadlines are not stale.
    pub(super) fn live(&self) -> usize {
        self.heap.len().saturating_sub(self.stale)
    }

    /// Returns how many deadlines there are at most with those that are not stale now.
    pub(super) fn most(&self) -> usize {
        self.live() + self.live().max(COMPACT_FROM)
    }

    /// Drops stale deadlines once they are the majority, or once the heap has doubled.
    pub(super) fn compact(&mut self, is_live: impl Fn(u32, Deadline) -> bool) {
        let mostly_stale = self.stale > COMPACT_FROM.max(self.heap.len() / 2);
        if self.heap.len() < self.compact_at && !mostly_stale {
            return;
        }
        self.heap.retain(|Reverse(packed)| {
            let (deadline, slot) = unpack(*packed);
            is_live(slot, deadline)
        });
        self.stale = 0;
        self.compact_at = (2 * self.heap.len()).max(COMPACT_FROM);
        self.shrink();
    }

    fn shrink(&mut self) {
        if self.heap.capacity() > SHRINK_FROM && self.heap.len() < self.heap.capacity() / 8 {
            self.heap.shrink_to(self.heap.capacity() / 4);
        }
    }
}

fn pack(deadline: Deadline, slot: u32) -> u128 {
    u128::from(deadline.at.nanos()) << 64 | u128::from(deadline.arrival) << 32 | u128::from(slot)
}

fn unpack(packed: u128) -> (Deadline, u32) {
    let deadline = Deadline {
        at: Stamp::of_nanos((packed >> 64) as u64),
        arrival: (packed >> 32) as u32,
    };
    (deadline, packed as u32)
}

#[cfg(test)]
impl Waiting {
    pub(super) fn room(&self) -> usize {
        self.heap.capacity()
    }
}
