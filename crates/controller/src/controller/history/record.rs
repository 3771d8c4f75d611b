//! A run of a key, and its calls.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Causes, ObjectKey};
use tokio::time::Instant;

use crate::totals::CallOutcome;

/// One run of a key: which handlers were called, why, and with which result.
///
/// `Display` writes a line for the run and one for each call.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat::SharedController;
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
    /// Why the key was processed.
    pub causes: Arc<Causes>,
    /// When the run began.
    pub began: Instant,
    /// How long the key had been due when the run began.
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
    pub outcome: CallOutcome,
    /// The duration of the call.
    pub took: Duration,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// Whether a write was refused with 409 Conflict.
    pub is_conflict: bool,
    /// The text of the error, if the call failed or its error was ignored.
    pub error: Option<Arc<str>>,
    /// The delay from the end of this call to the next one, if one is scheduled.
    pub requeue_after: Option<Duration>,
    /// The note of a successful call: [`Outcome::with_note`](crate::Outcome::with_note).
    pub note: Option<Arc<str>>,
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
        let (handler, outcome, took) = (&self.handler, self.outcome.as_str(), self.took);
        write!(f, "{handler} {outcome} after {took:.1?}")?;
        if self.attempt > 1 {
            write!(f, " (attempt {})", self.attempt)?;
        }
        if let Some(again) = self.requeue_after {
            write!(f, ", again in {again:.1?}")?;
        }
        let said = self.error.iter().chain(&self.note);
        said.into_iter().try_for_each(|text| write!(f, ": {text}"))
    }
}
