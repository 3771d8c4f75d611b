//! The history of runs: what ran, why, and with which result.

mod older;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Causes, ObjectKey};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::totals::Ended;
use older::Older;

/// One run of a key: which handlers were called, why, and with which result.
///
/// Its `Display` form is a line for the run and one for each call.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat_controller::SharedController;
///
/// # fn example(pods: &SharedController<Pod>) {
/// let slow = pods.history().into_iter().max_by_key(|run| run.took);
/// if let Some(run) = slow {
///     println!("{run}");
/// }
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunRecord {
    /// The number of the run, unique within its factory.
    pub run: u64,
    /// The key.
    pub key: ObjectKey,
    /// Why the key ran.
    pub causes: Arc<Causes>,
    /// When the run began.
    pub began: Instant,
    /// How long the key had been due before the run.
    pub waited: Duration,
    /// The duration of the run, all handlers together.
    pub took: Duration,
    /// The calls, in the order of the handlers' registration.
    pub calls: Vec<CallRecord>,
}

/// One call of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallRecord {
    /// The name of the handler.
    pub handler: Arc<str>,
    /// How the call ended.
    pub ended: Ended,
    /// The duration of the call.
    pub took: Duration,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// Whether a write was refused with 409 Conflict.
    pub is_conflict: bool,
    /// The text of the error, if the call failed.
    pub error: Option<Arc<str>>,
    /// The delay until the handler is called again, from the end of this call.
    pub again: Option<Duration>,
}

/// The last runs of a controller, and older runs of recent keys.
pub(crate) struct History {
    limit: usize,
    runs: Mutex<Runs>,
}

#[derive(Default)]
struct Runs {
    /// The last runs of the kind, oldest first.
    last: VecDeque<RunRecord>,
    /// The runs before those, the last few of each key.
    older: Older,
}

impl History {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            runs: Mutex::default(),
        }
    }

    pub(super) fn is_kept(&self) -> bool {
        self.limit > 0
    }

    pub(super) fn push(&self, run: RunRecord) {
        let mut runs = self.runs.lock();
        let Runs { last, older } = &mut *runs;
        let oldest = (last.len() >= self.limit).then(|| last.pop_front());
        last.push_back(run);
        let gone = oldest.flatten().map(|oldest| older.push(oldest));
        drop(runs);
        // Freed after unlocking.
        drop(gone);
    }

    /// Returns number and bound of the last runs, and of the older ones.
    pub(super) fn remembered(&self) -> [(usize, usize); 2] {
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

    /// Returns the remembered runs of a key, oldest first.
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
