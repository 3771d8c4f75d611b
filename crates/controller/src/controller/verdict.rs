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
use lariat_queue::{LaneId, Priority, Verdict};
use tokio::time::Instant;

use super::activity::WorkerActivity;
use super::core::ControllerCore;
use super::guard::{Again, Answer, Failure};
use super::run_log::{Ended, RunLog};
use crate::handler::Class;
use crate::lane::Lane;
use crate::payload::{Payload, Taken};

/// The retry delay if the rate limiter panics.
const BROKEN_LIMITER: Duration = Duration::from_secs(30);

/// The delay of a retry that can hardly help: until a user acts, more retries are useless.
const SLOW: Duration = Duration::from_secs(300);

/// A key that is being processed, with the verdicts on the calls that have ended.
///
/// Dropped before the [finish](Self::finish), the key goes back into the queue.
pub(super) struct Verdicts<'a> {
    core: &'a ControllerCore,
    pub(super) work: Taken,
    pub(super) log: RunLog<'a>,
    verdicts: Vec<(LaneId, Verdict<Payload>)>,
}

impl<'a> Verdicts<'a> {
    /// Begins a run; `most` is the number of its calls, as far as known.
    pub(super) fn begin(
        core: &'a ControllerCore,
        worker: &'a WorkerActivity<'a>,
        work: Taken,
        most: usize,
    ) -> Self {
        Self {
            core,
            log: RunLog::began(core, worker, &work, most),
            work,
            verdicts: Vec::with_capacity(most),
        }
    }

    /// Notes that a handler no longer wants the key.
    pub(super) fn done(&mut self, lane: &Lane) {
        self.verdicts.push((lane.id(), Verdict::Done));
    }

    /// Notes that a handler is called later.
    pub(super) fn postpone(&mut self, lane: &Lane, after: Duration) {
        let verdict = Verdict::Postponed {
            after,
            payload: self.work.payload().for_lane(lane.id()),
            priority: Some(self.work.priority()),
        };
        self.verdicts.push((lane.id(), verdict));
    }

    /// Judges a call that has ended, and tells the log.
    ///
    /// `newest` returns the newest known state, for the functions of the handler's options.
    pub(super) fn call_ended(
        &mut self,
        lane: &Lane,
        began: Instant,
        answer: Answer,
        newest: impl Fn() -> Option<Arc<CachedObject>>,
    ) {
        let mut call = EndedCall {
            core: self.core,
            work: &self.work,
            lane,
            newest: &newest,
            ended: Ended {
                outcome: answer.ended,
                attempt: self.work.failures(lane.id()).saturating_add(1),
                took: began.elapsed(),
                failure: None,
                is_final: false,
                is_exhausted: false,
                again_in: None,
                given_up: None,
                note: None,
            },
        };
        let verdict = call.judge(answer.result);
        let ended = call.ended;
        self.log.call_ended(lane, &self.work, ended);
        self.verdicts.push((lane.id(), verdict));
    }

    /// Ends the run: tells log and queue; returns the next key, which the queue gives under the same lock.
    pub(super) fn finish(self) -> Option<Taken> {
        self.log.finish(&self.work);
        self.work.done_and_try_get(self.verdicts)
    }
}

/// A call of a handler that has ended.
struct EndedCall<'a> {
    core: &'a ControllerCore,
    work: &'a Taken,
    lane: &'a Lane,
    newest: &'a dyn Fn() -> Option<Arc<CachedObject>>,
    /// For the log; completed by the verdict.
    ended: Ended,
}

impl EndedCall<'_> {
    /// Returns the verdict for the queue, and completes the end of the call for the log.
    fn judge(&mut self, result: Result<Again, Failure>) -> Verdict<Payload> {
        let verdict = match result {
            Ok(again) => {
                (self.ended.again_in, self.ended.note) = (will_come(again.after), again.note);
                requeued(self.lane, self.ended.again_in, again.priority)
            }
            Err(failure) => self.failed(failure),
        };
        self.with_later_deletions(verdict)
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

    /// Judges a failure.
    fn failed(&mut self, failure: Failure) -> Verdict<Payload> {
        let (lane, failures) = (self.lane, self.ended.attempt);
        let (is_uncounted, priority) = (failure.is_uncounted, failure.priority);
        if failure.class == Class::Ignored {
            self.ended.again_in = will_come(failure.after);
            self.ended.failure = Some(failure);
            return requeued(lane, self.ended.again_in, priority);
        }
        let is_terminal = failure.class == Class::Terminal;
        // Neither an uncounted failure nor a handler that was not called exhausts the retries.
        let may_exhaust = !is_terminal && !is_uncounted && !failure.is_uncalled;
        let is_exhausted = may_exhaust && lane.is_exhausted(failures);
        let is_final = is_exhausted || is_terminal;
        let again_in = if is_final {
            // For the queue, the lane is done: its failures in a row are reset.
            lane.after_final_failure((self.newest)().as_ref())
        } else {
            Some(self.retry_in(&failure))
        };
        let again_in = will_come(again_in);
        let is_final = is_final || again_in.is_none();
        // Without an object there is nothing to give up: a deleted object does not change any more.
        let given_up = again_in.is_none().then(self.newest).flatten();
        self.ended.given_up = given_up.map(|object| object.uid().clone());
        self.ended.failure = Some(failure);
        (self.ended.is_final, self.ended.is_exhausted) = (is_final, is_exhausted);
        self.ended.again_in = again_in;
        let Some(after) = again_in.filter(|_| !is_final) else {
            return requeued(lane, again_in, priority);
        };
        let handler = Arc::clone(lane.name());
        let cause = Cause::Retry { handler, failures };
        let payload = self.work.payload().for_retry(lane.id(), cause);
        // An uncounted failure leaves the failures in a row as they are; any other adds one.
        if is_uncounted {
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
        }
    }

    /// Returns the delay before the retry.
    ///
    /// It is the delay that the error sets; or else the backoff, or the delay of slow retries, but at least the delay
    /// that the API server asks for. The handler's [`retry_within`](crate::HandlerOptions::retry_within) may shorten
    /// it, but not below what the API server asks for.
    fn retry_in(&self, failure: &Failure) -> Duration {
        let least = failure.not_before.unwrap_or_default();
        let usual = || {
            if failure.is_slow {
                self.slow_retry()
            } else {
                self.backoff(self.ended.attempt)
            }
        };
        let wanted = failure.after.unwrap_or_else(|| usual().max(least));
        match self.lane.longest_retry(self.newest) {
            Some(most) => wanted.min(most.max(least)),
            None => wanted,
        }
    }

    /// Returns the delay of a slow retry: like a final failure, but never without a next call.
    fn slow_retry(&self) -> Duration {
        let period = self.lane.after_final_failure((self.newest)().as_ref());
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
}

/// Returns a delay, unless it overflows the clock, which means never.
fn will_come(after: Option<Duration>) -> Option<Duration> {
    after.filter(|after| Instant::now().checked_add(*after).is_some())
}

/// Returns the verdict on a success: done, or again if a delay is given.
fn requeued(lane: &Lane, after: Option<Duration>, priority: Option<Priority>) -> Verdict<Payload> {
    let Some(after) = after else {
        return Verdict::Done;
    };
    let payload = Payload::from(Cause::Requeued {
        handler: Arc::clone(lane.name()),
        due: (Instant::now() + after).into_std(),
    });
    Verdict::Again {
        after,
        priority,
        payload,
    }
}
