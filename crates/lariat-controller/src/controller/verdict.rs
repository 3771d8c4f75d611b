//! The verdict on a call: whether and when the handler is called again for the key.
//!
//! | result of the call | verdict |
//! |---|---|
//! | success, ignored error | done, or again if it asks for a requeue |
//! | terminal error, retries exhausted | given up, or again if [`requeue_final`] returns a delay |
//! | other error, panic, timeout | failed: retried after the backoff, and the failures in a row grow |
//! | the same, if the error is uncounted | postponed: retried, and the failures in a row stay |
//!
//! If further deletions wait for the handler, "done" becomes "again".
//!
//! [`requeue_final`]: crate::HandlerOptions::requeue_final

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::CachedObject;
use lariat_core::Cause;
use lariat_queue::{Priority, Verdict};
use tokio::time::Instant;

use super::core::ControllerCore;
use super::guard::{Again, Failure};
use super::history::CallRecord;
use crate::failures::Failed;
use crate::handler::Class;
use crate::lane::Lane;
use crate::payload::{Payload, Taken};
use crate::totals::CallOutcome;

/// The retry delay if the rate limiter panics.
const BROKEN_LIMITER: Duration = Duration::from_secs(30);

/// The delay of a retry that can hardly help: until a user acts, more retries are useless.
const SLOW: Duration = Duration::from_secs(300);

/// How a call ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report {
    pub(super) ended: CallOutcome,
    pub(super) attempt: u32,
    pub(super) took: Duration,
    /// Whether a write was refused with 409 Conflict.
    pub(super) is_conflict: bool,
}

impl Report {
    /// Returns the report as a record for the history.
    pub(super) fn record(
        self,
        lane: &Lane,
        error: Option<Arc<str>>,
        again: Option<Duration>,
    ) -> CallRecord {
        CallRecord {
            handler: Arc::clone(lane.name()),
            outcome: self.ended,
            took: self.took,
            attempt: self.attempt,
            is_conflict: self.is_conflict,
            error,
            requeue_after: again,
            note: None,
        }
    }
}

/// A call of a handler that has ended.
pub(super) struct EndedCall<'a> {
    pub(super) core: &'a ControllerCore,
    pub(super) work: &'a Taken,
    pub(super) lane: &'a Lane,
    pub(super) report: Report,
}

impl EndedCall<'_> {
    /// Returns the verdict for the queue, and the record for the history.
    ///
    /// A failure is logged. `newest` returns the newest known state, for the functions of the handler's options.
    pub(super) fn judge(
        &self,
        result: Result<Again, Failure>,
        newest: impl Fn() -> Option<Arc<CachedObject>>,
    ) -> (Verdict<Payload>, CallRecord) {
        let again = result.as_ref().ok().and_then(|again| again.after);
        let is_immediate = again == Some(Duration::ZERO);
        let Report {
            ended,
            attempt,
            took,
            ..
        } = self.report;
        self.lane.count(ended, attempt, took, is_immediate);
        let (verdict, record) = match result {
            Ok(again) => self.answered(&again),
            Err(failure) => self.failed(failure, newest),
        };
        (self.with_later_deletions(verdict), record)
    }

    /// Requeues for the next deletion, if the handler has handled one of several.
    fn with_later_deletions(&self, verdict: Verdict<Payload>) -> Verdict<Payload> {
        // A failed lane keeps all its deletions in the payload of the retry.
        let is_done = matches!(verdict, Verdict::Done | Verdict::Again { .. });
        let payload = self.work.payload();
        match payload.later_deletions(self.lane.id()).filter(|_| is_done) {
            // A requeue that the handler asked for gives way: the call for the last deletion decides about it.
            Some(payload) => Verdict::Again {
                after: self.delay_of_deletion(payload.deletion_tries(self.lane.id())),
                payload,
                priority: None,
            },
            None => verdict,
        }
    }

    /// Returns the delay before a deletion is handled.
    ///
    /// The success of another deletion resets the lane's failures in the queue. So the backoff follows the number of
    /// failed calls for this deletion.
    fn delay_of_deletion(&self, tries: u32) -> Duration {
        if tries == 0 {
            return Duration::ZERO;
        }
        self.backoff(tries)
    }

    /// Judges a success.
    fn answered(&self, again: &Again) -> (Verdict<Payload>, CallRecord) {
        self.settled();
        let record = CallRecord {
            note: again.note.clone(),
            ..self.report.record(self.lane, None, again.after)
        };
        (requeued(self.lane, again.after, again.priority), record)
    }

    /// Judges a failure.
    fn failed(
        &self,
        failure: Failure,
        newest: impl Fn() -> Option<Arc<CachedObject>>,
    ) -> (Verdict<Payload>, CallRecord) {
        let (lane, report) = (self.lane, self.report);
        let (failures, is_uncounted, priority) =
            (report.attempt, failure.is_uncounted, failure.priority);
        // Counts as a success everywhere: the failures in a row are reset, and a recovery is logged.
        if failure.class == Class::Ignored {
            self.log_ignored(&failure.text);
            self.settled();
            let record = report.record(lane, Some(failure.text), failure.after);
            return (requeued(lane, failure.after, priority), record);
        }
        let is_terminal = failure.class == Class::Terminal;
        // An uncounted failure never exhausts the retries.
        let exhausted = !is_terminal && !is_uncounted && lane.is_exhausted(failures);
        if exhausted {
            lane.count_exhausted();
        }
        let is_final = exhausted || is_terminal;
        let again_in = if is_final {
            // For the queue, the lane is done: its failures in a row are reset.
            lane.after_final_failure(newest().as_ref())
        } else {
            Some(self.retry_in(&failure, &newest))
        };
        // Without an object there is nothing to give up: a deleted object does not change any more.
        let given_up = again_in.is_none().then(&newest).flatten();
        let given_up = given_up.map(|object| object.uid().clone());
        lane.given_up().note(self.work.key(), given_up);
        let text = self.log_failed(is_final, again_in, failure);
        let record = report.record(lane, Some(text), again_in);
        let Some(after) = again_in.filter(|_| !is_final) else {
            return (requeued(lane, again_in, priority), record);
        };
        let handler = Arc::clone(lane.name());
        let cause = Cause::Retry { handler, failures };
        let payload = self.work.payload();
        let payload = payload.for_retry(lane.id(), cause);
        // An uncounted failure leaves the failures in a row as they are; any other adds one.
        let verdict = if is_uncounted {
            Verdict::Postponed {
                after,
                payload,
                priority,
            }
        } else {
            Verdict::Failed {
                after,
                payload,
                priority,
            }
        };
        (verdict, record)
    }

    /// Records that the handler neither fails for the key any more nor has given it up.
    fn settled(&self) {
        let key = self.work.key();
        if self.lane.failures().succeeded(key) {
            self.core.lanes().notify();
        }
        self.lane.given_up().note(key, None);
    }

    /// Returns the delay before the retry.
    ///
    /// It is the delay that the error sets; or else the backoff, or the delay of slow retries, but at least the delay
    /// that the API server asks for. The handler's [`retry_within`](crate::HandlerOptions::retry_within) may shorten
    /// it, but not below what the API server asks for.
    fn retry_in(
        &self,
        failure: &Failure,
        newest: impl Fn() -> Option<Arc<CachedObject>>,
    ) -> Duration {
        let least = failure.not_before.unwrap_or_default();
        let usual = || {
            if failure.is_slow {
                self.slow_retry(newest().as_ref())
            } else {
                self.backoff(self.report.attempt)
            }
        };
        let wanted = failure.after.unwrap_or_else(|| usual().max(least));
        match self.lane.longest_retry(newest) {
            Some(most) => wanted.min(most.max(least)),
            None => wanted,
        }
    }

    /// Returns the delay of a slow retry: like a final failure, but never without a next call.
    fn slow_retry(&self, newest: Option<&Arc<CachedObject>>) -> Duration {
        let period = self.lane.after_final_failure(newest);
        period.map_or(SLOW, |period| period.min(SLOW))
    }

    /// Returns the limiter's delay. The limiter may be the user's, so a panic is caught.
    fn backoff(&self, failures: u32) -> Duration {
        let lane = self.lane;
        let ask = || {
            lane.backoff(failures)
                .unwrap_or_else(|| self.work.backoff(lane.id()))
        };
        catch_unwind(AssertUnwindSafe(ask)).unwrap_or_else(|_| {
            let (kind, handler) = (self.core.gvk(), lane.name());
            tracing::error!(%kind, %handler, "rate limiter panicked");
            BROKEN_LIMITER
        })
    }

    fn log_ignored(&self, error: &str) {
        let (kind, key, handler) = (self.core.gvk(), self.work.key(), self.lane.name());
        tracing::debug!(%kind, %key, %handler, error, "handler error ignored");
    }

    /// Logs a failure; returns its text.
    fn log_failed(
        &self,
        is_final: bool,
        again_in: Option<Duration>,
        failure: Failure,
    ) -> Arc<str> {
        let (kind, key, handler) = (self.core.gvk(), self.work.key(), self.lane.name());
        let (error, attempt) = (failure.text, self.report.attempt);
        // Conflicts are normal with optimistic concurrency, and the retry sees the new state. No warning is due.
        if failure.is_conflict && !is_final {
            let retry_in = again_in.map(tracing::field::debug);
            tracing::debug!(%kind, %key, %handler, %error, attempt, retry_in, "conflict, retrying");
            return error;
        }
        let is_sooner = self.lane.failures().failed(&Failed {
            kind,
            handler,
            key,
            error: &error,
            attempt,
            is_final,
            again_in,
            panicked: failure.panicked,
        });
        if is_sooner {
            self.core.lanes().notify();
        }
        error
    }
}

/// Returns the verdict on a success: done, or again if a delay is given.
fn requeued(lane: &Lane, after: Option<Duration>, priority: Option<Priority>) -> Verdict<Payload> {
    let Some(after) = after else {
        return Verdict::Done;
    };
    // A delay that overflows the clock means never, so it is no cause of a run.
    let payload = Instant::now().checked_add(after).map(|due| {
        Payload::from(Cause::Requeued {
            handler: Arc::clone(lane.name()),
            due: due.into_std(),
        })
    });
    Verdict::Again {
        after,
        priority,
        payload: payload.unwrap_or_default(),
    }
}
