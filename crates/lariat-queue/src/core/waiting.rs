//! The deadlines of delayed lanes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// When a lane comes due, in the order of arrival among equal times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Deadline {
    pub(super) at: Instant,
    arrival: u64,
}

/// A heap of deadlines. A deadline whose lane ran early stays until its time or the next compaction.
#[derive(Debug)]
pub(super) struct Waiting {
    heap: BinaryHeap<Reverse<(Deadline, u32)>>,
    arrivals: u64,
    /// The size at which stale deadlines are looked for.
    compact_at: usize,
}

const COMPACT_FROM: usize = 1024;

/// Thirty years: as good as never, and no clock overflows by it.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

impl Waiting {
    pub(super) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            arrivals: 0,
            compact_at: COMPACT_FROM,
        }
    }

    /// Makes a deadline, which counts once it is pushed.
    pub(super) fn deadline(&mut self, now: Instant, after: Duration) -> Deadline {
        self.arrivals += 1;
        Deadline {
            at: now + after.min(FAR),
            arrival: self.arrivals,
        }
    }

    pub(super) fn push(&mut self, deadline: Deadline, slot: u32) {
        self.heap.push(Reverse((deadline, slot)));
    }

    /// Takes the earliest deadline that is not in the future.
    pub(super) fn pop_expired(&mut self, now: Instant) -> Option<(Deadline, u32)> {
        self.next().filter(|at| *at <= now)?;
        self.heap.pop().map(|Reverse(expired)| expired)
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((deadline, _))| deadline.at)
    }

    pub(super) fn clear(&mut self) {
        self.heap.clear();
    }

    /// Drops stale deadlines once the heap has doubled since the last time.
    pub(super) fn compact(&mut self, is_live: impl Fn(u32, Deadline) -> bool) {
        if self.heap.len() >= self.compact_at {
            self.heap
                .retain(|Reverse((deadline, slot))| is_live(*slot, *deadline));
            self.compact_at = (2 * self.heap.len()).max(COMPACT_FROM);
        }
    }
}

#[cfg(test)]
impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }
}
