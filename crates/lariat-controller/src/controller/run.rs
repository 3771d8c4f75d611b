//! One run of a key: calls the handlers that are due, one after the other.

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

/// A processed key, with a verdict for each lane that was called.
pub(super) type Done = (Taken, Vec<(LaneId, Verdict<Payload>)>);

/// Calls the handlers that are due for a key.
///
/// Returns none if the key was not processed; it is back in the queue then.
pub(super) async fn run(
    core: &Arc<ControllerCore>,
    work: Taken,
    stopping: &Arc<CancellationToken>,
    worker: &WorkerActivity<'_>,
) -> Option<Done> {
    let lanes = core.lanes().list();
    if lanes.is_over() {
        // The last handler was deregistered just now. The key stays queued for the next one.
        return None;
    }
    // Judged before any call, so that a key in a hot loop waits without calling a handler.
    let judgement = core.watchman().judge(work.key(), &work.payload().ask());
    if let Some(pause) = judgement.wait {
        postpone(core, &lanes, &work, pause);
        // Without verdicts the lanes' failure counts stay as they are.
        return Some((work, Vec::new()));
    }
    warn_of_lost_deletions(core, &work);
    // The expected number of calls: a change is usually for all lanes, a retry for one.
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
            // This process may not lead any more: give the whole key back to the queue.
            return None;
        }
        // `enter` refuses a handler that is being deregistered.
        if let Some(_inside) = lane.enter()
            && let Some(verdict) = runner.call(lane).await
        {
            // A lane without a verdict keeps its key: the key is kept in `Hold` for it.
            verdicts.push((lane.id(), verdict));
        }
    }
    Some((runner.end(), verdicts))
}

fn warn_of_lost_deletions(core: &ControllerCore, work: &Taken) {
    let lost = work.payload().lost_deletions();
    if lost > 0 {
        let (kind, key) = (core.gvk(), work.key());
        tracing::warn!(%kind, %key, lost, "too many deletions wait for handlers: the oldest are dropped");
    }
}

/// Delays a key that is in a hot loop.
fn postpone(core: &Arc<ControllerCore>, lanes: &LaneList, work: &Taken, pause: Duration) {
    for lane in lanes.iter() {
        // A slot reserved for this key would stay unused during the delay.
        core.pass(lane, work.key());
    }
    let add = Add::after(pause)
        .lanes(work.lanes().clone())
        .priority(work.priority())
        .payload(work.payload().clone());
    core.queue().add(work.key().clone(), add);
}

/// The newest known state of an object.
enum Newest {
    Known(Option<Arc<CachedObject>>),
    /// Only the metadata is cached, and the watch is being upgraded to content.
    Awaited,
}

/// A call that the handler's concurrency limit admitted. Dropping it admits the next key.
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
    /// The length of the chain of runs that led to this one, each caused by a write of the run before. Counted from the
    /// last run that made progress.
    chain: u32,
    /// This run as a step of that chain, if it is part of one.
    step: Option<Arc<ChainRun>>,
    began: Instant,
    stopping: &'a Arc<CancellationToken>,
    decoded: Decoded,
    /// The newest state that a handler of this run returned.
    returned: Option<Arc<CachedObject>>,
    /// The object as fetched for a handler of this run that needs content.
    ///
    /// None if the cache has the content, or no handler needed it yet.
    fetched: Option<Arc<CachedObject>>,
    calls: Vec<CallRecord>,
}

impl Runner<'_> {
    /// Returns whether a handler's limit admits the call.
    ///
    /// Otherwise the key waits in line.
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

    /// Returns whether a handler is paused, or waits for related caches.
    ///
    /// If so, the key is kept for it.
    fn is_held(&self, lane: &Lane) -> bool {
        let Some(is_first) = lane.hold().keep_if_closed(|| self.waiting(lane)) else {
            return false;
        };
        if is_first {
            self.core.lanes().notify();
        }
        // A slot that was reserved for this key before a pause would stay unused until its end.
        self.core.pass(lane, self.work.key());
        true
    }

    /// Returns the key with what a later call of the handler needs.
    fn waiting(&self, lane: &Lane) -> Waiting {
        Waiting {
            key: self.work.key().clone(),
            payload: self.work.payload().for_lane(lane.id()),
            priority: self.work.priority(),
            failures: self.work.failures(lane.id()),
        }
    }

    /// Calls one handler.
    ///
    /// Returns none if the content it needs is being loaded; the key is kept for it then.
    async fn call(&mut self, lane: &Arc<Lane>) -> Option<Verdict<Payload>> {
        let failures = self.work.failures(lane.id());
        let began = Instant::now();
        // Retries and requests do not react to a change, so they have no lag.
        if failures == 0 && self.causes.iter().any(is_change) {
            lane.count_lag(self.work.waited() + (began - self.began));
        }
        let answer = match self.object_for(lane).await {
            // The handler was deregistered while the object was fetched.
            _ if lane.is_over() => return Some(Verdict::Done),
            Ok(Newest::Awaited) => {
                if lane.hold().keep(self.waiting(lane)) {
                    self.core.lanes().notify();
                }
                return None;
            }
            // The fetched object may have another controlling owner than the cached one. Then it belongs to another
            // member of the ring, which handles it.
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
                let caller = Caller::new(gvk, key, Arc::clone(lane.name()), call.run)
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

    /// Returns the newest known state, with its content if it was fetched.
    fn newest(&self) -> Option<Arc<CachedObject>> {
        let known = self.known()?;
        // A fetched object only replaces a known state: it must not bring back one that a handler of this run deleted.
        let fetched = self
            .fetched
            .as_ref()
            .filter(|fetched| !is_better(&known, fetched));
        Some(fetched.cloned().unwrap_or(known))
    }

    /// Returns the newest known state.
    ///
    /// That is the cache's, or the one that a handler of this run returned.
    fn known(&self) -> Option<Arc<CachedObject>> {
        let cached = self.core.informer().store().get(self.work.key());
        let Some(returned) = &self.returned else {
            return cached;
        };
        match cached {
            Some(cached) if is_better(&cached, returned) => Some(cached),
            // This is the response to a write that removed the last finalizer, so the object is deleted.
            None if returned.is_deleting() && returned.finalizers().next().is_none() => None,
            // Also if the cache does not contain the object yet: the watch may be behind the response.
            _ => Some(Arc::clone(returned)),
        }
    }

    /// Returns the newest state as the handler needs it.
    ///
    /// It has content if the handler reads content.
    async fn object_for(&mut self, lane: &Lane) -> Result<Newest, LoadError> {
        // Such a handler never sees a fetched object, for that may be newer than the cache. In its next run nothing may
        // be fetched, and it would then see an older state than before.
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
        // Kept for the handlers after this one.
        self.fetched.clone_from(&loaded);
        Ok(Newest::Known(loaded))
    }

    /// Adds the run to the history, and returns the key.
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

/// Returns whether a cause is a change of an object, rather than a request.
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

/// Returns whether the cached state is newer than one returned by a handler or fetched.
///
/// If versions cannot be compared, the returned state wins: it is the response to a write of this run. Of two states
/// with the same version the returned one wins too, unless only the cached one has content.
fn is_better(cached: &CachedObject, returned: &CachedObject) -> bool {
    match cached.version().compare(returned.version()) {
        _ if cached.uid() != returned.uid() => true,
        Some(Ordering::Greater) => true,
        Some(Ordering::Equal) => cached.has_content() && !returned.has_content(),
        _ => false,
    }
}
