//! The ready queue: one queue per priority, and the rule that none of them starves.
//!
//! A key in it has a ticket. Tickets are never removed from the middle: one that is replaced becomes stale and is
//! skipped.

use std::cell::Cell;
use std::collections::VecDeque;
use std::iter;
use std::rc::Rc;
use std::time::Duration;

use hashbrown::HashMap;

use super::clock::Stamp;
use crate::Priority;

/// The rule that keeps low priorities from starving.
///
/// Higher priorities are dequeued first. When the first key of a lower priority has been ready for longer than the
/// *threshold*, it is aged, and every *share*-th dequeue takes the aged key that has waited longest. So a key with `n`
/// keys of lower or equal priority ahead of it is dequeued after at most the threshold and then `share × (n + 1)`
/// dequeues, whatever is added at higher priorities. An add that raises the key's priority puts it at the end of the
/// higher level.
///
/// With fair queuing, the age of a level is the age of its next key. With `g` groups in the queue and `k` keys of its
/// own group ahead, a key is dequeued after at most `(k + 1) × g` times the threshold and the share.
///
/// The default is a threshold of one second and a share of four: one of four dequeues.
///
/// ```
/// use std::time::Duration;
/// use lariat::queue::{Ageing, WorkQueue};
///
/// let ageing = Ageing::new(Duration::from_secs(5), 10);
/// let queue: WorkQueue<String> = WorkQueue::builder().ageing(ageing).build();
/// # drop(queue);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ageing {
    /// How long a lower priority is passed over before it is aged.
    threshold: Duration,
    /// One of this many dequeues takes an aged key; at least 1.
    share: u32,
}

impl Ageing {
    /// Creates a rule.
    ///
    /// With a `threshold` of zero, lower priorities get their share from the first dequeue on. With a `share` of 1,
    /// aged keys get every dequeue; 0 means 1.
    #[must_use]
    pub fn new(threshold: Duration, share: u32) -> Self {
        Self {
            threshold,
            share: share.max(1),
        }
    }

    /// Returns how long a key of a lower priority waits before it is aged.
    #[must_use]
    pub fn threshold(self) -> Duration {
        self.threshold
    }

    /// Returns the share of aged keys: one of this many dequeues.
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

/// A position in the ready queue.
///
/// The ticket in an entry's phase is the valid one. All other tickets with the entry's slot are stale and are skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket {
    /// The index of the priority; 0 is the highest.
    pub(super) level: u8,
    /// Distinguishes the tickets of one slot and level.
    pub(super) number: u32,
}

impl Ticket {
    /// Returns the level as an index.
    pub(super) fn level(self) -> usize {
        self.level.into()
    }
}

/// The tickets of keys by priority: of all ready keys, or of those that wait for a lane.
///
/// Whether a ticket is valid is asked of `since`: it returns the time since which the key waits, and `None` for a stale
/// ticket.
#[derive(Debug)]
pub(super) struct Ready {
    /// When lower levels are served.
    ageing: Ageing,
    /// One queue per priority; the highest priority has index 0.
    levels: [Level; Priority::LEVELS],
    /// The number of the next ticket.
    ///
    /// It wraps after four billion tickets. Compaction has removed stale tickets with the same number long before.
    next_number: u32,
    /// How many dequeues have passed over an aged key since the last dequeue of one.
    passed_over: u32,
}

/// The queue of one priority.
#[derive(Debug)]
struct Level {
    /// The tickets, valid and stale.
    line: Line,
    /// How many tickets are valid.
    valid: usize,
}

impl Ready {
    /// Creates an empty queue, with or without fair queuing between groups.
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

    /// Creates the empty line of a lane: with these rules, and low priorities have their share from the first turn on.
    pub(super) fn of_lane(&self) -> Self {
        let ageing = Ageing::new(Duration::ZERO, self.ageing.share);
        Self::new(ageing, matches!(self.levels[0].line, Line::Fair(_)))
    }

    /// Queues a slot and returns its ticket, which the caller stores in the entry.
    pub(super) fn push(&mut self, slot: u32, priority: Priority, group: u64) -> Ticket {
        // The number tells this ticket from stale ones of the same slot and level, which the slot has if its key was
        // raised or removed earlier.
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

    /// Removes all tickets and resets the count towards the share of aged keys.
    pub(super) fn clear(&mut self) {
        for level in &mut self.levels {
            level.line.retain(|_| false);
            level.valid = 0;
        }
        self.passed_over = 0;
    }

    /// Records that a ticket has become stale.
    pub(super) fn discard(&mut self, ticket: Ticket) {
        self.levels[ticket.level()].valid -= 1;
    }

    /// Removes the next ticket and returns its slot.
    pub(super) fn pop(&mut self, since: impl Since, now: Stamp) -> Option<u32> {
        // Level 0 is the highest priority.
        let highest = self.levels.iter().position(|level| level.valid > 0)?;
        // Strict priority, except that every `share`-th dequeue goes to an aged level.
        let level = self.aged_level(highest, &since, now).unwrap_or(highest);
        let (slot, _) = self.first(level, &since)?;
        self.levels[level].line.pop_front(false);
        self.levels[level].valid -= 1;
        // Without this, stale tickets behind the last valid one would stay until the level is used again.
        self.levels[level].compact(level as u8, &since);
        Some(slot)
    }

    /// Returns the ready slots in the order of the next dequeues, ignoring ageing.
    ///
    /// Reads at most `most` tickets, stale ones included. With fair queuing it takes a step per group besides.
    pub(super) fn in_order<'a>(
        &'a self,
        since: impl Since + Copy + 'a,
        most: usize,
    ) -> impl Iterator<Item = u32> + 'a {
        // Shared by the iterators of all levels, so that the bound applies to the whole read.
        let left = Rc::new(Cell::new(most));
        let levels = (0_u8..).zip(&self.levels);
        levels.flat_map(move |(number, level)| {
            let left = Rc::clone(&left);
            let is_valid = move |place: TicketPlace| {
                left.set(left.get().checked_sub(1)?);
                Some(since_of(&since, number, place).is_some())
            };
            level.line.in_order(is_valid)
        })
    }

    /// Returns the aged level that the next dequeue serves, if its turn has come.
    fn aged_level(&mut self, highest: usize, since: &impl Since, now: Stamp) -> Option<usize> {
        // The front of a level decides for all of it: the keys behind it are dequeued later in any case.
        let threshold = self.ageing.threshold;
        let aged = (highest + 1..Priority::LEVELS)
            .filter_map(|level| Some((self.first(level, since)?.1, level)))
            .filter(|(since, _)| now.since(*since) > threshold)
            // By the time since which the key waits, so the longest waiting one comes first.
            .min();
        // Without an aged key the count starts over. Otherwise dequeues that passed over an earlier aged key would
        // count for the next one.
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

    /// Drops stale tickets at the front of a level and returns the first valid one.
    fn first(&mut self, level: usize, since: &impl Since) -> Option<(u32, Stamp)> {
        let line = &mut self.levels[level].line;
        // Stale tickets are removed lazily, here and in `compact`: finding one in the middle of the queue would take
        // linear time.
        while let Some(place) = line.front() {
            match since_of(since, level as u8, place) {
                Some(since) => return Some((place.0, since)),
                None => line.pop_front(true),
            }
        }
        None
    }

    /// Removes the stale tickets of levels in which they are the majority.
    pub(super) fn compact(&mut self, since: impl Since) {
        for (number, level) in (0..).zip(&mut self.levels) {
            level.compact(number, &since);
        }
    }

    /// Returns whether no key is ready.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of ready keys.
    pub(super) fn len(&self) -> usize {
        self.levels.iter().map(|level| level.valid).sum()
    }

    /// Returns the number of tickets, stale ones included.
    pub(super) fn tickets(&self) -> usize {
        self.levels.iter().map(|level| level.line.len()).sum()
    }

    /// Returns an upper bound on the number of tickets.
    pub(super) fn most_tickets(&self) -> usize {
        let most = self.levels.iter().map(|level| most_tickets(level.valid));
        most.sum()
    }

    /// Returns the number of ready keys of each level, the highest priority first.
    pub(super) fn depths(&self) -> [usize; Priority::LEVELS] {
        std::array::from_fn(|level| self.levels[level].valid)
    }
}

impl Level {
    /// Removes stale tickets if they are the majority.
    fn compact(&mut self, number: u8, since: &impl Since) {
        // At least half of the tickets are dropped, which pays for the scan.
        if self.line.len() > most_tickets(self.valid) {
            self.line
                .retain(|place| since_of(since, number, place).is_some());
        }
    }
}

/// Returns the most tickets that a level with `valid` ready keys may have.
fn most_tickets(valid: usize) -> usize {
    2 * valid + 64
}

/// Returns the time since which the key of a ticket waits; `None` if the ticket is stale.
fn since_of(since: &impl Since, level: u8, (slot, number): TicketPlace) -> Option<Stamp> {
    // The entry names its valid ticket. A ticket of an earlier key in the same slot differs in its number.
    since(slot, Ticket { level, number })
}

/// Returns the time since which the key in a slot waits with a ticket; `None` if the ticket is stale.
pub(super) trait Since: Fn(u32, Ticket) -> Option<Stamp> {}

impl<F: Fn(u32, Ticket) -> Option<Stamp>> Since for F {}

#[cfg(test)]
impl Ready {
    pub(super) fn room(&self) -> usize {
        self.levels.iter().map(|level| level.line.room()).sum()
    }
}

/// A slot and the number of its ticket.
type TicketPlace = (u32, u32);

/// The tickets of a level in the order in which they are dequeued.
#[derive(Debug)]
enum Line {
    /// First in, first out.
    Fifo(VecDeque<TicketPlace>),
    /// Round robin over groups.
    Fair(Groups),
}

/// A queue per group; the groups are served round robin.
#[derive(Debug, Default)]
struct Groups {
    /// The groups that have tickets, each once; the first is served next.
    turns: VecDeque<u64>,
    /// The tickets of each group in `turns`; no queue is empty.
    lines: HashMap<u64, VecDeque<TicketPlace>>,
    /// The number of tickets of all groups.
    len: usize,
}

/// A queue smaller than this keeps its memory.
const SHRINK_FROM: usize = 16 * 1024;

impl Line {
    /// Creates an empty queue.
    fn new(is_fair: bool) -> Self {
        if is_fair {
            Self::Fair(Groups::default())
        } else {
            Self::Fifo(VecDeque::new())
        }
    }

    /// Appends a ticket.
    fn push(&mut self, place: TicketPlace, group: u64) {
        match self {
            Self::Fifo(line) => line.push_back(place),
            Self::Fair(groups) => groups.push(place, group),
        }
    }

    /// Returns the next ticket.
    fn front(&self) -> Option<TicketPlace> {
        match self {
            Self::Fifo(line) => line.front().copied(),
            Self::Fair(groups) => groups.lines.get(groups.turns.front()?)?.front().copied(),
        }
    }

    /// Removes the next ticket; a stale one does not use up its group's turn.
    fn pop_front(&mut self, is_stale: bool) {
        match self {
            Self::Fifo(line) => {
                line.pop_front();
                shrink(line);
            }
            Self::Fair(groups) => groups.pop_front(is_stale),
        }
    }

    /// Returns the number of tickets.
    fn len(&self) -> usize {
        match self {
            Self::Fifo(line) => line.len(),
            Self::Fair(groups) => groups.len,
        }
    }

    /// Returns the slots of the valid tickets, in the order in which they are dequeued.
    ///
    /// Ends once `is_valid` returns `None`.
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

    /// Removes the tickets for which `stays` returns `false`.
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
    /// Appends a ticket to its group.
    fn push(&mut self, place: TicketPlace, group: u64) {
        let line = self.lines.entry(group).or_default();
        if line.is_empty() {
            // A group that had no tickets takes its turn after the others, so leaving and joining gains nothing.
            self.turns.push_back(group);
        }
        line.push_back(place);
        self.len += 1;
    }

    /// Removes the next ticket, and passes the turn on unless the ticket was stale.
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
            // A group without tickets takes no memory, so groups may come and go, as namespaces do.
            self.lines.remove(&group);
            self.turns.pop_front();
        // Only a dequeue uses up the turn. A group with many raised or removed keys would otherwise lose its turns to
        // their stale tickets.
        } else if !is_stale {
            self.turns.rotate_left(1);
        }
    }

    /// Removes the tickets for which `stays` returns `false`, and empty groups.
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

/// Returns memory once less than an eighth of it is used.
///
/// Halving several times rather than fitting exactly keeps the cost per ticket constant.
fn shrink(line: &mut VecDeque<TicketPlace>) {
    if line.capacity() > SHRINK_FROM && line.len() < line.capacity() / 8 {
        line.shrink_to(line.capacity() / 4);
    }
}
