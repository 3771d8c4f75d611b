//! The last runs of a kind, and a few older runs of each key.

use std::collections::VecDeque;
use std::sync::Arc;

use lariat_core::ObjectKey;
use parking_lot::Mutex;

use super::older;
use super::older::Older;
use super::record::RunRecord;

/// The history of a controller's runs.
pub(crate) struct History {
    limit: usize,
    runs: Mutex<Runs>,
}

#[derive(Default)]
struct Runs {
    /// The last runs of the kind, oldest first.
    last: VecDeque<RunRecord>,
    /// Runs that are no longer in `last`: the last few of each key.
    older: Older,
}

impl History {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            runs: Mutex::default(),
        }
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.limit > 0
    }

    pub(crate) fn push(&self, run: RunRecord) {
        let mut runs = self.runs.lock();
        let Runs { last, older } = &mut *runs;
        let oldest = (last.len() >= self.limit).then(|| last.pop_front());
        last.push_back(run);
        let gone = oldest.flatten().map(|oldest| older.push(oldest));
        drop(runs);
        // Freed after unlocking: a record owns strings and causes.
        drop(gone);
    }

    /// Forgets all runs.
    pub(crate) fn clear(&self) {
        let before = std::mem::take(&mut *self.runs.lock());
        drop(before);
    }

    /// Returns the number and the bound of the last runs, and of the older ones.
    pub(crate) fn table_sizes(&self) -> [(usize, usize); 2] {
        let runs = self.runs.lock();
        [
            (runs.last.len(), self.limit),
            (runs.older.len(), older::RUNS),
        ]
    }

    /// Returns the last runs of the kind, oldest first.
    pub(crate) fn all(&self) -> Vec<RunRecord> {
        self.runs.lock().last.iter().cloned().collect()
    }

    /// Returns the last error of a handler for a key, if its run is remembered.
    pub(crate) fn last_error(&self, key: &ObjectKey, handler: &Arc<str>) -> Option<Arc<str>> {
        let error = |run: &RunRecord| {
            let mut calls = run.calls.iter();
            calls
                .find(|call| Arc::ptr_eq(&call.handler, handler))?
                .error
                .clone()
        };
        let runs = self.runs.lock();
        let mut last = runs.last.iter().rev().filter(|run| run.key == *key);
        let recent = last.find_map(error);
        // The older runs are oldest first, so the last one is the newest.
        recent.or_else(|| runs.older.of(key).filter_map(error).last())
    }

    /// Returns the remembered runs of a key, oldest first.
    pub(crate) fn of(&self, key: &ObjectKey) -> Vec<RunRecord> {
        let runs = self.runs.lock();
        let last = runs.last.iter().filter(|run| run.key == *key);
        runs.older.of(key).chain(last).cloned().collect()
    }
}
