//! The keys that are with workers, in the order in which they were handed out.

use std::collections::VecDeque;
use std::hash::Hash;
use std::time::Duration;

use super::clock::Stamp;
use super::entry::{Entry, Phase};
use super::index::Index;

/// Counts and times of held keys, at constant cost per hand-out.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Slots with the time of their hand-out; stale ones are skipped.
    line: VecDeque<(u32, Stamp)>,
    count: usize,
    /// The sum of the times of hand-out of all that are held, in nanoseconds.
    since: u128,
}

impl Held {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn begin(&mut self, slot: u32, now: Stamp) {
        self.line.push_back((slot, now));
        self.count += 1;
        self.since += u128::from(now.nanos());
    }

    /// Notes that a key that was handed out at `since` is back.
    pub(super) fn end<K: Eq + Hash, P>(&mut self, since: Stamp, entries: &Index<K, Entry<P>>) {
        self.count -= 1;
        self.since -= u128::from(since.nanos());
        while self
            .line
            .front()
            .is_some_and(|first| !is_held(*first, entries))
        {
            self.line.pop_front();
        }
        // One that is held for long must not keep those behind it.
        if self.line.len() > self.most_places() {
            self.line.retain(|each| is_held(*each, entries));
        }
    }

    /// Returns how many places there are, stale ones included.
    pub(super) fn places(&self) -> usize {
        self.line.len()
    }

    /// Returns how many places there are at most with the keys that are held now.
    pub(super) fn most_places(&self) -> usize {
        2 * self.count + 64
    }

    /// Returns the slots that are held, each once.
    pub(super) fn slots<K: Eq + Hash, P>(&self, entries: &Index<K, Entry<P>>) -> Vec<u32> {
        let held = self.line.iter().filter(|each| is_held(**each, entries));
        let mut slots: Vec<u32> = held.map(|(slot, _)| *slot).collect();
        // One that came back and was handed out again at the same moment is in the line twice.
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Returns how long the present holders have had their keys, all together.
    pub(super) fn unfinished(&self, now: Stamp) -> Duration {
        let nanos = (u128::from(now.nanos()) * self.count as u128).saturating_sub(self.since);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns how long the present holder with the oldest hand-out has had its key.
    pub(super) fn longest(&self, now: Stamp) -> Duration {
        let oldest = self.line.front();
        oldest.map_or(Duration::ZERO, |(_, since)| now.since(*since))
    }
}

fn is_held<K: Eq + Hash, P>((slot, since): (u32, Stamp), entries: &Index<K, Entry<P>>) -> bool {
    let entry = entries.get(slot);
    entry.is_some_and(|slotted| slotted.value.phase == Phase::Held(since))
}
