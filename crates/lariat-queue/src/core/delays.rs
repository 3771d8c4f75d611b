//! The deadlines of delayed lanes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::clock::Stamp;

/// The time at which a lane becomes due; equal times are ordered by arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Deadline {
    pub(super) at: Stamp,
    /// Wraps: two deadlines of one nanosecond that are four billion arrivals apart may swap.
    arrival: u32,
}

/// Deadlines, the earliest first.
///
/// A deadline whose lane ran early stays until its time or the next compaction. The heap contains the deadlines of
/// about a millisecond, so it stays small however many keys are delayed. Later deadlines are in levels: adding to a
/// level is a push, and a deadline moves down a few levels, each time with all that are near it, until its millisecond
/// is the next.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Time, arrival and slot packed into one number that is cheap to move and compare.
    ///
    /// Contains all deadlines up to the end of `tick`; not empty unless the levels are.
    soon: BinaryHeap<Reverse<u128>>,
    /// Deadlines after `tick`, unordered.
    ///
    /// The level is the highest bit in which the deadline's tick differs from `tick`.
    later: [Vec<u128>; LEVELS],
    /// A bit for each level that is not empty.
    used: u64,
    /// The end of the time range that is in the heap, in units of 2^20 nanoseconds.
    tick: u64,
    len: usize,
    arrivals: u32,
    /// The size at which stale deadlines are searched for.
    compact_at: usize,
    /// How many are known to be stale.
    stale: usize,
}

/// How many low bits of a time in nanoseconds are within a tick.
const TICK: u32 = 20;

const LEVELS: usize = (u64::BITS - TICK) as usize;

/// A heap of this size may take deadlines before `tick`, which have no level.
const SMALL: usize = 64;

const COMPACT_FROM: usize = 1024;

/// A heap smaller than this is not worth shrinking, only to grow again.
const SHRINK_FROM: usize = 16 * 1024;

impl Waiting {
    pub(super) fn new() -> Self {
        Self {
            soon: BinaryHeap::new(),
            later: std::array::from_fn(|_| Vec::new()),
            used: 0,
            tick: 0,
            len: 0,
            arrivals: 0,
            compact_at: COMPACT_FROM,
            stale: 0,
        }
    }

    /// Creates a deadline, which is not waited for until it is pushed.
    pub(super) fn deadline(&mut self, at: Stamp) -> Deadline {
        self.arrivals = self.arrivals.wrapping_add(1);
        Deadline {
            at,
            arrival: self.arrivals,
        }
    }

    pub(super) fn push(&mut self, deadline: Deadline, slot: u32) {
        let packed = pack(deadline, slot);
        // Without deadlines there is nothing to keep in order, so the range of the heap may start anywhere.
        if self.len == 0 {
            self.tick = tick_of(packed);
        }
        self.len += 1;
        self.place(packed);
        if self.soon.len() > SMALL && tick_of(packed) < self.tick {
            self.rewind();
        }
    }

    /// Puts a deadline into the heap or into its level.
    fn place(&mut self, packed: u128) {
        let tick = tick_of(packed);
        if tick <= self.tick {
            self.soon.push(Reverse(packed));
        } else {
            let level = self.level_of(tick);
            self.later[level].push(packed);
            self.used |= 1 << level;
        }
    }

    /// Returns the highest bit in which another tick differs from this one.
    fn level_of(&self, tick: u64) -> usize {
        (tick ^ self.tick).ilog2() as usize
    }

    /// Takes everything out of a level.
    fn empty(&mut self, level: usize) -> Vec<u128> {
        self.used &= !(1 << level);
        std::mem::take(&mut self.later[level])
    }

    /// Refills an empty heap: the lowest level moves down.
    fn advance(&mut self) {
        if !self.soon.is_empty() || self.used == 0 {
            return;
        }
        let next = self.empty(self.used.trailing_zeros() as usize);
        // All of the level share the bits above it; relative to its earliest tick, each falls into a lower level or the
        // heap.
        let tick = next.iter().copied().map(tick_of).min();
        self.tick = tick.unwrap_or(self.tick);
        next.into_iter().for_each(|packed| self.place(packed));
    }

    /// Goes back to the earliest deadline, because many came that are before `tick`.
    ///
    /// Does nothing if the levels to be moved contain more than the heap: moving must cost no more than adding did.
    fn rewind(&mut self) {
        let Some(Reverse(first)) = self.soon.peek() else {
            return;
        };
        let tick = tick_of(*first);
        let lower = 0..self.level_of(tick);
        let moved = self.later[lower.clone()].iter().map(Vec::len);
        if moved.sum::<usize>() > self.soon.len() {
            return;
        }
        let mut all = std::mem::take(&mut self.soon).into_vec();
        for level in lower {
            all.extend(self.empty(level).into_iter().map(Reverse));
        }
        self.tick = tick;
        all.into_iter()
            .for_each(|Reverse(packed)| self.place(packed));
    }

    /// Removes the earliest deadline if it has passed.
    pub(super) fn pop_expired(&mut self, now: Stamp) -> Option<(Deadline, u32)> {
        // The heap is never empty while levels are not, so its first deadline is the earliest of all.
        self.next().filter(|at| *at <= now)?;
        let Reverse(packed) = self.soon.pop()?;
        self.len -= 1;
        self.shrink();
        self.advance();
        Some(unpack(packed))
    }

    pub(super) fn next(&self) -> Option<Stamp> {
        let Reverse(packed) = self.soon.peek()?;
        Some(unpack(*packed).0.at)
    }

    /// Returns the slots of the earliest deadlines that count, in the order of their times.
    ///
    /// At most `count`, and at most `most` deadlines are looked at: of those that are further away than that many, any
    /// may be missing.
    pub(super) fn earliest(
        &self,
        count: usize,
        most: usize,
        counts: impl Fn(u32, Deadline) -> bool,
    ) -> Vec<u32> {
        let mut nearest = Nearest {
            found: Vec::new(),
            count,
            left: most,
        };
        let counts = |packed: &u128| {
            let (deadline, slot) = unpack(*packed);
            counts(slot, deadline)
        };
        nearest.read(self.soon.iter().map(|Reverse(packed)| *packed), counts);
        // All of a level are before all of the next.
        for level in &self.later {
            nearest.read(level.iter().copied(), counts);
        }
        let slots = nearest.found.into_iter().map(|packed| unpack(packed).1);
        slots.collect()
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }

    /// Notes that deadlines became stale: their lanes ran early.
    pub(super) fn note_stale(&mut self, count: usize) {
        self.stale += count;
    }

    /// Notes that a stale deadline was removed.
    pub(super) fn forget_stale(&mut self) {
        self.stale = self.stale.saturating_sub(1);
    }

    /// Returns the number of deadlines, stale ones included.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns how many deadlines are not stale.
    pub(super) fn live(&self) -> usize {
        self.len.saturating_sub(self.stale)
    }

    /// Returns the upper bound on the deadlines, given those that are not stale.
    pub(super) fn most(&self) -> usize {
        self.live() + self.live().max(COMPACT_FROM)
    }

    /// Drops stale deadlines once they are the majority or the number has doubled.
    pub(super) fn compact(&mut self, is_live: impl Fn(u32, Deadline) -> bool) {
        let mostly_stale = self.stale > COMPACT_FROM.max(self.len / 2);
        if self.len < self.compact_at && !mostly_stale {
            return;
        }
        let stays = |packed: &u128| {
            let (deadline, slot) = unpack(*packed);
            is_live(slot, deadline)
        };
        self.soon.retain(|Reverse(packed)| stays(packed));
        self.len = self.soon.len();
        for (level, list) in self.later.iter_mut().enumerate() {
            list.retain(stays);
            self.len += list.len();
            if list.is_empty() {
                *list = Vec::new();
                self.used &= !(1 << level);
            } else if list.len() < list.capacity() / 4 {
                list.shrink_to(2 * list.len());
            }
        }
        self.stale = 0;
        self.compact_at = (2 * self.len).max(COMPACT_FROM);
        self.shrink();
        self.advance();
    }

    fn shrink(&mut self) {
        if self.soon.capacity() > SHRINK_FROM && self.soon.len() < self.soon.capacity() / 8 {
            self.soon.shrink_to(self.soon.capacity() / 4);
        }
    }
}

/// The earliest of the deadlines that were looked at.
struct Nearest {
    found: Vec<u128>,
    /// How many are wanted.
    count: usize,
    /// How many may be looked at.
    left: usize,
}

impl Nearest {
    /// Adds the earliest of some deadlines, all of which are later than those that were added before.
    fn read(&mut self, level: impl ExactSizeIterator<Item = u128>, counts: impl Fn(&u128) -> bool) {
        let wanted = self.count - self.found.len();
        if wanted == 0 {
            return;
        }
        let size = level.len();
        let mut near: Vec<u128> = level.take(self.left).filter(counts).collect();
        self.left = self.left.saturating_sub(size);
        if near.len() > wanted {
            near.select_nth_unstable(wanted);
            near.truncate(wanted);
        }
        near.sort_unstable();
        self.found.append(&mut near);
    }
}

fn tick_of(packed: u128) -> u64 {
    (packed >> (64 + TICK)) as u64
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
        let later: usize = self.later.iter().map(Vec::capacity).sum();
        self.soon.capacity() + later
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Times of all scales, so that every level is used.
    fn nanos() -> impl Strategy<Value = u64> {
        (0..62_u32, any::<u64>()).prop_map(|(bits, random)| random & ((1 << bits) - 1))
    }

    fn check(waiting: &Waiting, model: &BTreeSet<u128>) {
        assert_eq!(waiting.len(), model.len());
        let next = model.first().map(|packed| unpack(*packed).0.at);
        assert_eq!(waiting.next(), next);
        for (level, list) in waiting.later.iter().enumerate() {
            assert_eq!(waiting.used >> level & 1 == 1, !list.is_empty());
            let levels = list.iter().map(|packed| waiting.level_of(tick_of(*packed)));
            assert!(levels.into_iter().all(|each| each == level));
        }
    }

    proptest! {
        #[test]
        fn deadlines_leave_in_the_order_of_time_and_arrival(
            steps in prop::collection::vec((0..8_u8, nanos(), 1..100_usize), 0..60),
        ) {
            let (mut waiting, mut model, mut now) = (Waiting::new(), BTreeSet::new(), 0_u64);
            for (kind, by, count) in steps {
                match kind {
                    0..=3 => for each in 0..count as u64 {
                        let at = now.saturating_add(by / 2).saturating_add((by / 2).wrapping_mul(each * 7) % (by + 1));
                        let deadline = waiting.deadline(Stamp::of_nanos(at));
                        waiting.push(deadline, each as u32);
                        model.insert(pack(deadline, each as u32));
                    },
                    4 => for _ in 0..count {
                        let Some(next) = waiting.next() else { break };
                        now = now.max(next.nanos());
                        let expired = waiting.pop_expired(next);
                        prop_assert_eq!(expired, model.pop_first().map(unpack));
                    },
                    5 => {
                        now = now.saturating_add(by);
                        while let Some(expired) = waiting.pop_expired(Stamp::of_nanos(now)) {
                            prop_assert_eq!(Some(expired), model.pop_first().map(unpack));
                        }
                        let is_due = |packed: &u128| unpack(*packed).0.at.nanos() <= now;
                        prop_assert!(!model.first().is_some_and(is_due));
                    }
                    _ => {
                        let stays = |slot: u32| slot % 7 != count as u32 % 7;
                        waiting.compact_at = 0;
                        waiting.compact(|slot, _| stays(slot));
                        model.retain(|packed| stays(unpack(*packed).1));
                    }
                }
                check(&waiting, &model);
            }
        }
    }

    #[test]
    fn the_heap_stays_small_also_before_what_is_far_away() {
        let mut waiting = Waiting::new();
        let second = 1_000_000_000;
        let mut push = |at: u64| {
            let deadline = waiting.deadline(Stamp::of_nanos(at));
            waiting.push(deadline, 0);
            waiting.soon.len()
        };
        push(3600 * second);
        (600..650).for_each(|each| assert!(push(each * second) <= SMALL));
        let largest = (0..100_000).map(|each| push(each * 7_919 % 100_000 * 1_000));
        assert!(largest.max() <= Some(2_500));
    }
}
