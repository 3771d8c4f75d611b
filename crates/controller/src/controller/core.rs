//! The state that all handles of a controller share, for as long as they exist.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use lariat_cache::{CachedObject, Informer, Subscriber};
use lariat_core::{Cause, Gvk, ObjectKey, TableSize};
use lariat_lease::Leadership;
use lariat_queue::{Add, Lanes as Due, Priority, WaitsFor};
use parking_lot::{Mutex, RwLock};
use tokio::time::{self, Instant};

use super::activity::Activity;
use super::caches::Caches;
use super::feed::Feed;
use super::history::History;
use super::leaving::Leaving;
use super::opened::Opened;
use super::options::ControllerOptions;
use super::pieces::{add_in_pieces, sum};
use super::shards::OwnKeys;
use crate::clients::CallClients;
use crate::current::{self, Caller};
use crate::enqueue::{Enqueue, EnqueueError};
use crate::failures::KEYS;
use crate::hot_loop::Detector;
use crate::lane::{GIVEN_UP, Lane, LaneList, Lanes};
use crate::payload::{Payload, Queue};
use crate::status::{ControllerStatus, HandlerStatus};

/// The controller of a kind: its queue, its lanes, its records, and its use of the cache.
///
/// It lives as long as its slot. While no handler is registered it rests: nothing is [opened](Opened), the queue and
/// the records are empty. It need not be started: keys that are enqueued before the start wait in the queue.
pub(crate) struct ControllerCore {
    gvk: Gvk,
    clients: CallClients,
    /// The number of the factory's next run.
    runs: Arc<AtomicU64>,
    queue: Queue,
    lanes: Arc<Lanes>,
    leaving: Leaving,
    history: History,
    /// Shared with the watchdog, weakly.
    activity: Arc<Activity>,
    detector: Arc<Detector>,
    options: ControllerOptions,
    own_keys: OwnKeys,
    /// The number of the next deletion.
    deletions: Arc<AtomicU64>,
    opened: RwLock<Usage>,
    /// The number of workers; zero while the controller does not run.
    working: AtomicUsize,
    /// Whether the caches were synced when the present stop began.
    synced_at_stop: AtomicBool,
    /// Whether the present stop drains the queue.
    drained_by_stop: AtomicBool,
    /// Whether a stop drains the queue, which changes with it under this lock.
    is_draining: Mutex<bool>,
}

/// The use of a kind.
#[derive(Default)]
struct Usage {
    /// None while the kind rests.
    present: Option<Arc<Opened>>,
    /// The present or the last one, which calls of deregistered handlers keep.
    last: Weak<Opened>,
}

impl ControllerCore {
    pub(crate) fn new(
        gvk: Gvk,
        clients: CallClients,
        options: ControllerOptions,
        runs: Arc<AtomicU64>,
    ) -> Self {
        let activity = Arc::new(Activity::new(gvk.clone()));
        let (queue, lanes) = (options.queue(), Arc::<Lanes>::default());
        let detector = Arc::new(Detector::new(gvk.clone(), options.hot_loop_options()));
        Self {
            clients,
            runs,
            queue,
            lanes,
            leaving: Leaving::default(),
            history: History::new(options.runs_remembered()),
            activity,
            detector,
            own_keys: OwnKeys::new(gvk.clone(), options.shards.clone()),
            gvk,
            options,
            deletions: Arc::default(),
            opened: RwLock::default(),
            working: AtomicUsize::new(0),
            synced_at_stop: AtomicBool::new(false),
            drained_by_stop: AtomicBool::new(false),
            is_draining: Mutex::new(false),
        }
    }

    pub(crate) fn gvk(&self) -> &Gvk {
        &self.gvk
    }

    pub(super) fn clients(&self) -> &CallClients {
        &self.clients
    }

    /// Returns the present use of the kind; none while it rests.
    pub(crate) fn opened(&self) -> Option<Arc<Opened>> {
        self.opened.read().present.clone()
    }

    /// Returns the present use of the kind, or the last one while calls of deregistered handlers are running.
    pub(crate) fn in_use(&self) -> Option<Arc<Opened>> {
        let usage = self.opened.read();
        let (present, last) = (usage.present.clone(), usage.last.clone());
        drop(usage);
        present.or_else(|| last.upgrade().filter(|_| self.leaving.calls() > 0))
    }

    /// Opens the kind, unless it is open; returns its use, and whether it is the given one.
    ///
    /// The slot calls it under its lock.
    pub(super) fn open(&self, made: &Arc<Opened>) -> (Arc<Opened>, bool) {
        let mut usage = self.opened.write();
        if let Some(present) = &usage.present {
            return (Arc::clone(present), false);
        }
        usage.last = Arc::downgrade(made);
        usage.present = Some(Arc::clone(made));
        drop(usage);
        // The owner may be resting.
        self.lanes.notify();
        (Arc::clone(made), true)
    }

    /// Ends the use of the kind, drops the queued keys and empties the records.
    ///
    /// Keys that are being processed stay with their workers. The slot calls it under its lock; the caller
    /// [closes](Opened::close) what is returned after unlocking.
    pub(super) fn rest(&self) -> Option<Arc<Opened>> {
        let opened = self.opened.write().present.take()?;
        opened.end();
        // A stop that ends meanwhile resumes the queue afterwards.
        let is_draining = self.is_draining.lock();
        self.queue.shut_down_now();
        self.queue.reopen();
        if *is_draining {
            // The shutdown has ended the drain.
            self.queue.drain();
        }
        drop(is_draining);
        self.history.clear();
        self.detector.clear();
        Some(opened)
    }

    /// Creates the subscriber that feeds the queue.
    pub(super) fn feed(&self) -> Arc<dyn Subscriber> {
        Arc::new(Feed {
            gvk: self.gvk.clone(),
            queue: self.queue.clone(),
            lanes: Arc::clone(&self.lanes),
            detector: Arc::clone(&self.detector),
            shards: self.options.shards.clone(),
            deletions: Arc::clone(&self.deletions),
        })
    }

    /// Creates the caches that a use of the kind waits for.
    pub(super) fn caches_of(&self, informer: &Informer) -> Caches {
        let (lanes, detector) = (Arc::clone(&self.lanes), Arc::clone(&self.detector));
        Caches::new(informer.optional(), self.queue.clone(), lanes, detector)
    }

    /// Returns the calls of deregistered handlers.
    pub(super) fn leaving(&self) -> &Leaving {
        &self.leaving
    }

    /// Removes a handler, whose calls may still be running; returns whether it was registered.
    pub(crate) fn remove(&self, lane: &Arc<Lane>) -> bool {
        let is_removed = self.lanes.remove(lane);
        if is_removed {
            self.left(std::slice::from_ref(lane));
        }
        is_removed
    }

    /// Removes the handlers whose token is cancelled.
    ///
    /// They are returned, so that the caller drops them last: dropping a handler runs user code, which may panic.
    pub(crate) fn sweep(&self) -> Vec<Arc<Lane>> {
        let swept = self.lanes.sweep();
        if !swept.is_empty() {
            self.left(&swept);
        }
        swept
    }

    /// Forgets the keys that wait for removed handlers, and counts their calls.
    fn left(&self, lanes: &[Arc<Lane>]) {
        for lane in lanes {
            self.queue.forget_lane(lane.id());
        }
        self.leaving.add(lanes);
        // Workers take the places of those that are in such calls.
        self.lanes.notify();
    }

    /// Waits until calls of deregistered handlers have been running for long, and logs them. Call it in a loop.
    pub(super) async fn log_leaving(&self) {
        match self.leaving.next_log() {
            Some(at) => time::sleep_until(at).await,
            None => std::future::pending().await,
        }
        self.leaving.log_long(&self.gvk, &self.activity);
    }

    /// Begins a run, which no stop has ended yet.
    pub(super) fn begin_run(&self) {
        self.synced_at_stop.store(false, Ordering::SeqCst);
        self.drained_by_stop.store(false, Ordering::SeqCst);
    }

    /// Notes whether the caches are synced, and the queue will be drained.
    ///
    /// A stop calls it when it begins, before the caches stop.
    pub(crate) fn note_stop(&self) {
        let synced = self
            .opened()
            .is_some_and(|opened| opened.caches().is_synced());
        self.synced_at_stop.store(synced, Ordering::SeqCst);
        // A kind that is still being read, or whose lease another process has, keeps its keys for the next start.
        let is_drained = self.may_call() && (self.is_working() || synced);
        self.drained_by_stop.store(is_drained, Ordering::SeqCst);
    }

    /// Records whether the owner drains the queue, which the begin of the stop could only foresee.
    pub(super) fn note_drain(&self, is_drained: bool) {
        self.drained_by_stop.store(is_drained, Ordering::SeqCst);
    }

    /// Returns whether the present stop drains the queue.
    pub(crate) fn is_drained_by_stop(&self) -> bool {
        self.drained_by_stop.load(Ordering::SeqCst)
    }

    /// Returns whether the caches were synced when the present stop began.
    pub(super) fn was_synced_at_stop(&self) -> bool {
        self.synced_at_stop.load(Ordering::SeqCst)
    }

    /// Returns the number of the next run.
    pub(super) fn next_run(&self) -> u64 {
        self.runs.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    pub(crate) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    /// Returns whether the controller has workers.
    pub(super) fn is_working(&self) -> bool {
        self.working.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    pub(crate) fn detector(&self) -> &Detector {
        &self.detector
    }

    /// Enqueues a key according to a request.
    pub(crate) fn enqueue(&self, key: &ObjectKey, request: &Enqueue) -> Result<(), EnqueueError> {
        let lanes = self.lanes_of(request, Some(key))?;
        self.enqueue_for(lanes, key, request);
        Ok(())
    }

    /// Enqueues a key for the given lanes, and otherwise according to a request.
    pub(crate) fn enqueue_for(&self, lanes: Due, key: &ObjectKey, request: &Enqueue) {
        // A delay that overflows the clock means never.
        if !request.rate_limited && Instant::now().checked_add(request.after).is_none() {
            return;
        }
        let caller = current::caller();
        let cause = self.cause(request, caller.as_ref());
        tracing::trace!(target: "lariat::queue", kind = %self.gvk(), %key, %cause, after = ?request.after, "queued");
        let payload = Payload::from(cause);
        let add = Add::after(request.after)
            .lanes(lanes)
            .priority(request.priority.unwrap_or(Priority::Normal))
            .payload(payload);
        if request.rate_limited {
            self.queue.add_rate_limited(key.clone(), add)
        } else {
            self.queue.add(key.clone(), add)
        }
    }

    /// Enqueues the key of every object of this process; returns their number.
    pub(crate) fn enqueue_all(&self, request: &Enqueue) -> Result<usize, EnqueueError> {
        let lanes = self.lanes_of(request, None)?;
        let cause = self.cause(request, current::caller().as_ref());
        let priority = request.priority.unwrap_or(Priority::Low);
        let add = |object: &Arc<CachedObject>| {
            let add = Add::after(request.after).lanes(lanes.clone());
            let add = add.priority(priority).payload(cause.clone().into());
            (object.key().clone(), add)
        };
        let Some(opened) = self.opened() else {
            return Ok(0);
        };
        let snapshot = opened.informer().store().snapshot();
        let mut count = 0;
        let own = snapshot.iter().filter(self.own_keys.filter());
        let adds = own.inspect(|_| count += 1).map(add);
        if request.rate_limited {
            // One by one, because the limiter is asked for each key.
            adds.for_each(|(key, add)| self.queue.add_rate_limited(key, add))
        } else {
            add_in_pieces(&self.queue, adds)
        }
        Ok(count)
    }

    /// Returns a request as the cause of a run.
    ///
    /// `caller` is the handler's call in which the request was made, if any.
    fn cause(&self, request: &Enqueue, caller: Option<&Caller>) -> Cause {
        Cause::Enqueued {
            after: request.after,
            by: caller.map(|caller| caller.name(self.gvk())),
            reason: request.because.clone(),
            at: request.at,
            during: caller.map(Caller::causing_run),
        }
    }

    /// Returns the lanes that a request selects.
    fn lanes_of(&self, request: &Enqueue, key: Option<&ObjectKey>) -> Result<Due, EnqueueError> {
        let Some(name) = &request.to else {
            return Ok(Due::ALL);
        };
        let lanes = self.lanes.list();
        let lane = lanes.named(name).map(|lane| lane.id().into());
        lane.ok_or_else(|| EnqueueError::UnknownHandler {
            gvk: self.gvk().clone(),
            key: key.cloned(),
            name: Arc::clone(name),
            handlers: lanes.names(),
        })
    }

    /// Enqueues every object for a new handler, and for no other handler.
    pub(crate) fn replay_for(&self, opened: &Opened, lane: &Lane) {
        self.update_use();
        let cause = Cause::LateHandler {
            handler: Arc::clone(lane.name()),
        };
        // While the cache syncs, the initial list reaches this lane like all others. Once it is synced, a worker may
        // have dequeued a key before the lane was in the list, so every object is enqueued for this lane. The lane was
        // added first: a change in between enqueues a key twice, which merges.
        self.replay(opened, lane, &cause, true);
    }

    /// Enqueues every object for one handler.
    ///
    /// With `as_new`, objects that the handler's predicate rejects as additions are left out.
    pub(crate) fn replay(&self, opened: &Opened, lane: &Lane, cause: &Cause, as_new: bool) {
        let priority = lane.priority(Priority::Low);
        let snapshot = opened.informer().store().snapshot();
        let objects = snapshot
            .iter()
            .filter(self.own_keys.filter())
            .filter(|object| {
                // The initial list would have been filtered in the same way.
                !as_new || lane.wants(&Feed::initial(object))
            });
        let add = |object: &Arc<CachedObject>| {
            let add = Add::now().lanes(lane.id()).priority(priority);
            (object.key().clone(), add.payload(cause.clone().into()))
        };
        add_in_pieces(&self.queue, objects.map(add));
    }

    /// Makes starts wait for the kind if one of its handlers requires that.
    pub(crate) fn update_use(&self) {
        let lanes = self.lanes.list();
        let is_required = lanes.is_empty() || lanes.iter().any(|lane| !lane.is_optional());
        if let Some(opened) = self.opened() {
            opened.require(is_required);
        }
    }

    /// Prepares the queue for a handler that is about to be registered.
    ///
    /// `unfilled` are the relations whose caches it waits for.
    pub(super) fn set_gate(&self, lane: &Lane, unfilled: Vec<u64>) {
        if let Some(most) = lane.limit() {
            self.queue.limit(lane.id(), most);
        }
        if lane.begins_paused() {
            self.queue.close(lane.id(), WaitsFor::Resume);
        }
        self.await_filled(lane, unfilled);
    }

    /// Lets the handlers that are registered wait for their related caches.
    pub(super) fn await_related(&self, opened: &Opened) {
        for lane in self.lanes.list().iter() {
            // Also for one that waits already: relations may have been added since, and the wait begins now.
            self.await_filled(lane, opened.caches().unfilled(lane.name()));
            self.forget_if_removed(lane);
        }
    }

    /// Lets a handler wait for the caches of some relations.
    fn await_filled(&self, lane: &Lane, unfilled: Vec<u64>) {
        if !unfilled.is_empty() {
            lane.awaited().begin(unfilled);
            self.queue.close(lane.id(), WaitsFor::Caches);
        }
    }

    /// Lets no key wait for a handler that was deregistered meanwhile.
    pub(super) fn forget_if_removed(&self, lane: &Lane) {
        if lane.is_closed() {
            self.queue.forget_lane(lane.id());
        }
    }

    /// Ends the pause of a handler and queues its keys; returns whether it was paused.
    pub(crate) fn resume(&self, lane: &Lane) -> bool {
        let Some(keys) = self.queue.open(lane.id(), WaitsFor::Resume) else {
            return false;
        };
        let (kind, handler) = (self.gvk(), lane.name());
        tracing::info!(%kind, %handler, keys, "handler is resumed");
        // The supervisor has not waited for the handler's caches during the pause; it has to begin now.
        self.lanes.notify();
        true
    }

    /// Begins to drain the queue: only keys that are due now are still dequeued.
    pub(crate) fn drain(&self) {
        let mut is_draining = self.is_draining.lock();
        *is_draining = true;
        self.queue.drain();
    }

    /// Ends a drain. Keys that became due meanwhile are ready for the next start.
    pub(crate) fn end_drain(&self) {
        let mut is_draining = self.is_draining.lock();
        *is_draining = false;
        self.queue.resume();
    }

    /// Returns whether no handler is registered.
    pub(crate) fn is_unused(&self) -> bool {
        self.lanes.list().is_empty()
    }

    /// Returns whether the kind is in use and its cache has objects.
    pub(crate) fn has_objects(&self) -> bool {
        let opened = self.opened();
        opened.is_some_and(|opened| !opened.informer().store().is_empty())
    }

    /// Returns whether the cache is empty and no key is queued or being processed.
    pub(crate) fn is_idle(&self) -> bool {
        let queue = self.queue.stats();
        let to_do = queue.depth() + queue.delayed + queue.processing + queue.waiting;
        !self.has_objects() && to_do == 0
    }

    /// Returns the number of keys that a stop still has to process.
    ///
    /// These are the ready keys, those in processing, and those that wait at the limit of a handler.
    pub(crate) fn left_by_stop(&self) -> usize {
        let due = if self.is_drained_by_stop() {
            self.queue.due()
        } else {
            0
        };
        due + self.queue.stats().processing
    }

    /// Returns how many keys only wait for handlers.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.stats().waiting
    }

    /// Returns the keys of the kind that belong to this process.
    pub(super) fn own_keys(&self) -> &OwnKeys {
        &self.own_keys
    }

    /// Returns the leadership that the kind needs, if it needs one.
    pub(crate) fn leadership(&self) -> Option<&Leadership> {
        self.options.leadership.as_ref()
    }

    /// Returns whether this process may call a handler now.
    ///
    /// A process that was suspended and resumes after its renew deadline may not: another process may lead by then. The
    /// task that renews the lease may notice the deadline later than a worker continues, so every call is checked.
    pub(super) fn may_call(&self) -> bool {
        self.leadership().is_none_or(Leadership::leads)
    }

    /// Returns the number of workers: the kind's own, the start's, or the default.
    pub(crate) fn workers(&self, started_with: Option<usize>, default: Option<usize>) -> usize {
        let own = self.options.workers;
        own.or(started_with).or(default).unwrap_or(DEFAULT_WORKERS)
    }

    /// Records the number of running workers; zero when they have ended.
    pub(crate) fn set_working(&self, workers: usize) {
        if self.working.swap(workers, Ordering::Relaxed) == workers {
            return;
        }
        tracing::debug!(target: "lariat::factory", kind = %self.gvk(), workers, "workers");
    }

    /// Returns the counters of a handler.
    pub(crate) fn handler_status(&self, lane: &Lane) -> HandlerStatus {
        self.with_keys(lane.status(), &self.lanes.list())
    }

    /// Adds the numbers of waiting, failing and given up keys.
    fn with_keys(&self, mut status: HandlerStatus, lanes: &LaneList) -> HandlerStatus {
        let mut lanes = lanes.iter();
        let lane = lanes.find(|lane| Arc::ptr_eq(lane.name(), &status.name));
        if let Some(lane) = lane {
            let waits = self.queue.waits(lane.id());
            status.waiting = waits.keys;
            status.waits_for_caches = waits.awaits_caches;
            status.is_paused = waits.is_paused;
            status.failing = self.failing(lane).len();
            status.given_up = self.given_up(lane).len();
        }
        status
    }

    /// Returns the state and the counters of the controller in a use.
    pub(crate) fn status(&self, opened: &Opened) -> ControllerStatus {
        let (handlers, gone) = self.lanes.status();
        let handlers = handlers.into_iter();
        let lanes = self.lanes.list();
        let handlers = handlers.map(|each| self.with_keys(each, &lanes)).collect();
        ControllerStatus {
            cache: opened.informer().status(),
            queue: self.queue.stats(),
            workers: Some(self.working.load(Ordering::Relaxed)).filter(|workers| *workers > 0),
            blocked: self.activity.blocked(),
            leaving: self.leaving.calls(),
            handlers,
            deregistered: gone,
            hot_loops: self.detector.status(),
        }
    }

    /// Appends the sizes of the controller's structures.
    ///
    /// `relations` is the number of relations of the kind: the bound of joined ones.
    pub(crate) fn table_sizes(&self, relations: usize, all: &mut Vec<TableSize>) {
        let kind = self.gvk();
        let queue = self
            .queue
            .memory()
            .map(|of| TableSize::new(of.name, of.entries, of.bound).of(kind));
        all.extend(queue);
        let lanes = self.lanes.list();
        let failing = sum(lanes.iter().map(|lane| (lane.failures().len(), KEYS)));
        let given_up = lanes.iter().map(|lane| (lane.given_up().len(), GIVEN_UP));
        let given_up = sum(given_up);
        let [runs, older] = self.history.table_sizes();
        let opened = self.opened();
        let caches = opened.as_ref().map(|opened| opened.caches());
        let (joined, aside) = caches.map(Caches::table_sizes).unwrap_or_default();
        let unread = caches.map(Caches::unread).unwrap_or_default();
        let sizes = [
            ("runs", runs),
            ("older runs", older),
            ("failing keys", failing),
            ("given up keys", given_up),
            ("suspects", self.detector.table_sizes()),
            ("relations", (joined, relations)),
            ("owners set aside", aside),
            ("unread related objects", unread),
        ];
        all.extend(
            sizes.map(|(what, (entries, bound))| TableSize::new(what, entries, bound).of(kind)),
        );
    }
}

/// The default number of workers; lasso's.
const DEFAULT_WORKERS: usize = 5;

impl fmt::Debug for ControllerCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerCore")
            .field("gvk", &self.gvk)
            .field("queue", &self.queue.stats())
            .finish_non_exhaustive()
    }
}
