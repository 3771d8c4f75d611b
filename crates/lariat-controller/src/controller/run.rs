//! One run: the handlers that are due for one key, one after the other.

use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};
use std::time::Duration;

use lariat_cache::{CachedObject, LoadError};
use lariat_core::{Cause, Causes};
use lariat_queue::{Add, LaneId, Priority, Verdict, Work};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::core::ControllerCore;
use super::guard::{Again, Answer, Failure, guarded};
use super::history::{CallRecord, RunRecord};
use super::report::Report;
use crate::current::Caller;
use crate::handler::{Call, Class, Decoded, Gated};
use crate::lane::{Admission, Admitted, Lane, LaneList, Waiting};
use crate::payload::Payload;

/// How long a handler waits whose rate limiter panics.
const BROKEN_LIMITER: Duration = Duration::from_secs(30);

type Taken = Work<lariat_core::ObjectKey, Payload>;

/// Counts runs.
static RUNS: AtomicU64 = AtomicU64::new(1);

/// Calls the handlers that are due and gives the key back with what became of them.
pub(super) async fn run(
    core: &Arc<ControllerCore>,
    work: Taken,
    stopping: &Arc<CancellationToken>,
) {
    let lanes = core.lanes().list();
    let judgement = core.watchman().judge(work.key(), work.payload());
    if let Some(pause) = judgement.wait {
        return put_off(core, &lanes, work, pause);
    }
    // A change is usually for all lanes, a retry for one.
    let due = if work.lanes().is_all() {
        lanes.len()
    } else {
        1
    };
    let mut runner = Runner {
        core,
        number: RUNS.fetch_add(1, Atomic::Relaxed),
        causes: Arc::new(work.payload().causes.clone()),
        work,
        chain: judgement.chain,
        began: Instant::now(),
        stopping,
        decoded: Decoded::default(),
        returned: None,
        calls: Vec::with_capacity(due),
        requeued: Vec::new(),
    };
    let mut verdicts = Vec::with_capacity(due);
    for lane in lanes.iter() {
        if !runner.work.lanes().contains(lane.id()) || !runner.admits(lane).await {
            continue;
        }
        let _admitted = Admitted::new(lane, core);
        // A handler that is being deregistered is not called any more.
        if let Some(_inside) = lane.enter() {
            verdicts.push((lane.id(), runner.call(lane).await));
        }
    }
    runner.end(verdicts);
}

/// Lets a key that goes round in circles wait.
fn put_off(core: &Arc<ControllerCore>, lanes: &LaneList, work: Taken, pause: Duration) {
    for lane in lanes.iter() {
        lane.pass(work.key(), core);
    }
    let add = Add::after(pause)
        .lanes(work.lanes().clone())
        .priority(work.priority())
        .payload(work.payload().clone());
    core.queue().add(work.key().clone(), add);
    // Without verdicts, so that failures stay as they are.
    work.finish([]);
}

struct Runner<'a> {
    core: &'a Arc<ControllerCore>,
    work: Taken,
    number: u64,
    causes: Arc<Causes>,
    /// How many runs in a row, each caused by the write of the one before, led to this one.
    chain: u32,
    began: Instant,
    stopping: &'a Arc<CancellationToken>,
    decoded: Decoded,
    /// What a handler of this run returned as the newest state.
    returned: Option<Arc<CachedObject>>,
    calls: Vec<CallRecord>,
    /// Which of the calls failed for good, and when they are made again all the same.
    requeued: Vec<(usize, Duration)>,
}

impl Runner<'_> {
    /// Returns whether the limit of a handler lets the call in; otherwise its key waits in line.
    async fn admits(&self, lane: &Lane) -> bool {
        let Some(limit) = lane.limit() else {
            return true;
        };
        let key = self.work.key();
        let waiting = || Waiting {
            key: key.clone(),
            payload: self.work.payload().for_lane(lane.id()),
            priority: self.work.priority(),
            failures: self.work.failures(lane.id()),
        };
        match limit.admit(key, waiting) {
            Admission::Entered => true,
            Admission::InLine => false,
            Admission::Wait => {
                limit.enter(key).await;
                true
            }
        }
    }

    /// Calls one handler.
    async fn call(&mut self, lane: &Arc<Lane>) -> Verdict<Payload> {
        let failures = self.work.failures(lane.id());
        let began = Instant::now();
        if failures == 0 && self.causes.iter().any(is_change) {
            lane.count_lag(self.work.waited() + (began - self.began));
        }
        let answer = match self.object_for(lane).await {
            // It ended while the object was fetched.
            _ if lane.is_over() => return Verdict::Done,
            Ok(object) => {
                let call = self.make_call(lane, object, failures);
                let object = call.object.as_ref().or(call.deleted.as_ref());
                let gated = Gated::of(lane, &call.key, object);
                let caller =
                    Caller::new(self.core.gvk().clone(), Arc::clone(lane.name()), self.chain)
                        .gated(gated);
                guarded(call, caller).await
            }
            Err(error) => Answer::failed(&error.into()),
        };
        self.returned = answer.updated.or(self.returned.take());
        let report = Report {
            ended: answer.ended,
            attempt: failures.saturating_add(1),
            took: began.elapsed(),
            is_conflict: answer
                .result
                .as_ref()
                .is_err_and(|failure| failure.is_conflict),
        };
        let again = answer.result.as_ref().ok().and_then(|again| again.after);
        let at_once = again == Some(Duration::ZERO);
        lane.count(report.ended, report.attempt, report.took, at_once);
        match answer.result {
            Ok(again) => self.answered(lane, report, &again),
            Err(failure) => self.failed(lane, report, failure),
        }
    }

    fn make_call(
        &self,
        lane: &Arc<Lane>,
        object: Option<Arc<CachedObject>>,
        failures: u32,
    ) -> Call {
        Call {
            core: Arc::clone(self.core),
            lane: Arc::clone(lane),
            run: self.number,
            key: self.work.key().clone(),
            object,
            deleted: self.work.payload().deleted(lane.id()).cloned(),
            decoded: self.decoded.clone(),
            causes: Arc::clone(&self.causes),
            failures,
            stopping: Arc::clone(self.stopping),
        }
    }

    /// Returns the newest state that is known: the cache's, or what a handler of this run returned.
    fn newest(&self) -> Option<Arc<CachedObject>> {
        let cached = self.core.informer().store().get(self.work.key());
        let Some(returned) = &self.returned else {
            return cached;
        };
        match cached {
            Some(cached) if is_better(&cached, returned) => Some(cached),
            // The answer to a write that removed the last finalizer.
            None if returned.is_deleting() && returned.finalizers().next().is_none() => None,
            _ => Some(Arc::clone(returned)),
        }
    }

    /// Returns the newest state as a handler needs it: with its content, even if only metadata is cached.
    async fn object_for(&mut self, lane: &Lane) -> Result<Option<Arc<CachedObject>>, LoadError> {
        let newest = self.newest();
        let lacks_content = |object: &Arc<CachedObject>| !object.has_content();
        if !lane.handler().needs_content() || !newest.as_ref().is_some_and(lacks_content) {
            return Ok(newest);
        }
        let loaded = self.core.informer().load(self.work.key()).await?;
        // The handlers after it need not fetch it again.
        self.returned.clone_from(&loaded);
        Ok(loaded)
    }

    fn answered(&mut self, lane: &Lane, report: Report, again: &Again) -> Verdict<Payload> {
        self.calls.push(report.record(lane, None, again.after));
        requeued(lane, again.after, again.priority)
    }

    fn failed(&mut self, lane: &Lane, report: Report, failure: Failure) -> Verdict<Payload> {
        let Failure {
            text,
            class,
            after,
            is_held,
            priority,
            ..
        } = failure;
        let failures = report.attempt;
        if class == Class::Ignored {
            let (kind, key, handler) = (self.core.gvk(), self.work.key(), lane.name());
            tracing::debug!(%kind, %key, %handler, error = %text, "an error is ignored");
            self.calls.push(report.record(lane, Some(text), after));
            return requeued(lane, after, priority);
        }
        let given_up = class != Class::Terminal && !is_held && lane.gives_up(failures);
        if given_up {
            lane.count_given_up();
        }
        if given_up || class == Class::Terminal {
            let after = lane.after_giving_up(self.newest().as_deref());
            self.log_final(lane, &text, (failures, after));
            self.requeued
                .extend(after.map(|after| (self.calls.len(), after)));
            self.calls.push(report.record(lane, Some(text), None));
            return requeued(lane, after, priority);
        }
        let after = after.unwrap_or_else(|| self.backoff(lane, failures));
        self.calls
            .push(report.record(lane, Some(text), Some(after)));
        let handler = Arc::clone(lane.name());
        let cause = Cause::Retry { handler, failures };
        let payload = self.work.payload().for_retry(lane.id(), cause);
        match is_held {
            true => Verdict::Held {
                after,
                payload,
                priority,
            },
            false => Verdict::Failed {
                after,
                payload,
                priority,
            },
        }
    }

    /// Asks the limiter, which may be the user's.
    fn backoff(&self, lane: &Lane, failures: u32) -> Duration {
        let ask = || {
            lane.backoff(failures)
                .unwrap_or_else(|| self.work.backoff(lane.id()))
        };
        catch_unwind(AssertUnwindSafe(ask)).unwrap_or_else(|_| {
            let (kind, handler) = (self.core.gvk(), lane.name());
            tracing::error!(%kind, %handler, "a rate limiter panicked");
            BROKEN_LIMITER
        })
    }

    fn log_final(&self, lane: &Lane, error: &str, (attempts, after): (u32, Option<Duration>)) {
        let (kind, key, handler) = (self.core.gvk(), self.work.key(), lane.name());
        let again_in = after.map(|after| format!("{after:?}"));
        tracing::error!(%kind, %key, %handler, error, attempts, again_in, "handler failed for good");
    }

    /// Gives the key back, and writes down what happened.
    fn end(mut self, verdicts: Vec<(LaneId, Verdict<Payload>)>) {
        super::report::log(self.core.gvk(), self.work.key(), &self.calls);
        // Only now, because failures for good are logged already.
        for (at, after) in std::mem::take(&mut self.requeued) {
            self.calls[at].again = Some(after);
        }
        if self.core.history().is_kept() && !self.calls.is_empty() {
            self.core.history().push(RunRecord {
                run: self.number,
                key: self.work.key().clone(),
                causes: self.causes,
                began: self.began,
                waited: self.work.waited(),
                took: self.began.elapsed(),
                calls: self.calls,
            });
        }
        self.work.finish(verdicts);
    }
}

/// Returns what comes of a success that asks for another call, if it does.
fn requeued(lane: &Lane, after: Option<Duration>, priority: Option<Priority>) -> Verdict<Payload> {
    let Some(after) = after else {
        return Verdict::Done;
    };
    Verdict::Again {
        after,
        priority,
        payload: Payload::from(Cause::Requeued {
            handler: Arc::clone(lane.name()),
        }),
    }
}

/// Returns whether a cause is something that happened, rather than something that was asked for.
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

/// Returns whether the cache has something newer than what a handler returned, or was fetched for it.
///
/// Where versions cannot be compared, what was returned is believed: it is the answer to a write of
/// this very run. Of two states of one version so is what was returned, unless it lacks the content.
fn is_better(cached: &CachedObject, returned: &CachedObject) -> bool {
    match cached.version().compare(returned.version()) {
        _ if cached.uid() != returned.uid() => true,
        Some(Ordering::Greater) => true,
        Some(Ordering::Equal) => cached.has_content() && !returned.has_content(),
        _ => false,
    }
}
