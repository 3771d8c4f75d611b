//! Counts the writes of a sliding period.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Counts the writes of a sliding period.
///
/// Writes are collected in slots of a 128th of the period. So a window has about 130 slots at most, however many writes
/// it counts. A slot is forgotten when the latest write that it may contain is older than the period.
#[derive(Debug)]
pub(super) struct Window {
    per: Duration,
    /// The slots in order of time. All but perhaps the last one have a count.
    slots: VecDeque<Slot>,
    /// The sum of the slots.
    used: u64,
}

#[derive(Debug)]
struct Slot {
    began: Instant,
    used: u64,
    /// The number of objects that were cached when the slot began.
    cached: usize,
}

/// The number of slots in a period.
const SLOTS: u32 = 128;

impl Window {
    pub(super) fn new(per: Duration) -> Self {
        Self {
            per,
            slots: VecDeque::new(),
            used: 0,
        }
    }

    /// Forgets the slots that are older than the period.
    pub(super) fn forget(&mut self, now: Instant) {
        // A slot may contain a write that is younger than its beginning by one slot width, so it is kept that much
        // longer.
        let keep = self.per.saturating_add(self.per / SLOTS);
        while let Some(slot) = self.slots.front() {
            // The end of a very long period overflows the clock: it never comes.
            let is_over = slot.began.checked_add(keep).is_some_and(|end| end <= now);
            // A period of zero counts the writes of the same instant together.
            if !is_over || (keep.is_zero() && slot.began == now) {
                return;
            }
            self.used -= slot.used;
            self.slots.pop_front();
        }
    }

    /// Returns whether there are no slots.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the number of counted objects.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Returns the number of cached objects that a share refers to.
    ///
    /// This is the number now, or that at the beginning of the period if it is greater.
    pub(super) fn cached(&self, now: usize) -> usize {
        // Deletions shrink the cache, and with it a share. The greater number keeps the budget stable during a period.
        self.slots.front().map_or(now, |slot| slot.cached.max(now))
    }

    /// Counts objects, and returns the slot in which they are counted.
    pub(super) fn add(&mut self, now: Instant, objects: u64, cached: usize) -> Instant {
        let width = self.per / SLOTS;
        // A period of zero has slots of width zero, which only writes at the same instant share.
        let is_present = |slot: &&mut Slot| {
            now == slot.began || now.saturating_duration_since(slot.began) < width
        };
        self.used += objects;
        if let Some(slot) = self.slots.back_mut().filter(is_present) {
            slot.used += objects;
            return slot.began;
        }
        self.slots.push_back(Slot {
            began: now,
            used: objects,
            cached,
        });
        now
    }

    /// Reverts a count, unless its slot is forgotten already.
    pub(super) fn give_back(&mut self, slot: Instant, objects: u64) {
        let found = self.slots.iter_mut().rev().find(|each| each.began == slot);
        if let Some(slot) = found {
            let objects = objects.min(slot.used);
            slot.used -= objects;
            self.used -= objects;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Remembers every single write.
    #[derive(Default)]
    struct Naive(Vec<(Instant, u64)>);

    impl Naive {
        fn within(&self, now: Instant, per: Duration) -> u64 {
            let is_recent = |at: &Instant| now.duration_since(*at) < per;
            let recent = self.0.iter().filter(|(at, _)| is_recent(at));
            recent.map(|(_, objects)| objects).sum()
        }
    }

    #[test]
    fn it_counts_what_the_time_says_and_little_more() {
        let seed = fastrand::u64(..);
        let mut random = fastrand::Rng::with_seed(seed);
        for per in [1, 1_000, 60_000, 3_600_000].map(Duration::from_millis) {
            let (mut window, mut naive) = (Window::new(per), Naive::default());
            let mut now = Instant::now();
            let mut written: Vec<(Instant, usize, u64)> = Vec::new();
            for _ in 0..2_000 {
                now += per.mul_f64(random.f64() / 40.0);
                window.forget(now);
                match written.pop().filter(|_| random.u8(..10) == 0) {
                    Some((slot, at, objects)) => {
                        window.give_back(slot, objects);
                        naive.0[at].1 = 0;
                    }
                    None => {
                        let objects = random.u64(1..4);
                        let slot = window.add(now, objects, 0);
                        written.push((slot, naive.0.len(), objects));
                        naive.0.push((now, objects));
                    }
                }
                let (least, used) = (naive.within(now, per), window.used());
                let most = naive.within(now, per + per / 64);
                assert!(least <= used, "seed {seed}: {used} < {least}");
                assert!(used <= most, "seed {seed}: {used} > {most}");
                assert!(window.slots.len() <= 131, "seed {seed}");
            }
        }
    }

    #[test]
    fn times_of_any_length_are_counted() {
        let start = Instant::now();
        let later = start + Duration::from_secs(1_000_000);
        let mut never = Window::new(Duration::MAX);
        never.add(start, 2, 0);
        never.forget(later);
        assert_eq!(never.used(), 2);
        let mut moment = Window::new(Duration::ZERO);
        moment.add(start, 2, 0);
        moment.forget(start);
        moment.add(start, 1, 0);
        assert_eq!(moment.used(), 3);
        moment.forget(start + Duration::from_nanos(1));
        assert_eq!(moment.used(), 0);
    }

    #[test]
    fn shares_are_of_what_there_was_when_the_time_began() {
        let start = Instant::now();
        let minute = Duration::from_secs(60);
        let mut window = Window::new(minute);
        assert_eq!(window.cached(7), 7);
        window.add(start, 1, 100);
        window.add(start + minute / 2, 1, 50);
        assert_eq!(window.cached(10), 100);
        assert_eq!(window.cached(200), 200);
        window.forget(start + minute + minute / 4);
        assert_eq!(window.cached(10), 50);
    }
}
