//! A naive queue that keeps everything in lists, for comparison.

use std::collections::{BTreeMap, BTreeSet};

use crate::Priority;

pub(super) const PATIENCE: u64 = 3;
pub(super) const SHARE: u32 = 2;

/// A lane number, or the whole key.
pub(super) type Lane = Option<u32>;

/// The priority and payload of an add.
pub(super) type Parcel = (Priority, Vec<u32>);

/// A delay: its key and its lane.
pub(super) type Delay = (u8, Lane);

#[derive(Debug, Clone, Default)]
pub(super) struct Due {
    pub(super) lanes: BTreeSet<Lane>,
    pub(super) payload: Vec<u32>,
    pub(super) priority: Priority,
    /// Since when something is due.
    pub(super) since: u64,
}

#[derive(Debug)]
pub(super) struct Delayed {
    /// The deadline, and the order of arrival among equal ones.
    pub(super) at: (u64, u64),
    pub(super) priority: Priority,
    pub(super) payload: Vec<u32>,
}

#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) now: u64,
    /// Due lanes that were not dequeued, of ready keys and of keys in processing.
    pub(super) dirty: BTreeMap<u8, Due>,
    /// Keys in line with their level, in order of arrival at that level.
    pub(super) line: Vec<(u8, Priority)>,
    /// Groups in the order of their turns, if the queue is fair; then it has one level.
    pub(super) turns: Option<Vec<u8>>,
    /// Times a key became due.
    pub(super) adds: u64,
    /// By key and lane.
    pub(super) delayed: BTreeMap<Delay, Delayed>,
    pub(super) arrivals: u64,
    pub(super) failures: BTreeMap<(u8, Lane), u32>,
    /// Processing keys, and since when.
    pub(super) processing: BTreeMap<u8, u64>,
    /// Keys due after the drain, in the order in which they became so.
    pub(super) deferred: Vec<u8>,
    /// Processing keys that were added before the drain.
    pub(super) in_drain: BTreeSet<u8>,
    pub(super) draining: bool,
    pub(super) passed_over: u32,
    pub(super) shutting_down: bool,
    /// A shutdown that drops everything.
    pub(super) dropping: bool,
}

/// The group of a key in a fair queue.
pub(super) fn group(key: u8) -> u8 {
    key % 2
}

impl Model {
    pub(super) fn add(&mut self, key: u8, lanes: &BTreeSet<Lane>, after: u64, what: Parcel) {
        if self.shutting_down {
            return;
        }
        if after == 0 {
            self.mark_dirty(key, lanes, what);
            self.line_up(key);
        } else {
            self.end_delays_of(key);
            for lane in lanes {
                self.delay((key, *lane), self.now + after, what.clone());
            }
        }
    }

    pub(super) fn delay(&mut self, which: Delay, at: u64, (priority, payload): Parcel) {
        self.arrivals += 1;
        let never = Delayed {
            at: (u64::MAX, 0),
            priority,
            payload: vec![],
        };
        let delayed = self.delayed.entry(which).or_insert(never);
        if at < delayed.at.0 {
            delayed.at = (at, self.arrivals);
        }
        delayed.priority = delayed.priority.max(priority);
        delayed.payload.extend(payload);
    }

    pub(super) fn mark_dirty(&mut self, key: u8, lanes: &BTreeSet<Lane>, what: Parcel) {
        self.mark_dirty_since(key, self.now, lanes, what);
    }

    /// Returns the due lanes of a key, which is due from now on.
    fn dirty(&mut self, key: u8, priority: Priority, since: u64) -> &mut Due {
        self.dirty.entry(key).or_insert_with(|| {
            self.adds += 1;
            Due {
                priority,
                since,
                ..Due::default()
            }
        })
    }

    fn mark_dirty_since(
        &mut self,
        key: u8,
        since: u64,
        lanes: &BTreeSet<Lane>,
        (priority, payload): Parcel,
    ) {
        let due = self.dirty(key, priority, since);
        due.lanes.extend(lanes);
        due.priority = due.priority.max(priority);
        due.payload.extend(payload);
    }

    /// Ends the earliest delay of the chosen keys that has passed; returns whether there was one.
    fn end_first_delay(&mut self, chosen: impl Fn(u8) -> bool) -> bool {
        let over = self.delayed.iter();
        let over = over.filter(|((key, _), delayed)| chosen(*key) && delayed.at.0 <= self.now);
        let Some((at, which)) = over.map(|(which, delayed)| (delayed.at, *which)).min() else {
            return false;
        };
        let delayed = self.delayed.remove(&which).unwrap();
        let (key, lane) = which;
        let what = (delayed.priority, delayed.payload);
        self.mark_dirty_since(key, at.0, &[lane].into(), what);
        self.line_up(key);
        true
    }

    /// Ends the delays of a key that have passed.
    pub(super) fn end_delays_of(&mut self, key: u8) {
        while self.end_first_delay(|known| known == key) {}
    }

    pub(super) fn is_delayed(&self, key: u8) -> bool {
        self.delayed.keys().any(|(k, _)| *k == key)
    }

    /// Returns whether a delay of a key has ended, which a drain leaves in place.
    pub(super) fn is_overdue(&self, key: u8) -> bool {
        let mut delayed = self.delayed.iter();
        delayed.any(|((k, _), delayed)| *k == key && delayed.at.0 <= self.now)
    }

    pub(super) fn line_up(&mut self, key: u8) {
        if self.processing.contains_key(&key) || self.deferred.contains(&key) {
            return;
        }
        let place = self.line.iter().position(|(k, _)| *k == key);
        if self.draining && place.is_none() && !self.in_drain.contains(&key) {
            self.deferred.push(key);
            return;
        }
        let priority = self.dirty[&key].priority;
        match place {
            Some(at) if self.line[at].1 >= priority => return,
            Some(at) => drop(self.line.remove(at)),
            None => {}
        }
        self.line.push((key, priority));
        if let Some(turns) = &mut self.turns
            && !turns.contains(&group(key))
        {
            turns.push(group(key));
        }
    }

    pub(super) fn expire(&mut self) {
        while !self.draining && self.end_first_delay(|_| true) {}
    }

    pub(super) fn next_deadline(&self) -> Option<(u64, u8)> {
        if self.draining {
            return None;
        }
        let (key, delayed) = self.delayed.iter().min_by_key(|(_, delayed)| delayed.at)?;
        Some((delayed.at.0, key.0))
    }

    /// Takes the key whose turn it is out of the line.
    pub(super) fn next(&mut self) -> Option<u8> {
        let at = self.turn()?;
        let (key, _) = self.line.remove(at);
        let line = &self.line;
        if let Some(turns) = &mut self.turns {
            turns.retain(|each| *each != group(key));
            if line.iter().any(|(other, _)| group(*other) == group(key)) {
                turns.push(group(key));
            }
        }
        Some(key)
    }

    /// Returns the position in line whose turn it is.
    fn turn(&mut self) -> Option<usize> {
        if let Some(turns) = &self.turns {
            let turn = turns.first()?;
            return self.line.iter().position(|(key, _)| group(*key) == *turn);
        }
        let first = |level: Priority| self.line.iter().position(|(_, p)| *p == level);
        let since = |at: usize| self.dirty[&self.line[at].0].since;
        let highest = self.line.iter().map(|(_, priority)| *priority).max()?;
        let aged = [Priority::Low, Priority::Normal]
            .into_iter()
            .filter(|level| *level < highest)
            .filter_map(first)
            .filter(|at| self.now - since(*at) > PATIENCE)
            .min_by_key(|at| (since(*at), std::cmp::Reverse(self.line[*at].1)));
        if aged.is_none() {
            self.passed_over = 0;
            return first(highest);
        }
        self.passed_over += 1;
        if self.passed_over < SHARE {
            return first(highest);
        }
        self.passed_over = 0;
        aged
    }

    pub(super) fn settle(&mut self, key: u8) {
        if self.dropping {
            self.dirty.remove(&key);
        }
        if self.dirty.contains_key(&key) {
            self.line_up(key);
        } else if !self.is_delayed(key) {
            self.failures.retain(|(k, _), _| *k != key);
        }
    }

    pub(super) fn drain(&mut self) {
        if !self.draining {
            self.expire();
            self.draining = true;
            let due = |key: &&u8| self.dirty.contains_key(*key);
            self.in_drain = self.processing.keys().filter(due).copied().collect();
        }
    }

    pub(super) fn resume(&mut self) {
        self.draining = false;
        for key in std::mem::take(&mut self.deferred) {
            self.line_up(key);
        }
    }

    pub(super) fn shut_down(&mut self, drops_line: bool) {
        self.shutting_down = true;
        self.draining = false;
        self.delayed.clear();
        let mut dropped = std::mem::take(&mut self.deferred);
        if drops_line {
            self.dropping = true;
            self.dirty
                .retain(|key, _| !self.processing.contains_key(key));
            dropped.extend(self.line.drain(..).map(|(key, _)| key));
            self.passed_over = 0;
            self.turns = self.turns.as_ref().map(|_| Vec::new());
        }
        for key in dropped {
            self.dirty.remove(&key);
            self.failures.retain(|(k, _), _| *k != key);
        }
    }

    pub(super) fn give_back(
        &mut self,
        key: u8,
        lanes: BTreeSet<Lane>,
        (priority, payload): Parcel,
    ) {
        if self.dropping {
            self.processing.remove(&key);
            return self.settle(key);
        }
        let due = self.dirty(key, priority, self.now);
        due.lanes.extend(lanes);
        due.payload.splice(0..0, payload);
        due.priority = due.priority.max(priority);
        self.processing.remove(&key);
        self.in_drain.insert(key);
        self.settle(key);
    }
}
