//! One run: the handlers that are due for one key, one after the other.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{CachedObject, LoadError};
use lariat_core::{Cause, Causes};
use lariat_queue::{Add, LaneId, Verdict};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::activity::WorkerActivity;
use super::core::ControllerCore;
use super::guard::{Answer, guarded};
use super::history::{CallRecord, RunRecord};
use super::verdict::{EndedCall, Report};
use crate::current::Caller;
use crate::flight::CallOf;
use crate::handler::{Call, CallKind, Decoded};
use crate::lane::{Admission, Lane, LaneList, Waiting};
use crate::payload::{Payload, Taken};
use crate::sentinel::ChainRun;

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
    let judgement = core.watchman().judge(work.key(), &work.payload().ask());
    if let Some(pause) = judgement.wait {
        postpone(core, &lanes, &work, pause);
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
        let _admitted = Admitted { lane, core };
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

/// Lets a key that is in a hot loop wait.
fn postpone(core: &Arc<ControllerCore>, lanes: &LaneList, work: &Taken, pause: Duration) {
    for lane in lanes.iter() {
        core.pass(lane, work.key());
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

/// A call of a handler that its limit, if it has one, has let in; dropping it lets the next in.
struct Admitted<'a> {
    lane: &'a Lane,
    core: &'a ControllerCore,
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        if let Some(limit) = self.lane.limit() {
            self.core.queue_waiting(self.lane, limit.leave());
        }
    }
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
    step: Option<Arc<ChainRun>>,
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
            self.core.lanes().notify();
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
                    self.core.lanes().notify();
                }
                return None;
            }
            // What was fetched may have another controlling owner than what is cached, and so another holder, which handles it.
            Ok(Newest::Known(Some(object))) if !self.core.own_keys().hold(&object) => {
                return Some(Verdict::Done);
            }
            Ok(Newest::Known(object)) => {
                let call = self.make_call(lane, object, failures);
                if let Some(flight) = self.core.flight() {
                    flight.call_began(self.call_of(lane), failures.saturating_add(1));
                }
                let object = call.object.as_ref().or(call.deleted.as_ref());
                let gated = lane.gated(&call.key, object);
                let (gvk, key) = (self.core.gvk().clone(), call.key.clone());
                let caller = Caller::new(gvk, key, Arc::clone(lane.name()))
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
        let ended = EndedCall {
            core: self.core,
            work: &self.work,
            lane,
            report,
            step: (self.chain, self.step.clone()),
        };
        let (verdict, record) = ended.judge(answer.result, || self.newest());
        self.calls.push(record);
        if let Some(flight) = self.core.flight() {
            flight.call_ended(self.call_of(lane), report.ended, report.took, &verdict);
        }
        Some(verdict)
    }

    fn call_of<'a>(&'a self, lane: &'a Lane) -> CallOf<'a> {
        CallOf {
            run: self.number,
            key: self.work.key(),
            lane: lane.id(),
            handler: lane.name(),
        }
    }

    fn make_call(
        &self,
        lane: &Arc<Lane>,
        object: Option<Arc<CachedObject>>,
        failures: u32,
    ) -> Call {
        Call {
            kind: Arc::clone(self.core) as Arc<dyn CallKind>,
            callee: Arc::clone(lane.callee()),
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
        if self.core.caches().is_content_coming() {
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
