//! One run: the handlers that are due for one key, one after the other.

use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{CachedObject, LoadError};
use lariat_core::{Cause, Causes};
use lariat_queue::{Add, LaneId, Priority, Verdict, Work};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::activity::WorkerActivity;
use super::core::ControllerCore;
use super::failures::{Failed, Next};
use super::flight::CallOf;
use super::guard::{Again, Answer, Failure, guarded};
use super::history::{CallRecord, RunRecord};
use super::report::Report;
use crate::current::Caller;
use crate::handler::{Call, Class, Decoded, Gated};
use crate::lane::{Admission, Admitted, Lane, LaneList, Waiting};
use crate::payload::Payload;
use crate::sentinel::Step;

/// How long a handler waits whose rate limiter panics.
const BROKEN_LIMITER: Duration = Duration::from_secs(30);

pub(super) type Taken = Work<lariat_core::ObjectKey, Payload>;

/// A key that is to be given back, with what became of the handlers that were due.
pub(super) type Done = (Taken, Vec<(LaneId, Verdict<Payload>)>);

/// Calls the handlers that are due; returns none where the key has gone back into the queue undone.
pub(super) async fn run(
    core: &Arc<ControllerCore>,
    work: Taken,
    stopping: &Arc<CancellationToken>,
    worker: &WorkerActivity<'_>,
) -> Option<Done> {
    let lanes = core.lanes().list();
    if lanes.is_over() {
        // The last handler was deregistered just now; the key is kept for the next.
        return None;
    }
    let judgement = core.watchman().judge(work.key(), work.payload());
    if let Some(pause) = judgement.wait {
        put_off(core, &lanes, &work, pause);
        // Without verdicts, so that failures stay as they are.
        return Some((work, Vec::new()));
    }
    warn_of_lost_deletions(core, &work);
    // A change is usually for all lanes, a retry for one.
    let due = if work.lanes().is_all() {
        lanes.len()
    } else {
        1
    };
    let mut runner = Runner {
        core,
        number: core.next_run(),
        causes: Arc::new(work.payload().causes_by_now()),
        work,
        chain: judgement.chain,
        step: judgement.step,
        began: Instant::now(),
        stopping,
        decoded: Decoded::default(),
        returned: None,
        fetched: None,
        calls: Vec::with_capacity(due),
    };
    let mut verdicts = Vec::with_capacity(due);
    for lane in lanes.iter() {
        if !runner.work.lanes().contains(lane.id()) || runner.is_held(lane) {
            continue;
        }
        worker.calls(lane.name());
        if !runner.admits(lane).await {
            continue;
        }
        let _admitted = Admitted::new(lane, core);
        if !core.may_call() {
            // The whole key goes back into the queue.
            return None;
        }
        // A handler that is being deregistered is not called any more.
        if let Some(_inside) = lane.enter()
            && let Some(verdict) = runner.call(lane).await
        {
            verdicts.push((lane.id(), verdict));
        }
    }
    Some((runner.end(), verdicts))
}

fn warn_of_lost_deletions(core: &ControllerCore, work: &Taken) {
    let lost = work.payload().lost_deletions();
    if lost > 0 {
        let (kind, key) = (core.gvk(), work.key());
        tracing::warn!(%kind, %key, lost, "too many deletions wait for handlers: the first are left out");
    }
}

/// Lets a key that goes round in circles wait.
fn put_off(core: &Arc<ControllerCore>, lanes: &LaneList, work: &Taken, pause: Duration) {
    for lane in lanes.iter() {
        lane.pass(work.key(), core);
    }
    let add = Add::after(pause)
        .lanes(work.lanes().clone())
        .priority(work.priority())
        .payload(work.payload().clone());
    core.queue().add(work.key().clone(), add);
}

/// The newest state that is known of an object.
enum Newest {
    Known(Option<Arc<CachedObject>>),
    /// Only its metadata is cached, and the watch is being upgraded to content.
    Awaited,
}

struct Runner<'a> {
    core: &'a Arc<ControllerCore>,
    work: Taken,
    number: u64,
    causes: Arc<Causes>,
    /// How many runs in a row, each caused by the write of the one before, led to this one, counted from the last that
    /// made progress.
    chain: u32,
    /// This run, if it is one of such a chain.
    step: Option<Arc<Step>>,
    began: Instant,
    stopping: &'a Arc<CancellationToken>,
    decoded: Decoded,
    /// What a handler of this run returned as the newest state.
    returned: Option<Arc<CachedObject>>,
    /// The object as it was fetched for a handler of this run that needs content.
    ///
    /// None if the cache has the content, or no handler has needed it so far.
    fetched: Option<Arc<CachedObject>>,
    calls: Vec<CallRecord>,
}

impl Runner<'_> {
    /// Returns whether the limit of a handler lets the call in; otherwise its key waits in line.
    async fn admits(&self, lane: &Lane) -> bool {
        let Some(limit) = lane.limit() else {
            return true;
        };
        let key = self.work.key();
        match limit.admit(key, || self.waiting(lane)) {
            Admission::Entered => true,
            Admission::InLine => false,
            Admission::Wait => {
                limit.enter(key).await;
                true
            }
        }
    }

    /// Returns whether a handler waits for the caches of related kinds; then the key is kept for it.
    fn is_held(&self, lane: &Lane) -> bool {
        let kept = lane.hold().keep_if_closed(|| self.waiting(lane));
        if kept == Some(true) {
            self.core.lanes().tell();
        }
        kept.is_some()
    }

    /// Returns the key with what a handler needs to be called for it later.
    fn waiting(&self, lane: &Lane) -> Waiting {
        Waiting {
            key: self.work.key().clone(),
            payload: self.work.payload().for_lane(lane.id()),
            priority: self.work.priority(),
            failures: self.work.failures(lane.id()),
        }
    }

    /// Calls one handler; none if the content it needs is being read, and the key is kept for it.
    async fn call(&mut self, lane: &Arc<Lane>) -> Option<Verdict<Payload>> {
        let failures = self.work.failures(lane.id());
        let began = Instant::now();
        if failures == 0 && self.causes.iter().any(is_change) {
            lane.count_lag(self.work.waited() + (began - self.began));
        }
        let answer = match self.object_for(lane).await {
            // It ended while the object was fetched.
            _ if lane.is_over() => return Some(Verdict::Done),
            Ok(Newest::Awaited) => {
                if lane.hold().keep(self.waiting(lane)) {
                    self.core.lanes().tell();
                }
                return None;
            }
            // What was fetched may have another controlling owner than what is cached, and so another holder, which handles it.
            Ok(Newest::Known(Some(object))) if !self.core.holds(&object) => {
                return Some(Verdict::Done);
            }
            Ok(Newest::Known(object)) => {
                let call = self.make_call(lane, object, failures);
                if let Some(flight) = self.core.flight() {
                    flight.call_began(self.call_of(lane), failures.saturating_add(1));
                }
                let object = call.object.as_ref().or(call.deleted.as_ref());
                let gated = Gated::of(lane, &call.key, object);
                let object = (self.core.gvk().clone(), call.key.clone());
                let caller = Caller::new(object, Arc::clone(lane.name()))
                    .in_chain(self.chain, self.step.clone())
                    .gated(gated)
                    .led_by(self.core.leadership().cloned());
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
        let verdict = match answer.result {
            Ok(again) => self.answered(lane, report, &again),
            Err(failure) => self.failed(lane, report, failure),
        };
        let verdict = self.with_later_deletions(lane, verdict);
        if let Some(flight) = self.core.flight() {
            flight.call_ended(self.call_of(lane), report, &verdict);
        }
        Some(verdict)
    }

    fn call_of<'a>(&'a self, lane: &'a Lane) -> CallOf<'a> {
        CallOf {
            run: self.number,
            key: self.work.key(),
            lane,
        }
    }

    /// Has a handler called at once for the next deletion, if it is done with one of several.
    fn with_later_deletions(&self, lane: &Lane, verdict: Verdict<Payload>) -> Verdict<Payload> {
        let is_done = matches!(verdict, Verdict::Done | Verdict::Again { .. });
        let payload = self.work.payload();
        match payload.later_deletions(lane.id()).filter(|_| is_done) {
            // A requeue that the handler asked for is satisfied by that call, as by every earlier one.
            Some(payload) => Verdict::Again {
                after: self.delay_of_deletion(lane, payload.deletion_tries(lane.id())),
                payload,
                priority: None,
            },
            None => verdict,
        }
    }

    /// A deletion whose calls have failed keeps its delay, however many others are handled meanwhile.
    fn delay_of_deletion(&self, lane: &Lane, tries: u32) -> Duration {
        if tries == 0 {
            return Duration::ZERO;
        }
        self.backoff(lane, tries)
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
            has_later_deletions: self.work.payload().has_later_deletions(lane.id()),
            decoded: self.decoded.clone(),
            causes: Arc::clone(&self.causes),
            failures,
            stopping: Arc::clone(self.stopping),
        }
    }

    /// Returns the newest state that is known, with what was fetched of it.
    fn newest(&self) -> Option<Arc<CachedObject>> {
        let known = self.known()?;
        // What was fetched stands for a state that is known, never for one that a handler of this run deleted since.
        let fetched = self.fetched.as_ref();
        let fetched = fetched.filter(|fetched| !is_better(&known, fetched));
        Some(fetched.cloned().unwrap_or(known))
    }

    /// Returns the newest state that is known: the cache's, or what a handler of this run returned.
    fn known(&self) -> Option<Arc<CachedObject>> {
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
    async fn object_for(&mut self, lane: &Lane) -> Result<Newest, LoadError> {
        // What was fetched may be ahead of the cache. In the next run, where nothing may be fetched for it, a handler that
        // needs no content would be called with an older state than in this one.
        if !lane.handler().needs_content() {
            return Ok(Newest::Known(self.known()));
        }
        let newest = self.newest();
        let lacks_content = |object: &Arc<CachedObject>| !object.has_content();
        if !newest.as_ref().is_some_and(lacks_content) {
            return Ok(Newest::Known(newest));
        }
        if self.core.is_content_coming() {
            return Ok(Newest::Awaited);
        }
        let informer = self.core.informer();
        let loaded = informer
            .load_within(self.work.key(), Duration::ZERO)
            .await?;
        // The handlers after it need not fetch it again.
        self.fetched.clone_from(&loaded);
        Ok(Newest::Known(loaded))
    }

    fn answered(&mut self, lane: &Lane, report: Report, again: &Again) -> Verdict<Payload> {
        let failures = self.core.failures();
        failures.succeeded(lane.name(), self.work.key());
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
        } = &failure;
        let failures = report.attempt;
        if *class == Class::Ignored {
            self.log_ignored(lane, text);
            self.core.failures().succeeded(lane.name(), self.work.key());
            self.calls
                .push(report.record(lane, Some(Arc::clone(text)), *after));
            return requeued(lane, *after, *priority);
        }
        let given_up = *class != Class::Terminal && !is_held && lane.gives_up(failures);
        if given_up {
            lane.count_given_up();
        }
        let (is_held, priority) = (*is_held, *priority);
        let next = if given_up || *class == Class::Terminal {
            Next::Final(lane.after_giving_up(self.newest().as_deref()))
        } else {
            Next::Retry(self.retry_in(lane, failures, &failure))
        };
        let text = self.log_failed(lane, report, next, failure);
        self.calls
            .push(report.record(lane, Some(text), next.delay()));
        let after = match next {
            Next::Retry(after) => after,
            Next::Final(after) => return requeued(lane, after, priority),
        };
        let handler = Arc::clone(lane.name());
        let cause = Cause::Retry { handler, failures };
        let payload = self.work.payload();
        let payload = payload.for_retry(lane.id(), cause, (self.chain, self.step.clone()));
        match is_held {
            true => Verdict::Postponed {
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

    /// Returns when a failed handler is called again: when the error says, or when its limiter does, but no sooner than
    /// the API server asked for.
    fn retry_in(&self, lane: &Lane, failures: u32, failure: &Failure) -> Duration {
        failure.after.unwrap_or_else(|| {
            let least = failure.not_before.unwrap_or_default();
            self.backoff(lane, failures).max(least)
        })
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

    fn log_ignored(&self, lane: &Lane, error: &str) {
        let (kind, key, handler) = (self.core.gvk(), self.work.key(), lane.name());
        tracing::debug!(%kind, %key, %handler, error, "an error is ignored");
    }

    /// Logs a failure; returns what it says.
    fn log_failed(&self, lane: &Lane, report: Report, next: Next, failure: Failure) -> Arc<str> {
        let (kind, key, handler) = (self.core.gvk(), self.work.key(), lane.name());
        let (error, attempt) = (failure.text, report.attempt);
        // The next attempt sees the new state, so a conflict is everyday life and not worth a warning.
        if let (true, Next::Retry(retry_in)) = (failure.is_conflict, next) {
            let retry_in = tracing::field::debug(retry_in);
            tracing::debug!(%kind, %key, %handler, %error, attempt, retry_in, "a conflict, to be tried again");
            return error;
        }
        self.core.failures().failed(&Failed {
            handler,
            key,
            error: &error,
            attempt,
            next,
            panicked: failure.panicked,
        });
        error
    }

    /// Writes down what happened, and returns the key.
    fn end(self) -> Taken {
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
        self.work
    }
}

/// Returns what comes of a success that asks for another call, if it does.
fn requeued(lane: &Lane, after: Option<Duration>, priority: Option<Priority>) -> Verdict<Payload> {
    let Some(after) = after else {
        return Verdict::Done;
    };
    // What no clock can hold is never, and no cause of any run.
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
