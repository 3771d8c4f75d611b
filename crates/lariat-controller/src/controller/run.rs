//! One run of a key: calls the handlers that are due, one after the other.
//!
//! [`run`] asks for each due lane, in the order of registration: is it paused or waiting for caches, is it slowed in a
//! hot loop, does its limit admit the call, does this process still lead, is it deregistered? Then [`Runner::call`]
//! reads the newest state, calls the handler and returns a verdict for the queue. A lane without a verdict either keeps
//! the key itself, outside the queue, or no longer wants it.

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lariat_cache::{CachedObject, LoadError};
use lariat_lease::Leadership;
use lariat_queue::{LaneId, Verdict};
use tokio_util::sync::CancellationToken;

use super::activity::WorkerActivity;
use super::core::ControllerCore;
use super::guard::{Answer, guarded};
use super::opened::Opened;
use super::run_log::RunLog;
use super::verdict::EndedCall;
use crate::handler::{Call, CallKind, Decoded};
use crate::lane::{Admission, Lane, Waiting};
use crate::payload::{Payload, Taken};

/// A processed key, with a verdict for each lane that was called.
pub(super) type Done = (Taken, Vec<(LaneId, Verdict<Payload>)>);

/// Calls the handlers that are due for a key.
///
/// Returns none if the key was not processed. Dropping `work` has put it back into the queue then, with all its lanes.
pub(super) async fn run(
    (core, opened): (&Arc<ControllerCore>, &Arc<Opened>),
    work: Taken,
    stopping: &Arc<CancellationToken>,
    worker: &WorkerActivity<'_>,
) -> Option<Done> {
    let lanes = core.lanes().list();
    if lanes.is_over() {
        // The last handler was deregistered after the key was dequeued. The key stays queued for a handler that may be
        // registered next.
        return None;
    }
    warn_of_lost_deletions(core, &work);
    // Only a capacity: a change is usually due for all lanes, a retry for one.
    let due = if work.lanes().is_all() {
        lanes.len()
    } else {
        1
    };
    let mut runner = Runner {
        core,
        opened,
        log: RunLog::began(core, worker, &work, due),
        work,
        stopping,
        decoded: Decoded::default(),
        returned: None,
        fetched: None,
    };
    let mut verdicts = Vec::with_capacity(due);
    for lane in lanes.iter() {
        // `lanes` is a snapshot. A lane that was added after it is not called: its registration enqueues the key for it
        // again. A lane that was removed is refused by `enter` below.
        if !runner.work.lanes().contains(lane.id()) || runner.is_held(lane) {
            continue;
        }
        if let Some(verdict) = runner.slowed(lane) {
            verdicts.push((lane.id(), verdict));
            continue;
        }
        runner.log.calls(lane);
        if !runner.admits(lane).await {
            continue;
        }
        // From here on the call holds a place at the limit; every way out of this iteration must release it.
        let _admitted = Admitted { lane, core };
        if !core.may_call() {
            // The lease was lost while an earlier handler of this run was called, or the process was suspended. Giving
            // back the whole key drops the verdicts of the handlers before: they are called again by the next leader's
            // process, or by this one if a late renewal succeeds. That is allowed, since delivery is at least once.
            return None;
        }
        // `enter` refuses a handler that is being deregistered.
        if let Some(_inside) = lane.enter()
            && let Some(verdict) = runner.call(lane).await
        {
            // A lane without a verdict waits for content; the key is kept in `Hold` for it.
            verdicts.push((lane.id(), verdict));
        }
    }
    runner.log.finish(&runner.work);
    Some((runner.work, verdicts))
}

/// Warns if deletions were dropped before some handler had handled them.
fn warn_of_lost_deletions(core: &ControllerCore, work: &Taken) {
    let lost = work.payload().lost_deletions();
    if lost > 0 {
        let (kind, key) = (core.gvk(), work.key());
        tracing::warn!(%kind, %key, lost, "too many deletions wait for handlers, dropped the oldest");
    }
}

/// The newest state of an object, as far as a handler can be called with it now.
enum Newest {
    /// The state; none if the object does not exist.
    Known(Option<Arc<CachedObject>>),
    /// Only the metadata is cached, and the watch is being upgraded to content.
    Awaited,
}

/// A call that the handler's concurrency limit admitted.
///
/// Dropping it admits the next key: at the end of the call, and also when the call is aborted or revoked.
struct Admitted<'a> {
    lane: &'a Lane,
    core: &'a ControllerCore,
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        if let Some(limit) = self.lane.limit() {
            limit.leave(|next| self.core.queue_waiting(self.lane, next));
        }
    }
}

/// The state of a run.
struct Runner<'a> {
    core: &'a Arc<ControllerCore>,
    /// The use of the kind that the worker belongs to.
    opened: &'a Arc<Opened>,
    work: Taken,
    log: RunLog<'a>,
    stopping: &'a Arc<CancellationToken>,
    decoded: Decoded,
    /// The newest state that a handler of this run returned.
    returned: Option<Arc<CachedObject>>,
    /// The fetched object, if a handler needed content that is not cached.
    fetched: Option<Arc<CachedObject>>,
}

impl Runner<'_> {
    /// Returns whether a handler's limit admits the call. If not, the key is in line.
    async fn admits(&self, lane: &Lane) -> bool {
        let Some(limit) = lane.limit() else {
            return true;
        };
        let key = self.work.key();
        match limit.admit(key, || self.waiting(lane)) {
            Admission::Entered => true,
            Admission::InLine => false,
            Admission::Wait => {
                // A drain. Put back into the queue, the key would wait until the next start.
                limit.enter(key).await;
                true
            }
        }
    }

    /// Returns whether a handler is paused or waits for related caches. If so, the key is kept for it.
    fn is_held(&self, lane: &Lane) -> bool {
        let Some(is_first) = lane.hold().keep_if_closed(|| self.waiting(lane)) else {
            return false;
        };
        if is_first {
            self.core.lanes().notify();
        }
        // A place that a limit reserved for this key before the pause would stay unused during the pause.
        self.core.pass(lane, self.work.key());
        true
    }

    /// Delays a handler in a hot loop, if its options ask for that.
    fn slowed(&self, lane: &Lane) -> Option<Verdict<Payload>> {
        let after = self.log.hot_loop_wait(lane, &self.work)?;
        // A place that a limit reserves for this key would stay unused during the delay.
        self.core.pass(lane, self.work.key());
        Some(Verdict::Postponed {
            after,
            payload: self.work.payload().for_lane(lane.id()),
            priority: Some(self.work.priority()),
        })
    }

    /// Returns the key as it waits for a handler outside the queue.
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
    /// Returns none if the handler needs content that is being loaded; the key is kept for it then.
    async fn call(&mut self, lane: &Arc<Lane>) -> Option<Verdict<Payload>> {
        let failures = self.work.failures(lane.id());
        let began = self.log.call_began(lane, failures);
        let answer = match self.object_for(lane).await {
            // The handler's token was cancelled while the object was fetched.
            _ if lane.is_over() => return Some(Verdict::Done),
            Ok(Newest::Awaited) => {
                if lane.hold().keep(self.waiting(lane)) {
                    self.core.lanes().notify();
                }
                return None;
            }
            // A fetched object may be newer than the cached one and have another controlling owner. Then it belongs to
            // another member of the ring, which handles it.
            Ok(Newest::Known(Some(object))) if !self.core.own_keys().hold(&object) => {
                return Some(Verdict::Done);
            }
            Ok(Newest::Known(object)) => {
                let call = self.make_call(lane, object, failures);
                self.log
                    .calling(lane, &self.work, failures.saturating_add(1));
                let caller = call.caller();
                guarded(call, caller).await
            }
            // The handler is not called. The failed fetch counts as its failure, so it is retried with its backoff.
            Err(error) => Answer::failed(&error.into()),
        };
        // Handlers after this one see what it returned, also if it failed after a write.
        self.returned = answer.updated.or(self.returned.take());
        let ended = EndedCall {
            core: self.core,
            work: &self.work,
            lane,
            outcome: answer.ended,
            attempt: failures.saturating_add(1),
            took: began.elapsed(),
        };
        let (verdict, ended) = ended.judge(answer.result, || self.newest());
        self.log.call_ended(lane, &self.work, ended);
        Some(verdict)
    }

    fn make_call(
        &self,
        lane: &Arc<Lane>,
        object: Option<Arc<CachedObject>>,
        failures: u32,
    ) -> Call {
        Call {
            kind: Arc::clone(self.opened) as Arc<dyn CallKind>,
            callee: Arc::clone(lane.callee()),
            run: self.log.number,
            key: self.work.key().clone(),
            object,
            deleted: self.work.payload().deleted(lane.id()).cloned(),
            has_later_deletions: self.work.payload().has_later_deletions(lane.id()),
            decoded: self.decoded.clone(),
            causes: Arc::clone(&self.log.causes),
            failures,
            stopping: Arc::clone(self.stopping),
            term: self.core.leadership().map(Leadership::term),
            client: OnceLock::new(),
        }
    }

    /// Returns the newest known state, with content if it was fetched.
    fn newest(&self) -> Option<Arc<CachedObject>> {
        let known = self.known()?;
        // A fetched object replaces a known state only. Without this, an object that a handler of this run has deleted
        // would exist again for the handlers after it.
        let fetched = self
            .fetched
            .as_ref()
            .filter(|fetched| !is_better(&known, fetched));
        Some(fetched.cloned().unwrap_or(known))
    }

    /// Returns the newest known state: the cache's, or the one that a handler of this run returned.
    fn known(&self) -> Option<Arc<CachedObject>> {
        let cached = self.opened.informer().store().get(self.work.key());
        let Some(returned) = &self.returned else {
            return cached;
        };
        match cached {
            Some(cached) if is_better(&cached, returned) => Some(cached),
            // The response to the write that removed the last finalizer: the API server has deleted the object.
            None if returned.is_deleting() && returned.finalizers().next().is_none() => None,
            // Also if the cache lacks the object: the watch may lag behind the response to its creation.
            _ => Some(Arc::clone(returned)),
        }
    }

    /// Returns the newest state, with content if the handler reads content.
    async fn object_for(&mut self, lane: &Lane) -> Result<Newest, LoadError> {
        // A handler of metadata never sees a fetched object, since that may be newer than the cache. If nothing is
        // fetched in its next run, it would see an older state than before.
        if !lane.handler().needs_content() {
            return Ok(Newest::Known(self.known()));
        }
        let newest = self.newest();
        let lacks_content = |object: &Arc<CachedObject>| !object.has_content();
        if !newest.as_ref().is_some_and(lacks_content) {
            return Ok(Newest::Known(newest));
        }
        if self.opened.caches().is_content_coming() {
            return Ok(Newest::Awaited);
        }
        let informer = self.opened.informer();
        let loaded = informer
            // Zero: whether to wait for the upgrade of the watch was decided above.
            .load_within(self.work.key(), Duration::ZERO)
            .await?;
        // Kept for the handlers after this one.
        self.fetched.clone_from(&loaded);
        Ok(Newest::Known(loaded))
    }
}

/// Returns whether the cached state is preferred to a returned or fetched one.
///
/// It is if it is newer, or of another object of the same name. If versions cannot be compared, the returned state is
/// preferred, since it is the response to a write of this run. Of two states with the same version the returned one is
/// preferred too, unless only the cached one has content.
fn is_better(cached: &CachedObject, returned: &CachedObject) -> bool {
    match cached.version().compare(returned.version()) {
        _ if cached.uid() != returned.uid() => true,
        Some(Ordering::Greater) => true,
        Some(Ordering::Equal) => cached.has_content() && !returned.has_content(),
        _ => false,
    }
}
