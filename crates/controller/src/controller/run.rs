//! One run of a key: calls the handlers that are due, one after the other.
//!
//! [`run`] asks for each due lane, in the order of registration: is it paused or waiting for caches, does its limit
//! admit the call, is it slowed in a hot loop, does this process still lead, is it deregistered? Then [`Runner::call`]
//! reads the newest state and calls the handler. What follows from a call is left to [`Verdicts`], which has the key
//! and tells the queue. A lane without a verdict either waits in the queue, or no longer wants the key.

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lariat_cache::{CachedObject, Informer, LoadError};
use lariat_core::ObjectKey;
use lariat_lease::Leadership;
use lariat_queue::WaitsFor;
use tokio_util::sync::CancellationToken;

use super::activity::WorkerActivity;
use super::caches::Caches;
use super::core::ControllerCore;
use super::crew::Place;
use super::guard::{Answer, guarded};
use super::opened::Opened;
use super::shards::RunPermit;
use super::verdict::Verdicts;
use crate::handler::{Call, CallKind, Decoded};
use crate::lane::Lane;
use crate::payload::Taken;

/// A worker, as its runs see it.
pub(super) struct Worker<'a> {
    pub(super) core: &'a Arc<ControllerCore>,
    /// The use of the kind that the worker belongs to.
    pub(super) opened: &'a Arc<Opened>,
    /// Cancelled when a stop begins; for the contexts of calls.
    pub(super) draining: Arc<CancellationToken>,
    pub(super) activity: WorkerActivity<'a>,
}

/// Calls the handlers that are due for a key; returns the worker's next key.
///
/// A key that was not processed goes back into the queue, with all its lanes.
pub(super) async fn run(
    worker: &Worker<'_>,
    permit: &RunPermit<'_>,
    place: &mut Place,
    work: Taken,
) -> Option<Taken> {
    let core = worker.core;
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
        worker,
        permit,
        end: Verdicts::begin(core, &worker.activity, work, due),
        seen: Seen {
            informer: worker.opened.informer(),
            returned: None,
            fetched: None,
        },
        decoded: Decoded::default(),
    };
    for lane in lanes.iter() {
        // `lanes` is a snapshot. A lane that was added after it is not called: its registration enqueues the key for it
        // again. A lane that was removed is refused by `enter` below.
        if !runner.end.work.lanes().contains(lane.id())
            || runner.leaves(lane, place)
            || !runner.is_admitted(lane)
        {
            continue;
        }
        // From here on the call counts at the limit; every way out of this iteration must end it.
        let _admitted = Admitted { lane, core };
        if runner.slows(lane) {
            continue;
        }
        runner.end.log.calls(lane);
        if !core.may_call() {
            // The lease was lost while an earlier handler of this run was called, or the process was suspended. Giving
            // back the whole key drops the verdicts of the handlers before: they are called again by the next leader's
            // process, or by this one if a late renewal succeeds. That is allowed, since delivery is at least once.
            return None;
        }
        // `enter` refuses a handler that is being deregistered.
        if let Some(_inside) = lane.enter() {
            runner.call(lane).await;
        }
    }
    runner.end.finish()
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
        if self.lane.limit().is_some() {
            self.core.queue().leave(self.lane.id());
        }
    }
}

/// The state of a run.
struct Runner<'a> {
    core: &'a Arc<ControllerCore>,
    worker: &'a Worker<'a>,
    permit: &'a RunPermit<'a>,
    /// The key, and what the calls so far have led to.
    end: Verdicts<'a>,
    seen: Seen<'a>,
    decoded: Decoded,
}

impl Runner<'_> {
    /// Returns whether a call of a handler may begin. If not, the key waits for it in the queue.
    fn is_admitted(&self, lane: &Lane) -> bool {
        let work = &self.end.work;
        let payload = || work.payload().for_lane(lane.id());
        work.admit(lane.id(), payload).is_none()
    }

    /// Delays a handler in a hot loop, if its options ask for that; returns whether it does.
    fn slows(&mut self, lane: &Lane) -> bool {
        let Some(after) = self.end.log.hot_loop_wait(lane, &self.end.work) else {
            return false;
        };
        self.end.postpone(lane, after);
        true
    }

    /// Leaves a handler to the worker that has taken the place of this one; returns whether it does.
    ///
    /// That is so after a call of a deregistered handler. In a drain the run goes on, since a key that is postponed
    /// waits for the next start.
    fn leaves(&mut self, lane: &Lane, place: &mut Place) -> bool {
        if self.worker.draining.is_cancelled() || !place.leave_if_surplus() {
            return false;
        }
        self.end.postpone(lane, Duration::ZERO);
        true
    }

    /// Calls one handler, or lets the key wait for it if it needs content that is being loaded.
    async fn call(&mut self, lane: &Arc<Lane>) {
        let failures = self.end.work.failures(lane.id());
        let began = self.end.log.call_began(lane, failures);
        let content = self.worker.opened.caches();
        let newest = self
            .seen
            .object_for(self.end.work.key(), lane, content)
            .await;
        let mut answer = match newest {
            // The handler's token was cancelled while the object was fetched.
            _ if lane.is_over() => return,
            Ok(Newest::Awaited) => {
                let work = &self.end.work;
                let payload = work.payload().for_lane(lane.id());
                if work.wait(lane.id(), WaitsFor::Caches, payload) {
                    self.core.lanes().notify();
                }
                self.core.forget_if_removed(lane);
                return;
            }
            // It belongs to another member of the ring, which handles it.
            Ok(Newest::Known(Some(object))) if !self.permit.admits(&object) => {
                return self.end.done(lane);
            }
            Ok(Newest::Known(object)) => {
                let call = self.make_call(lane, object, failures);
                self.end.log.calling(lane, &self.end.work, call.attempt());
                let caller = call.caller();
                guarded(call, caller).await
            }
            // The handler is not called. The failed fetch is retried with its backoff, however few retries it has.
            Err(error) => Answer::uncalled(&error.into()),
        };
        // Handlers after this one see what it returned, also if it failed after a write.
        self.seen.returned = answer.updated.take().or(self.seen.returned.take());
        let (seen, key) = (&self.seen, self.end.work.key().clone());
        self.end
            .call_ended(lane, began, answer, || seen.newest(&key));
    }

    fn make_call(
        &self,
        lane: &Arc<Lane>,
        object: Option<Arc<CachedObject>>,
        failures: u32,
    ) -> Call {
        let (work, payload) = (&self.end.work, self.end.work.payload());
        Call {
            kind: Arc::clone(self.worker.opened) as Arc<dyn CallKind>,
            callee: Arc::clone(lane.callee()),
            run: self.end.log.number,
            key: work.key().clone(),
            object,
            deleted: payload.deleted(lane.id()).cloned(),
            has_later_deletions: payload.has_later_deletions(lane.id()),
            decoded: self.decoded.clone(),
            causes: Arc::clone(&self.end.log.causes),
            failures,
            stopping: Arc::clone(&self.worker.draining),
            term: self.core.leadership().map(Leadership::term),
            client: OnceLock::new(),
        }
    }
}

/// The states of the object that this run has seen, beside the cached one.
struct Seen<'a> {
    informer: &'a Informer,
    /// The newest state that a handler of this run returned.
    returned: Option<Arc<CachedObject>>,
    /// The fetched object, if a handler needed content that is not cached.
    fetched: Option<Arc<CachedObject>>,
}

impl Seen<'_> {
    /// Returns the newest known state, with content if it was fetched.
    fn newest(&self, key: &ObjectKey) -> Option<Arc<CachedObject>> {
        let known = self.known(key)?;
        // A fetched object replaces a known state only. Without this, an object that a handler of this run has deleted
        // would exist again for the handlers after it.
        let fetched = self.fetched.as_ref();
        let fetched = fetched.filter(|fetched| !is_better(&known, fetched));
        Some(fetched.cloned().unwrap_or(known))
    }

    /// Returns the newest known state: the cache's, or the one that a handler of this run returned.
    fn known(&self, key: &ObjectKey) -> Option<Arc<CachedObject>> {
        let cached = self.informer.store().get(key);
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
    async fn object_for(
        &mut self,
        key: &ObjectKey,
        lane: &Lane,
        caches: &Caches,
    ) -> Result<Newest, LoadError> {
        // A handler of metadata sees the cache, which has the metadata of a fetched object, unless a source fills it or the
        // meaning of the object for the selection is uncertain. Then its next run would show an older state than this one.
        if !lane.handler().needs_content() {
            return Ok(Newest::Known(self.known(key)));
        }
        let newest = self.newest(key);
        let lacks_content = |object: &Arc<CachedObject>| !object.has_content();
        if !newest.as_ref().is_some_and(lacks_content) {
            return Ok(Newest::Known(newest));
        }
        if caches.is_content_coming() {
            return Ok(Newest::Awaited);
        }
        // Zero: whether to wait for the upgrade of the watch was decided above.
        let loaded = self.informer.load_within(key, Duration::ZERO).await?;
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
