//! The API server of the model, with all of its states.

use std::collections::BTreeMap;

use super::super::TestState;

/// The objects of the API server, and what a watch of a selection reports of them.
#[derive(Debug, Default, Clone)]
pub(super) struct Server {
    pub(super) version: u64,
    objects: BTreeMap<u8, Held>,
    next_uid: u8,
    /// What the selection showed of each key, and since when.
    history: BTreeMap<u8, Vec<(u64, Option<TestState>)>>,
    /// What a watch has not reported yet.
    pub(super) log: Vec<Event>,
    /// Everything that a watch of the selection reports since `base`, for stale servers.
    past: Vec<Event>,
    /// The version at which the present history began.
    base: u64,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    state: TestState,
    is_selected: bool,
}

/// What happens to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    /// It is created, selected, or changed.
    Put,
    /// It leaves the selection.
    Leave,
    /// It enters the selection.
    Enter,
    Delete,
}

/// A line of a watch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub(super) key: u8,
    pub(super) state: TestState,
    /// Whether it is deleted or not selected any more.
    pub(super) is_gone: bool,
}

/// What a write is answered with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    pub(super) key: u8,
    pub(super) state: TestState,
    pub(super) what: Outcome,
    /// The state that was shown under the name when the write was sent.
    pub(super) before: Option<TestState>,
    /// The number of the write, in the order in which they were sent.
    pub(super) sent: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome {
    Selected,
    NotSelected,
    Gone,
}

impl Server {
    /// Does something, if it can be done.
    pub(super) fn apply(&mut self, key: u8, op: Op) -> Option<Answer> {
        let before = self.objects.get(&key).copied();
        if before.is_none() && op != Op::Put {
            return None;
        }
        self.version += 1;
        let uid = before.map_or_else(|| self.fresh_uid(), |held| held.state.uid);
        let version = self.version;
        let state = TestState { uid, version };
        let was_selected = before.is_some_and(|held| held.is_selected);
        let is_selected = match op {
            Op::Put => before.is_none_or(|held| held.is_selected),
            Op::Enter => true,
            Op::Leave | Op::Delete => false,
        };
        match op {
            Op::Delete => self.objects.remove(&key),
            _ => self.objects.insert(key, Held { state, is_selected }),
        };
        if was_selected || is_selected {
            let is_gone = !is_selected;
            let event = Event {
                key,
                state,
                is_gone,
            };
            self.log.push(event);
            self.past.push(event);
        }
        let shown = is_selected.then_some(state);
        self.history.entry(key).or_default().push((version, shown));
        let what = match (op, is_selected) {
            (Op::Delete, _) => Outcome::Gone,
            (_, true) => Outcome::Selected,
            (_, false) => Outcome::NotSelected,
        };
        let (before, sent) = (None, 0);
        Some(Answer {
            key,
            state,
            what,
            before,
            sent,
        })
    }

    fn fresh_uid(&mut self) -> u8 {
        self.next_uid += 1;
        self.next_uid
    }

    /// Returns what a list shows.
    pub(super) fn selected(&self) -> Vec<(u8, TestState)> {
        let selected = self.objects.iter().filter(|(_, held)| held.is_selected);
        selected.map(|(key, held)| (*key, held.state)).collect()
    }

    /// Goes on from an earlier version, for a watch; returns what a list showed then, and the version.
    ///
    /// `age` is how far back, in percent of the present history.
    pub(super) fn stale(&mut self, age: u8) -> (Vec<(u8, TestState)>, u64) {
        let version = self.version - (self.version - self.base) * u64::from(age) / 100;
        let mut objects = BTreeMap::new();
        for event in self
            .past
            .iter()
            .filter(|event| event.state.version <= version)
        {
            if event.is_gone {
                objects.remove(&event.key);
            } else {
                objects.insert(event.key, event.state);
            }
        }
        let later = |event: &&Event| event.state.version > version;
        self.log = self.past.iter().filter(later).copied().collect();
        (objects.into_iter().collect(), version)
    }

    /// Returns the first version, from one on, at which the selection showed this of a key.
    pub(super) fn when(&self, key: u8, from: u64, shown: Option<TestState>) -> Option<u64> {
        let history = self.history.get(&key).map_or(&[][..], |all| all);
        let mut since = std::iter::once(&(0, None)).chain(history).peekable();
        while let Some((begin, state)) = since.next() {
            let is_over = since.peek().is_some_and(|(next, _)| *next <= from);
            if !is_over && *state == shown {
                return Some(from.max(*begin));
            }
        }
        None
    }

    /// Goes back to an earlier state, and begins to count from there.
    pub(super) fn restore(&mut self, backup: &Self) {
        let next_uid = self.next_uid;
        *self = Self {
            next_uid,
            log: Vec::new(),
            base: backup.version,
            ..backup.clone()
        };
        let mut selected = self.selected();
        selected.sort_by_key(|(_, state)| state.version);
        let exists = |(key, state)| Event {
            key,
            state,
            is_gone: false,
        };
        self.past = selected.into_iter().map(exists).collect();
        let held = |(key, state)| (key, vec![(0, Some(state))]);
        self.history = self.selected().into_iter().map(held).collect();
    }
}
