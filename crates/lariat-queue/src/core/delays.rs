//! The deadlines of delayed lanes: a heap for the near ones, levels for the rest.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::clock::Stamp;

/// The time at which a lane becomes due; equal times are ordered by arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Deadline {
    /// The time.
    pub(super) at: Stamp,
    /// The number of the deadline, in the order of creation.
    ///
    /// It wraps: two deadlines of the same nanosecond may swap if four billion others were created between them.
    arrival: u32,
}

/// The deadlines of all delayed lanes, ordered by time.
///
/// This is a radix heap: `soon` is a binary heap of the deadlines of about one millisecond, so it stays small however
/// many keys are delayed. Later deadlines are in `later`, unordered, one list per level. Adding to a level is a push.
/// When `soon` is empty, the lowest level moves down, and each of its deadlines falls at least one level. Apart from
/// rewinds, a deadline moves at most once per level.
///
/// A deadline cannot be removed from the middle. If a lane runs before its deadline, the deadline becomes *stale*: it
/// remains until its time comes or until the next compaction, and is then ignored.
#[derive(Debug)]
pub(super) struct Deadlines {
    /// The deadlines up to the end of `tick`, packed so that they compare cheaply.
    ///
    /// Not empty unless all levels are empty, so its first element is the earliest deadline of all.
    soon: BinaryHeap<Reverse<u128>>,
    /// The deadlines after `tick`, unordered within a level.
    ///
    /// The level is the highest bit in which the tick of the deadline differs from `tick`.
    later: [Vec<u128>; LEVELS],
    /// One bit per level; set if the level is not empty.
    used: u64,
    /// The last tick that is in the heap; a tick is 2^20 nanoseconds.
    tick: u64,
    /// The number of deadlines in the heap and the levels, stale ones included.
    len: usize,
    /// The number of the last deadline created.
    arrivals: u32,
    /// The number of deadlines at which the next compaction happens.
    compact_at: usize,
    /// How many deadlines are known to be stale.
    stale: usize,
}

/// How many low bits of a time in nanoseconds are within one tick.
const TICK: u32 = 20;

/// One level for each bit of a tick number.
const LEVELS: usize = (u64::BITS - TICK) as usize;

/// A heap up to this size may contain deadlines before `tick` without a rewind.
const SMALL: usize = 64;

/// Fewer deadlines than this are never compacted.
const COMPACT_FROM: usize = 1024;

/// A heap smaller than this keeps its memory.
const SHRINK_FROM: usize = 16 * 1024;

impl Deadlines {
    /// Creates an empty set of deadlines.
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

    /// Creates a deadline without adding it; [`push`](Self::push) adds it.
    pub(super) fn deadline(&mut self, at: Stamp) -> Deadline {
        self.arrivals = self.arrivals.wrapping_add(1);
        Deadline {
            at,
            arrival: self.arrivals,
        }
    }

    /// Adds a deadline of the entry in `slot`.
    pub(super) fn push(&mut self, deadline: Deadline, slot: u32) {
        let packed = pack(deadline, slot);
        // With no other deadline there is nothing to keep in order, so the heap may start at any tick. Starting at this
        // one puts the deadline into the heap, which keeps the heap non-empty.
        if self.len == 0 {
            self.tick = tick_of(packed);
        }
        self.len += 1;
        self.place(packed);
        // Deadlines before `tick` have no level and go to the heap. After a long delay, many shorter ones would all
        // pile up in the heap, and it would lose its advantage.
        if self.soon.len() > SMALL && tick_of(packed) < self.tick {
            self.rewind();
        }
    }

    /// Puts a deadline into the heap or into its level.
    fn place(&mut self, packed: u128) {
        let tick = tick_of(packed);
        // Earlier ticks go to the heap too: the heap keeps any order, while the levels contain only later ticks.
        if tick <= self.tick {
            self.soon.push(Reverse(packed));
        } else {
            let level = self.level_of(tick);
            self.later[level].push(packed);
            self.used |= 1 << level;
        }
    }

    /// Returns the highest bit in which a tick differs from `self.tick`.
    ///
    /// The two must differ: the logarithm of zero panics.
    fn level_of(&self, tick: u64) -> usize {
        (tick ^ self.tick).ilog2() as usize
    }

    /// Removes all deadlines from a level and returns them.
    fn empty(&mut self, level: usize) -> Vec<u128> {
        self.used &= !(1 << level);
        std::mem::take(&mut self.later[level])
    }

    /// Refills an empty heap from the lowest non-empty level.
    fn advance(&mut self) {
        if !self.soon.is_empty() || self.used == 0 {
            return;
        }
        let next = self.empty(self.used.trailing_zeros() as usize);
        // The deadlines of a level share all bits above it. Relative to the earliest of them, each differs in a lower
        // bit or in none, so each falls into a lower level or into the heap. Higher levels stay valid, because the bits
        // above did not change.
        let tick = next.iter().copied().map(tick_of).min();
        self.tick = tick.unwrap_or(self.tick);
        next.into_iter().for_each(|packed| self.place(packed));
    }

    /// Moves `tick` back to the earliest deadline in the heap.
    ///
    /// The heap and the levels below the new tick's level are distributed again. Does nothing if those levels contain
    /// more than the heap: moving must not cost more than the adds that caused it.
    fn rewind(&mut self) {
        let Some(Reverse(first)) = self.soon.peek() else {
            return;
        };
        let tick = tick_of(*first);
        // The old tick is higher, so it has the bit of this level set, and no later deadline differs from it there: the
        // level is empty. Higher levels stay valid, because the bits above did not change. Only the lower levels move.
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

    /// Removes and returns the earliest deadline if it has passed.
    pub(super) fn pop_expired(&mut self, now: Stamp) -> Option<(Deadline, u32)> {
        // The heap is not empty unless the levels are, so its first deadline is the earliest of all.
        self.next().filter(|at| *at <= now)?;
        let Reverse(packed) = self.soon.pop()?;
        self.len -= 1;
        // The heap is refilled immediately, because `next` reads only the heap.
        self.shrink();
        self.advance();
        Some(unpack(packed))
    }

    /// Returns the time of the earliest deadline, which may be stale.
    pub(super) fn next(&self) -> Option<Stamp> {
        let Reverse(packed) = self.soon.peek()?;
        Some(unpack(*packed).0.at)
    }

    /// Returns the slots of the earliest deadlines that `counts` accepts, by time.
    ///
    /// Returns at most `count` slots and reads at most `most` deadlines. If there are more deadlines than that, some of
    /// the later ones may be missing.
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
        // Every deadline of a level is earlier than every deadline of the next level.
        for level in &self.later {
            nearest.read(level.iter().copied(), counts);
        }
        let slots = nearest.found.into_iter().map(|packed| unpack(packed).1);
        slots.collect()
    }

    /// Removes all deadlines.
    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }

    /// Records that deadlines became stale because their lanes ran early.
    pub(super) fn note_stale(&mut self, count: usize) {
        self.stale += count;
    }

    /// Records that a stale deadline was removed.
    pub(super) fn forget_stale(&mut self) {
        self.stale = self.stale.saturating_sub(1);
    }

    /// Returns the number of deadlines, stale ones included.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of deadlines that are not known to be stale.
    pub(super) fn live(&self) -> usize {
        self.len.saturating_sub(self.stale)
    }

    /// Returns an upper bound on the number of deadlines.
    pub(super) fn most(&self) -> usize {
        self.live() + self.live().max(COMPACT_FROM)
    }

    /// Removes stale deadlines once they are the majority or the total has doubled.
    ///
    /// So compaction costs amortised constant time per deadline.
    pub(super) fn compact(&mut self, is_live: impl Fn(u32, Deadline) -> bool) {
        // Stale deadlines are removed when they outnumber the live ones. The limit on the total is a backstop: `stale`
        // is too low after a payload's `merge` panicked between removing a delay and counting it.
        let mostly_stale = self.stale > COMPACT_FROM.max(self.len / 2);
        if self.len < self.compact_at && !mostly_stale {
            return;
        }
        // Reads every deadline. It is paid for by the deadlines that were added or became stale since the last time.
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
        // `retain` asked the entries, so nothing that is left is stale.
        self.stale = 0;
        self.compact_at = (2 * self.len).max(COMPACT_FROM);
        self.shrink();
        self.advance();
    }

    /// Returns memory once less than an eighth of the heap is used.
    fn shrink(&mut self) {
        if self.soon.capacity() > SHRINK_FROM && self.soon.len() < self.soon.capacity() / 8 {
            self.soon.shrink_to(self.soon.capacity() / 4);
        }
    }
}

/// Collects the earliest of the deadlines that were read.
struct Nearest {
    /// The deadlines found so far, by time.
    found: Vec<u128>,
    /// How many deadlines are wanted.
    count: usize,
    /// How many more deadlines may be read.
    left: usize,
}

impl Nearest {
    /// Adds the earliest of some deadlines.
    ///
    /// All of them must be later than those that were added before.
    fn read(&mut self, level: impl ExactSizeIterator<Item = u128>, counts: impl Fn(&u128) -> bool) {
        let wanted = self.count - self.found.len();
        if wanted == 0 {
            return;
        }
        let size = level.len();
        // Neither the heap's array nor a level is sorted, so if the bound is reached, the elements that were not read
        // are arbitrary ones.
        let mut near: Vec<u128> = level.take(self.left).filter(counts).collect();
        self.left = self.left.saturating_sub(size);
        // Selecting before sorting keeps the cost linear in the deadlines read.
        if near.len() > wanted {
            near.select_nth_unstable(wanted);
            near.truncate(wanted);
        }
        near.sort_unstable();
        self.found.append(&mut near);
    }
}

/// Returns the tick of a packed deadline.
fn tick_of(packed: u128) -> u64 {
    (packed >> (64 + TICK)) as u64
}

/// Packs a deadline and its slot so that numbers are ordered by time, then arrival.
fn pack(deadline: Deadline, slot: u32) -> u128 {
    u128::from(deadline.at.nanos()) << 64 | u128::from(deadline.arrival) << 32 | u128::from(slot)
}

/// Returns the deadline and the slot of a packed number.
fn unpack(packed: u128) -> (Deadline, u32) {
    let deadline = Deadline {
        at: Stamp::of_nanos((packed >> 64) as u64),
        arrival: (packed >> 32) as u32,
    };
    (deadline, packed as u32)
}

#[cfg(test)]
impl Deadlines {
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

    fn check(waiting: &Deadlines, model: &BTreeSet<u128>) {
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
            let (mut waiting, mut model, mut now) = (Deadlines::new(), BTreeSet::new(), 0_u64);
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
        let mut waiting = Deadlines::new();
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
