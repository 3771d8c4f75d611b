//! The log of a run: the one place that is told when a run begins, and how each of its calls ends.
//!
//! It passes that on to all that watch runs: the worker's activity, the hot loop detector, the totals, failures and
//! given up keys of the lane, the history, and `tracing`. Nothing in it decides when a handler is called again.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Cause, Causes, Uid};
use tokio::time::Instant;

use super::activity::WorkerActivity;
use super::core::ControllerCore;
use super::guard::Failure;
use super::history::{CallRecord, RunRecord};
use crate::failures::Failed;
use crate::lane::Lane;
use crate::payload::Taken;
use crate::totals::CallOutcome;

/// The log of a run that has begun.
pub(super) struct RunLog<'a> {
    core: &'a ControllerCore,
    worker: &'a WorkerActivity<'a>,
    pub(super) number: u64,
    pub(super) causes: Arc<Causes>,
    began: Instant,
    waited: Duration,
    /// Whether the run is part of a hot loop by own writes or enqueues.
    is_looping: bool,
    calls: Vec<CallRecord>,
}

/// How a call ended, and what follows.
pub(super) struct Ended {
    pub(super) outcome: CallOutcome,
    pub(super) attempt: u32,
    pub(super) took: Duration,
    /// The error; also if it was ignored.
    pub(super) failure: Option<Failure>,
    /// Whether the failure is not retried.
    pub(super) is_final: bool,
    /// Whether it is not retried because the retries are exhausted.
    pub(super) is_exhausted: bool,
    /// The delay until the handler is called again, if it is.
    pub(super) again_in: Option<Duration>,
    /// The object that the handler has given up.
    pub(super) given_up: Option<Uid>,
    /// The handler's note for the history.
    pub(super) note: Option<Arc<str>>,
}

impl<'a> RunLog<'a> {
    /// Begins the log of a run; `most` is the number of its calls, as far as known.
    pub(super) fn began(
        core: &'a ControllerCore,
        worker: &'a WorkerActivity<'a>,
        work: &Taken,
        most: usize,
    ) -> Self {
        let log = Self {
            core,
            worker,
            number: core.next_run(),
            causes: Arc::new(work.payload().causes_by_now()),
            began: Instant::now(),
            waited: work.waited(),
            is_looping: core.detector().began(work.key(), &work.payload().causes),
            calls: Vec::with_capacity(most),
        };
        log.dequeued(work);
        log
    }

    fn dequeued(&self, work: &Taken) {
        let (kind, key, run) = (self.core.gvk(), work.key(), self.number);
        let (causes, priority) = (&self.causes, work.priority().as_str());
        let waited = format_args!("{:.1?}", self.waited);
        tracing::trace!(target: "lariat::queue", %kind, %key, run, %causes, priority, %waited, "dequeued");
    }

    /// Logs that a handler is called now.
    pub(super) fn calling(&self, lane: &Lane, work: &Taken, attempt: u32) {
        let (kind, key, handler) = (self.core.gvk(), work.key(), lane.name());
        let run = self.number;
        tracing::trace!(target: "lariat::run", %kind, %key, %handler, run, attempt, "calling");
    }

    /// Records that a handler is called next.
    pub(super) fn calls(&self, lane: &Lane) {
        self.worker.calls(lane.name(), lane.is_limited());
    }

    /// Returns how long a handler's call waits because the key is in a hot loop; none if it may begin.
    pub(super) fn hot_loop_wait(&self, lane: &Lane, work: &Taken) -> Option<Duration> {
        // Deletions are not delayed.
        let delay = lane.hot_loop_delay().filter(|_| self.is_looping)?;
        let is_deletion = work.payload().deleted(lane.id()).is_some();
        let wait = || self.core.detector().wait(work.key(), lane.id(), delay);
        (!is_deletion).then(wait).flatten()
    }

    /// Records that a call begins; returns when.
    pub(super) fn call_began(&self, lane: &Lane, failures: u32) -> Instant {
        let now = Instant::now();
        // The lag is the time from a change to the call. A retry and a requested call do not react to a change. The
        // time that earlier handlers of this run took counts.
        if failures == 0 && self.causes.iter().any(is_change) {
            lane.count_lag(self.waited + (now - self.began));
        }
        now
    }

    /// Records how a call ended.
    pub(super) fn call_ended(&mut self, lane: &Lane, work: &Taken, ended: Ended) {
        let Ended {
            outcome,
            attempt,
            took,
            again_in,
            ..
        } = ended;
        let is_immediate = outcome == CallOutcome::Requeued && again_in == Some(Duration::ZERO);
        lane.count(outcome, attempt, took, is_immediate);
        if ended.is_exhausted {
            lane.count_exhausted();
        }
        let record = CallRecord {
            handler: Arc::clone(lane.name()),
            outcome,
            took,
            attempt,
            is_conflict: ended.failure.as_ref().is_some_and(|of| of.is_conflict),
            error: ended.failure.as_ref().map(|of| Arc::clone(&of.text)),
            requeue_after: again_in,
            note: ended.note.clone(),
        };
        self.called(work, &record);
        self.calls.push(record);
        lane.given_up().note(work.key(), ended.given_up.clone());
        if self.log(lane, work, ended) {
            // A line is due earlier than before, so the supervisor sets its timer anew.
            self.core.lanes().notify();
        }
    }

    fn called(&self, work: &Taken, call: &CallRecord) {
        let (kind, key, handler) = (self.core.gvk(), work.key(), &call.handler);
        let (run, attempt) = (self.number, call.attempt);
        let took = format_args!("{:.1?}", call.took);
        let (outcome, error) = (call.outcome.as_str(), call.error.as_deref());
        let again = call.requeue_after.map(tracing::field::debug);
        tracing::trace!(target: "lariat::run", %kind, %key, %handler, run, attempt, outcome, error, %took, again, "called");
    }

    /// Logs how a call ended; returns whether a line about failures is due earlier than before.
    fn log(&self, lane: &Lane, work: &Taken, ended: Ended) -> bool {
        let (kind, key, handler) = (self.core.gvk(), work.key(), lane.name());
        let Some(failure) = ended.failure else {
            return lane.failures().succeeded(key);
        };
        let error = &failure.text;
        // Counts as a success everywhere: the failures in a row are reset, and a recovery is logged.
        if !ended.outcome.is_failure() {
            tracing::debug!(%kind, %key, %handler, %error, "handler error ignored");
            return lane.failures().succeeded(key);
        }
        let (attempt, is_final, again_in) = (ended.attempt, ended.is_final, ended.again_in);
        // Conflicts are normal with optimistic concurrency, and the retry sees the new state. No warning is due.
        if failure.is_conflict && !is_final {
            let retry_in = again_in.map(tracing::field::debug);
            tracing::debug!(%kind, %key, %handler, %error, attempt, retry_in, "conflict, retrying");
            return false;
        }
        lane.failures().failed(&Failed {
            kind,
            handler,
            key,
            error,
            attempt,
            is_final,
            again_in,
            panicked: failure.panicked,
        })
    }

    /// Records the end of the run, also in the history. A run that is dropped is not in it.
    pub(super) fn finish(self, work: &Taken) {
        self.worker.end();
        if self.core.history().is_kept() && !self.calls.is_empty() {
            self.core.history().push(RunRecord {
                run: self.number,
                key: work.key().clone(),
                causes: self.causes,
                began: self.began,
                waited: self.waited,
                took: self.began.elapsed(),
                calls: self.calls,
            });
        }
    }
}

/// Returns whether a cause is a change, rather than a request or a retry.
fn is_change(cause: &Cause) -> bool {
    matches!(
        cause,
        Cause::Added { .. }
            | Cause::Updated { .. }
            | Cause::Deleted { .. }
            | Cause::Wrote { .. }
            | Cause::Related { .. }
    )
}
