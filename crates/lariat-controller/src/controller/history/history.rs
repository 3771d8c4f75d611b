//! The last runs of each key.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Causes, ObjectKey};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::older;
use super::older::Older;
use crate::totals::Ended;

/// One run of a key: who was called, why, and what came of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunRecord {
    /// The number of the run, unique in its factory.
    pub run: u64,
    /// The key.
    pub key: ObjectKey,
    /// Why it ran.
    pub causes: Arc<Causes>,
    /// When it began.
    pub began: Instant,
    /// How long the key had been due before.
    pub waited: Duration,
    /// How long all handlers took together.
    pub took: Duration,
    /// The handlers that were called, in their order.
    pub calls: Vec<CallRecord>,
}

/// One call of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallRecord {
    /// The handler.
    pub handler: Arc<str>,
    /// How it ended.
    pub ended: Ended,
    /// How long it took.
    pub took: Duration,
    /// Which attempt it was.
    pub attempt: u32,
    /// Whether the API server refused a write because the object had changed since.
    pub is_conflict: bool,
    /// What went wrong, if anything did.
    pub error: Option<Arc<str>>,
    /// When it is called again by itself, counted from its end.
    pub again: Option<Duration>,
}

/// The last runs of a controller, and the last of each key that ran lately.
pub(crate) struct History {
    limit: usize,
    runs: Mutex<Runs>,
}

#[derive(Default)]
struct Runs {
    /// The last of the kind.
    last: VecDeque<RunRecord>,
    /// Of those before them, the last of each key.
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
        // Freed behind the lock.
        drop(gone);
    }

    /// Returns how many runs are remembered, and how many at most: the last of the kind, and of those before them the
    /// last of each key.
    pub(crate) fn remembered(&self) -> [(usize, usize); 2] {
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

    /// Returns the runs of a key that are remembered, oldest first.
    pub(crate) fn of(&self, key: &ObjectKey) -> Vec<RunRecord> {
        let runs = self.runs.lock();
        let last = runs.last.iter().filter(|run| run.key == *key);
        runs.older.of(key).chain(last).cloned().collect()
    }
}

impl fmt::Display for RunRecord {
    /// Writes a line for the run and one for each call.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, key, took, .. } = self;
        let ago = self.began.elapsed();
        let waited = self.waited;
        write!(
            f,
            "run {run} of {key}, {ago:.1?} ago, due for {waited:.1?}, took {took:.1?}: "
        )?;
        write!(f, "{}", self.causes)?;
        self.calls
            .iter()
            .try_for_each(|call| write!(f, "\n  {call}"))
    }
}

impl fmt::Display for CallRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (handler, ended, took) = (&self.handler, self.ended.as_str(), self.took);
        write!(f, "{handler} {ended} after {took:.1?}")?;
        if self.attempt > 1 {
            write!(f, " (attempt {})", self.attempt)?;
        }
        if let Some(again) = self.again {
            write!(f, ", again in {again:.1?}")?;
        }
        self.error
            .iter()
            .try_for_each(|error| write!(f, ": {error}"))
    }
}
