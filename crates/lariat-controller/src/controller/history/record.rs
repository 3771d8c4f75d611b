//! A run of a key, and its calls.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Causes, ObjectKey};
use tokio::time::Instant;

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
