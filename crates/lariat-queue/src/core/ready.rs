//! The keys that are ready: one queue per priority, and the rule that none of them starves.

use std::cell::Cell;
use std::collections::VecDeque;
use std::hash::Hash;
use std::iter;
use std::rc::Rc;
use std::time::Duration;

use hashbrown::HashMap;

use super::clock::Stamp;
use super::entry::{KeyEntry, Phase, Ticket};
use super::index::Index;
use crate::Priority;

/// The rule that keeps low priorities from starving.
///
/// Higher priorities are dequeued first. Once the first key of a lower priority has waited longer than `patience`,
/// every `share`-th dequeue takes the longest waiting such key. So a key that becomes ready with `n` keys of lower
/// priorities ahead of it is dequeued after at most `patience` and then `share × (n + 1)` further dequeues, whatever is
/// added above it, unless an add raises its priority and puts it at the end of the higher level.
///
/// With fair queuing, a priority counts as waiting as long as the key that is next in it: with `g` groups in line and
/// `k` keys of its group ahead, a key is dequeued after at most `(k + 1) × g` times the patience and the share. No key
/// waits for ever.
///
/// The default is a patience of one second and a share of four.
///
/// ```
/// use std::time::Duration;
/// use lariat_queue::{Ageing, WorkQueue};
///
/// let ageing = Ageing::new(Duration::from_secs(5), 10);
/// let queue: WorkQueue<String> = WorkQueue::builder().ageing(ageing).build();
/// # drop(queue);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ageing {
    patience: Duration,
    share: u32,
}

impl Ageing {
    /// Creates a rule.
    ///
    /// With a `patience` of zero, lower priorities get their share from the first dequeue on. With a `share` of 1, aged
    /// keys get every dequeue; 0 means 1.
    #[must_use]
    pub fn new(patience: Duration, share: u32) -> Self {
        Self {
            patience,
            share: share.max(1),
        }
    }

    /// Returns how long a lower priority waits before it gets a share.
    #[must_use]
    pub fn patience(self) -> Duration {
        self.patience
    }

    /// Returns the share of aged keys: one of so many dequeues.
    #[must_use]
    pub fn share(self) -> u32 {
        self.share
    }
}

impl Default for Ageing {
    fn default() -> Self {
        Self::new(Duration::from_secs(1), 4)
    }
}

#[derive(Debug)]
pub(super) struct Ready {
    ageing: Ageing,
    levels: [Level; Priority::LEVELS],
    /// The number of the next ticket. It wraps, long after stale tickets with the same number are gone.
    next_number: u32,
    /// Dequeues since the last one of an aged key, while there is an aged key.
    passed_over: u32,
}

#[derive(Debug)]
struct Level {
    /// The places in line, valid and stale.
    line: Line,
    /// How many of them are valid.
    valid: usize,
}

impl Ready {
    /// Creates an empty line, with or without fair queuing between groups.
    pub(super) fn new(ageing: Ageing, is_fair: bool) -> Self {
        let level = |_| Level {
            line: Line::new(is_fair),
            valid: 0,
        };
        Self {
            ageing,
            levels: std::array::from_fn(level),
            next_number: 0,
            passed_over: 0,
        }
    }

    pub(super) fn push(&mut self, slot: u32, priority: Priority, group: u64) -> Ticket {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        let level = &mut self.levels[priority.level()];
        level.line.push((slot, number), group);
        level.valid += 1;
        Ticket {
            level: priority.level() as u8,
            number,
        }
    }

    /// Makes every ticket stale, and forgets that aged keys were passed over.
    pub(super) fn clear(&mut self) {
        for level in &mut self.levels {
            level.line.retain(|_| false);
            level.valid = 0;
        }
        self.passed_over = 0;
    }

    /// Notes that a ticket is stale from now on.
    pub(super) fn discard(&mut self, ticket: Ticket) {
        self.levels[ticket.level()].valid -= 1;
    }

    /// Removes the next slot from the line.
    pub(super) fn pop<K: Eq + Hash, P>(
        &mut self,
        entries: &Index<K, KeyEntry<P>>,
        now: Stamp,
    ) -> Option<u32> {
        // Level 0 is the highest priority.
        let highest = self.levels.iter().position(|level| level.valid > 0)?;
        let level = self.aged_level(highest, entries, now).unwrap_or(highest);
        let (slot, _) = self.first(level, entries)?;
        self.levels[level].line.pop_front(false);
        self.levels[level].valid -= 1;
        // Otherwise stale tickets behind the last valid one would stay until something is added to the level.
        self.levels[level].compact(level as u8, entries);
        Some(slot)
    }

    /// Returns the next slots of the highest level, some of them stale.
    ///
    /// None with fair queuing.
    pub(super) fn upcoming(&self) -> impl Iterator<Item = u32> {
        let highest = self.levels.iter().find(|level| level.valid > 0);
        let line = highest.and_then(|level| match &level.line {
            Line::Fifo(line) => Some(line),
            Line::Fair(_) => None,
        });
        line.into_iter().flatten().map(|(slot, _)| *slot)
    }

    /// Returns the valid slots in the order of the next dequeues, if nothing ages meanwhile.
    ///
    /// Looks at most at `most` tickets, stale ones included. With fair queuing it takes a step per group besides.
    pub(super) fn in_order<'a, K: Eq + Hash, P>(
        &'a self,
        entries: &'a Index<K, KeyEntry<P>>,
        most: usize,
    ) -> impl Iterator<Item = u32> + 'a {
        let left = Rc::new(Cell::new(most));
        let levels = (0_u8..).zip(&self.levels);
        levels.flat_map(move |(number, level)| {
            let left = Rc::clone(&left);
            let is_valid = move |place: TicketPlace| {
                left.set(left.get().checked_sub(1)?);
                Some(entry_at(entries, number, place).is_some())
            };
            level.line.in_order(is_valid)
        })
    }

    /// Returns the aged lower level that is served next, if its share is due.
    fn aged_level<K: Eq + Hash, P>(
        &mut self,
        highest: usize,
        entries: &Index<K, KeyEntry<P>>,
        now: Stamp,
    ) -> Option<usize> {
        let patience = self.ageing.patience;
        let aged = (highest + 1..Priority::LEVELS)
            .filter_map(|level| Some((self.first(level, entries)?.1, level)))
            .filter(|(since, _)| now.since(*since) > patience)
            .min();
        // Without aged keys the count starts over, so that the next aged key waits for a full share.
        let Some((_, level)) = aged else {
            self.passed_over = 0;
            return None;
        };
        self.passed_over += 1;
        if self.passed_over < self.ageing.share {
            return None;
        }
        self.passed_over = 0;
        Some(level)
    }

    /// Drops stale tickets at the head of a level and returns the first valid one.
    fn first<K: Eq + Hash, P>(
        &mut self,
        level: usize,
        entries: &Index<K, KeyEntry<P>>,
    ) -> Option<(u32, Stamp)> {
        let line = &mut self.levels[level].line;
        while let Some(place) = line.front() {
            match entry_at(entries, level as u8, place) {
                Some(entry) => return Some((place.0, entry.since)),
                None => line.pop_front(true),
            }
        }
        None
    }

    /// Drops stale tickets of levels in which they are the majority.
    pub(super) fn compact<K: Eq + Hash, P>(&mut self, entries: &Index<K, KeyEntry<P>>) {
        for (number, level) in (0..).zip(&mut self.levels) {
            level.compact(number, entries);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn len(&self) -> usize {
        self.levels.iter().map(|level| level.valid).sum()
    }

    /// Counts tickets, stale ones included.
    pub(super) fn tickets(&self) -> usize {
        self.levels.iter().map(|level| level.line.len()).sum()
    }

    /// Returns the upper bound on the tickets, given the keys in line.
    pub(super) fn most_tickets(&self) -> usize {
        let most = self.levels.iter().map(|level| most_tickets(level.valid));
        most.sum()
    }

    /// Returns whether no tickets are left, not even stale ones.
    ///
    /// With fair queuing, stale tickets keep the position of their group.
    pub(super) fn is_clear(&self) -> bool {
        self.levels.iter().all(|level| level.line.len() == 0)
    }

    /// Returns how many keys are in line at each level, the highest first.
    pub(super) fn depths(&self) -> [usize; Priority::LEVELS] {
        std::array::from_fn(|level| self.levels[level].valid)
    }
}

impl Level {
    /// Drops stale tickets if they are the majority.
    fn compact<K: Eq + Hash, P>(&mut self, number: u8, entries: &Index<K, KeyEntry<P>>) {
        if self.line.len() > most_tickets(self.valid) {
            self.line
                .retain(|place| entry_at(entries, number, place).is_some());
        }
    }
}

/// Returns the upper bound on the tickets of a level with so many valid ones.
fn most_tickets(valid: usize) -> usize {
    2 * valid + 64
}

/// Returns the entry of a place in line, unless the place is stale.
fn entry_at<K: Eq + Hash, P>(
    entries: &Index<K, KeyEntry<P>>,
    level: u8,
    (slot, number): TicketPlace,
) -> Option<&KeyEntry<P>> {
    let entry = &entries.get(slot)?.value;
    (entry.phase == Phase::Ready(Ticket { level, number })).then_some(entry)
}

#[cfg(test)]
impl Ready {
    pub(super) fn room(&self) -> usize {
        self.levels.iter().map(|level| level.line.room()).sum()
    }
}

/// A slot in line with the number of its ticket.
type TicketPlace = (u32, u32);

/// Places in the order in which they are dequeued, valid and stale.
#[derive(Debug)]
enum Line {
    Fifo(VecDeque<TicketPlace>),
    Fair(Groups),
}

/// A line per group; groups are served round robin.
#[derive(Debug, Default)]
struct Groups {
    /// The groups with places in line, each once; the first is served next.
    turns: VecDeque<u64>,
    lines: HashMap<u64, VecDeque<TicketPlace>>,
    len: usize,
}

/// A line smaller than this is not worth shrinking, only to grow again.
const SHRINK_FROM: usize = 16 * 1024;

impl Line {
    fn new(is_fair: bool) -> Self {
        if is_fair {
            Self::Fair(Groups::default())
        } else {
            Self::Fifo(VecDeque::new())
        }
    }

    fn push(&mut self, place: TicketPlace, group: u64) {
        match self {
            Self::Fifo(line) => line.push_back(place),
            Self::Fair(groups) => groups.push(place, group),
        }
    }

    /// Returns the next place.
    fn front(&self) -> Option<TicketPlace> {
        match self {
            Self::Fifo(line) => line.front().copied(),
            Self::Fair(groups) => groups.lines.get(groups.turns.front()?)?.front().copied(),
        }
    }

    /// Removes the next place; a stale one does not use up its group's turn.
    fn pop_front(&mut self, is_stale: bool) {
        match self {
            Self::Fifo(line) => {
                line.pop_front();
                shrink(line);
            }
            Self::Fair(groups) => groups.pop_front(is_stale),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Fifo(line) => line.len(),
            Self::Fair(groups) => groups.len,
        }
    }

    /// Returns the slots of the valid places, in the order in which they leave.
    ///
    /// Ends once `is_valid` returns none.
    fn in_order<'a>(
        &'a self,
        is_valid: impl Fn(TicketPlace) -> Option<bool> + 'a,
    ) -> impl Iterator<Item = u32> + 'a {
        let mut lines: VecDeque<_> = match self {
            Self::Fifo(line) => [line.iter()].into(),
            Self::Fair(groups) => {
                let lines = groups
                    .turns
                    .iter()
                    .filter_map(|group| groups.lines.get(group));
                lines.map(VecDeque::iter).collect()
            }
        };
        iter::from_fn(move || {
            while let Some(mut line) = lines.pop_front() {
                // A stale place does not use up the turn of its group.
                for place in line.by_ref() {
                    if is_valid(*place)? {
                        lines.push_back(line);
                        return Some(place.0);
                    }
                }
            }
            None
        })
    }

    fn retain(&mut self, mut stays: impl FnMut(TicketPlace) -> bool) {
        match self {
            Self::Fifo(line) => {
                line.retain(|place| stays(*place));
                shrink(line);
            }
            Self::Fair(groups) => groups.retain(stays),
        }
    }
}

impl Groups {
    fn push(&mut self, place: TicketPlace, group: u64) {
        let line = self.lines.entry(group).or_default();
        if line.is_empty() {
            self.turns.push_back(group);
        }
        line.push_back(place);
        self.len += 1;
    }

    fn pop_front(&mut self, is_stale: bool) {
        let Some(group) = self.turns.front().copied() else {
            return;
        };
        let Some(line) = self.lines.get_mut(&group) else {
            return;
        };
        line.pop_front();
        shrink(line);
        self.len -= 1;
        if line.is_empty() {
            self.lines.remove(&group);
            self.turns.pop_front();
        } else if !is_stale {
            self.turns.rotate_left(1);
        }
    }

    fn retain(&mut self, mut stays: impl FnMut(TicketPlace) -> bool) {
        for line in self.lines.values_mut() {
            line.retain(|place| stays(*place));
            shrink(line);
        }
        self.lines.retain(|_, line| !line.is_empty());
        self.turns.retain(|group| self.lines.contains_key(group));
        self.len = self.lines.values().map(VecDeque::len).sum();
    }
}

#[cfg(test)]
impl Line {
    fn room(&self) -> usize {
        match self {
            Self::Fifo(line) => line.capacity(),
            Self::Fair(groups) => groups.lines.values().map(VecDeque::capacity).sum(),
        }
    }
}

/// Gives memory back once few places are left.
///
/// Halving keeps the cost per place constant.
fn shrink(line: &mut VecDeque<TicketPlace>) {
    if line.capacity() > SHRINK_FROM && line.len() < line.capacity() / 8 {
        line.shrink_to(line.capacity() / 4);
    }
}
