//! A naive queue that keeps everything in lists, for comparison.

use std::collections::{BTreeMap, BTreeSet};

use crate::Priority;

pub(super) const PATIENCE: u64 = 3;
pub(super) const SHARE: u32 = 2;

/// A lane number, or the whole key.
pub(super) type Lane = Option<u32>;

/// The priority and payload of an add.
pub(super) type Parcel = (Priority, Vec<u32>);

/// A delay: its key, its lane, and whether it is kept.
pub(super) type Delay = (u8, Lane, bool);

#[derive(Debug, Clone, Default)]
pub(super) struct Due {
    pub(super) lanes: BTreeSet<Lane>,
    pub(super) payload: Vec<u32>,
    pub(super) priority: Priority,
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
    /// Due and not handed out, of keys in line and of held ones.
    pub(super) due: BTreeMap<u8, Due>,
    /// Keys in line with their level and since when, in order of arrival at that level.
    pub(super) line: Vec<(u8, Priority, u64)>,
    /// By key, lane and whether it is kept.
    pub(super) delayed: BTreeMap<Delay, Delayed>,
    pub(super) arrivals: u64,
    pub(super) failures: BTreeMap<(u8, Lane), u32>,
    pub(super) held: BTreeSet<u8>,
    /// Keys due after the drain, in the order in which they became so.
    pub(super) aside: Vec<u8>,
    /// Held keys that were added before the drain.
    pub(super) promised: BTreeSet<u8>,
    pub(super) draining: bool,
    pub(super) passed_over: u32,
    pub(super) shutting_down: bool,
}

impl Model {
    pub(super) fn add(
        &mut self,
        key: u8,
        lanes: &BTreeSet<Lane>,
        (after, kept): (u64, bool),
        what: Parcel,
    ) {
        if self.shutting_down {
            return;
        }
        if after == 0 {
            self.make_due(key, lanes, what);
            self.line_up(key, self.now);
        } else {
            for lane in lanes {
                self.park((key, *lane, kept), self.now + after, what.clone());
            }
        }
    }

    pub(super) fn park(&mut self, which: Delay, at: u64, (priority, payload): Parcel) {
        let (key, lane, kept) = which;
        if !kept
            && let Some(due) = self.due.get_mut(&key)
            && (due.lanes.contains(&None) || due.lanes.contains(&lane))
        {
            due.payload.extend(payload);
            return;
        }
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

    pub(super) fn make_due(&mut self, key: u8, lanes: &BTreeSet<Lane>, what: Parcel) {
        self.absorb(key, |lane, kept, _| {
            !kept && (lanes.contains(&None) || lanes.contains(&lane))
        });
        self.merge(key, lanes, what);
    }

    pub(super) fn merge(&mut self, key: u8, lanes: &BTreeSet<Lane>, (priority, payload): Parcel) {
        let due = self.due.entry(key).or_insert(Due {
            priority,
            ..Due::default()
        });
        due.lanes.extend(lanes);
        due.priority = due.priority.max(priority);
        due.payload.extend(payload);
    }

    /// Makes delayed lanes due, in the order of their deadlines, as older than what is due.
    pub(super) fn absorb(&mut self, key: u8, chosen: impl Fn(Lane, bool, u64) -> bool) {
        let mut moved: Vec<((u64, u64), Delay)> = self
            .delayed
            .iter()
            .filter(|((k, lane, kept), delayed)| *k == key && chosen(*lane, *kept, delayed.at.0))
            .map(|(which, delayed)| (delayed.at, *which))
            .collect();
        moved.sort();
        let newer = self
            .due
            .get_mut(&key)
            .map(|due| std::mem::take(&mut due.payload));
        for (_, which) in &moved {
            let delayed = self.delayed.remove(which).unwrap();
            self.merge(key, &[which.1].into(), (delayed.priority, delayed.payload));
        }
        if let Some(due) = self.due.get_mut(&key) {
            due.payload.extend(newer.unwrap_or_default());
        }
    }

    pub(super) fn is_delayed(&self, key: u8) -> bool {
        self.delayed.keys().any(|(k, _, _)| *k == key)
    }

    pub(super) fn line_up(&mut self, key: u8, since: u64) {
        if self.held.contains(&key) || self.aside.contains(&key) {
            return;
        }
        let in_line = self.line.iter().any(|(k, _, _)| *k == key);
        if self.draining && !in_line && !self.promised.contains(&key) {
            self.aside.push(key);
            return;
        }
        let priority = self.due[&key].priority;
        match self.line.iter().position(|(k, _, _)| *k == key) {
            None => self.line.push((key, priority, since)),
            Some(at) if self.line[at].1 < priority => {
                let (_, _, since) = self.line.remove(at);
                self.line.push((key, priority, since));
            }
            Some(_) => {}
        }
    }

    pub(super) fn expire(&mut self) {
        while let Some((at, key)) = self.next_deadline().filter(|(at, _)| *at <= self.now) {
            let now = self.now;
            self.absorb(key, |_, _, at| at <= now);
            if self.due[&key].lanes.contains(&None) {
                self.absorb(key, |_, kept, _| !kept);
            }
            self.line_up(key, at);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<(u64, u8)> {
        if self.draining {
            return None;
        }
        let (key, delayed) = self.delayed.iter().min_by_key(|(_, delayed)| delayed.at)?;
        Some((delayed.at.0, key.0))
    }

    /// Returns the position in line whose turn it is.
    pub(super) fn turn(&mut self) -> Option<usize> {
        let first = |level: Priority| self.line.iter().position(|(_, p, _)| *p == level);
        let highest = self.line.iter().map(|(_, priority, _)| *priority).max()?;
        let aged = [Priority::Low, Priority::Normal]
            .into_iter()
            .filter(|level| *level < highest)
            .filter_map(first)
            .filter(|at| self.now - self.line[*at].2 > PATIENCE)
            .min_by_key(|at| (self.line[*at].2, std::cmp::Reverse(self.line[*at].1)));
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
        if self.due.contains_key(&key) {
            self.line_up(key, self.now);
        } else if !self.is_delayed(key) {
            self.failures.retain(|(k, _), _| *k != key);
        }
    }

    pub(super) fn drain(&mut self) {
        if !self.draining {
            self.expire();
            self.draining = true;
            let due = |key: &&u8| self.due.contains_key(*key);
            self.promised = self.held.iter().filter(due).copied().collect();
        }
    }

    pub(super) fn resume(&mut self) {
        self.draining = false;
        for key in std::mem::take(&mut self.aside) {
            self.line_up(key, self.now);
        }
    }

    pub(super) fn shut_down(&mut self) {
        self.shutting_down = true;
        self.delayed.clear();
        for key in std::mem::take(&mut self.aside) {
            self.due.remove(&key);
            self.failures.retain(|(k, _), _| *k != key);
        }
    }

    pub(super) fn give_back(
        &mut self,
        key: u8,
        lanes: BTreeSet<Lane>,
        (priority, payload): Parcel,
    ) {
        let due = self.due.entry(key).or_insert(Due {
            priority,
            ..Due::default()
        });
        due.lanes.extend(lanes);
        due.payload.splice(0..0, payload);
        due.priority = due.priority.max(priority);
        self.held.remove(&key);
        self.promised.insert(key);
        self.settle(key);
    }
}
