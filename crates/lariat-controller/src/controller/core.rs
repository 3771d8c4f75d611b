//! The state that all handles of a controller share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use lariat_cache::{CachedObject, Informer, Subscription};
use lariat_core::{Cause, Gvk, ObjectKey, TableSize};
use lariat_lease::Leadership;
use lariat_queue::{Add, Lanes as Due, Priority};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::activity::Activity;
use super::caches::Caches;
use super::failures::{Failures, KEYS};
use super::feed::Feed;
use super::history::History;
use super::options::ControllerOptions;
use super::shards::OwnKeys;
use crate::clients::CallClients;
use crate::current::{self, Caller};
use crate::enqueue::{Enqueue, EnqueueError};
use crate::handler::CallKind;
use crate::hot_loop::Detector;
use crate::lane::{GIVEN_UP, Lane, LaneList, Lanes, Limit, Waiting};
use crate::payload::{Payload, Queue};
use crate::status::{ControllerStatus, HandlerStatus};

/// A controller in use: its cache, its queue, its lanes, and its records.
///
/// It is created without being started: keys that are enqueued before the start wait in the queue.
pub(crate) struct ControllerCore {
    /// The informer, as a use for which starts do not wait; see `required`.
    informer: Informer,
    /// The informer again, as a use for which starts wait. Present while some handler requires the kind, and until the
    /// first handler is registered.
    required: Mutex<Option<Informer>>,
    /// The tasks of this controller. The next controller of the kind waits for them before it dequeues a key.
    tasks: TaskTracker,
    /// The tasks of the previous controller of the kind, until they have ended.
    predecessor: Mutex<Option<TaskTracker>>,
    clients: CallClients,
    /// The number of the factory's next run.
    runs: Arc<AtomicU64>,
    queue: Queue,
    lanes: Arc<Lanes>,
    history: History,
    failures: Failures,
    /// Shared with the watchdog, weakly.
    activity: Arc<Activity>,
    detector: Arc<Detector>,
    options: ControllerOptions,
    own_keys: OwnKeys,
    caches: Caches,
    /// The number of workers; zero while the controller does not run.
    working: AtomicUsize,
    /// Cancelled when the last handler is deregistered.
    ended: CancellationToken,
    /// The subscription that feeds the queue. Dropping it ends the feed.
    _feed: Subscription,
}

impl ControllerCore {
    pub(crate) fn new(
        informer: Informer,
        clients: CallClients,
        options: ControllerOptions,
        runs: Arc<AtomicU64>,
    ) -> Self {
        let gvk = informer.gvk().clone();
        let activity = Arc::new(Activity::new(gvk.clone()));
        let queue = options.queue();
        let lanes = Arc::<Lanes>::default();
        let failures = Failures::new(gvk.clone());
        let detector = Arc::new(Detector::new(gvk.clone(), options.hot_loop_options()));
        let own_keys = OwnKeys::new(&informer, options.shards.clone());
        let caches = Caches::new(
            informer.optional(),
            queue.clone(),
            Arc::clone(&lanes),
            Arc::clone(&detector),
        );
        // Last, since from here on changes are added to the queue. The feed holds parts of the controller and not the
        // controller itself: the controller owns the subscription, and that would be a cycle.
        let feed = informer.optional().subscribe(Arc::new(Feed {
            gvk,
            queue: queue.clone(),
            lanes: Arc::clone(&lanes),
            detector: Arc::clone(&detector),
            shards: options.shards.clone(),
            deletions: AtomicU64::new(0),
        }));
        Self {
            informer: informer.optional(),
            required: Mutex::new(Some(informer)),
            tasks: TaskTracker::new(),
            predecessor: Mutex::default(),
            clients,
            runs,
            queue,
            lanes,
            history: History::new(options.runs_remembered()),
            failures,
            activity,
            detector,
            options,
            own_keys,
            caches,
            working: AtomicUsize::new(0),
            ended: CancellationToken::new(),
            _feed: feed,
        }
    }

    pub(crate) fn gvk(&self) -> &Gvk {
        self.informer.gvk()
    }

    pub(crate) fn informer(&self) -> &Informer {
        &self.informer
    }

    /// Returns the caches this controller waits for.
    pub(crate) fn caches(&self) -> &Caches {
        &self.caches
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

    pub(super) fn failures(&self) -> &Failures {
        &self.failures
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

    pub(crate) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Enqueues a key according to a request.
    pub(crate) fn enqueue(&self, key: &ObjectKey, request: &Enqueue) -> Result<(), EnqueueError> {
        let lanes = self.lanes_of(request, Some(key))?;
        self.enqueue_for(lanes, key, request);
        Ok(())
    }

    /// Enqueues a key for the given lanes, and otherwise according to a request.
    pub(crate) fn enqueue_for(&self, lanes: Due, key: &ObjectKey, request: &Enqueue) {
        let caller = current::caller();
        let payload = Payload::from(self.cause(request, caller.as_ref()));
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
        let snapshot = self.informer.store().snapshot();
        let mut count = 0;
        let own = snapshot.iter().filter(self.own_keys.filter());
        let adds = own.inspect(|_| count += 1).map(add);
        if request.rate_limited {
            // One by one, because the limiter is asked for each key.
            adds.for_each(|(key, add)| self.queue.add_rate_limited(key, add))
        } else {
            self.add_in_pieces(adds)
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

    /// Adds keys in chunks, so that workers can take the queue's lock in between.
    pub(super) fn add_in_pieces(&self, adds: impl Iterator<Item = (ObjectKey, Add<Payload>)>) {
        add_in_pieces(&self.queue, adds);
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
    pub(crate) fn replay_for(&self, lane: &Lane) {
        self.update_use();
        let cause = Cause::LateHandler {
            handler: Arc::clone(lane.name()),
        };
        // While the cache syncs, the initial list reaches this lane like all others. Once it is synced, a worker may
        // have dequeued a key before the lane was in the list, so every object is enqueued for this lane. The lane was
        // added first: a change in between enqueues a key twice, which merges.
        self.replay(lane, &cause, true);
    }

    /// Enqueues every object for one handler.
    ///
    /// With `as_new`, objects that the handler's predicate rejects as additions are left out.
    pub(crate) fn replay(&self, lane: &Lane, cause: &Cause, as_new: bool) {
        let priority = lane.priority(Priority::Low);
        let snapshot = self.informer.store().snapshot();
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
        self.add_in_pieces(objects.map(add));
    }

    /// Makes starts wait for the kind if one of its handlers requires that.
    pub(crate) fn update_use(&self) {
        let lanes = self.lanes.list();
        let is_required = lanes.is_empty() || lanes.iter().any(|lane| !lane.is_optional());
        let informer = is_required.then(|| self.informer.required());
        let before = std::mem::replace(&mut *self.required.lock(), informer);
        // Dropped after unlocking, since it may end the use of the cache.
        drop(before);
        self.failures.forget_gone(&lanes);
    }

    /// Sets the tasks that must end before this controller dequeues keys.
    pub(crate) fn follow(&self, predecessor: Option<TaskTracker>) {
        *self.predecessor.lock() = predecessor;
    }

    /// Returns the tracker of the controller's tasks.
    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Waits until the workers of the predecessor have ended.
    pub(crate) async fn wait_for_predecessor(&self) {
        let predecessor = self.predecessor.lock().clone();
        if let Some(predecessor) = predecessor {
            predecessor.wait().await;
            *self.predecessor.lock() = None;
        }
    }

    /// Stops the workers; the returned tracker waits for them.
    pub(crate) fn end(&self) -> TaskTracker {
        self.ended.cancel();
        // A tracker that is not closed never resolves, even without tasks.
        self.tasks.close();
        self.tasks.clone()
    }

    /// Releases the place that a handler's limit reserves for a key, if any.
    pub(super) fn pass(&self, lane: &Lane, key: &ObjectKey) {
        if let Some(limit) = lane.limit() {
            limit.pass(key, |next| self.queue_waiting(lane, next));
        }
    }

    /// Queues a key that has waited at a handler's limit.
    pub(super) fn queue_waiting(&self, lane: &Lane, waiting: Waiting) {
        let (key, add) = waiting.into_add(lane.id());
        self.queue.add(key, add);
    }

    /// Ends the pause of a handler and queues its keys; returns whether it was paused.
    pub(crate) fn resume(&self, lane: &Lane) -> bool {
        let Some(waiting) = lane.hold().resume() else {
            return false;
        };
        let (kind, handler, keys) = (self.gvk(), lane.name(), waiting.len());
        tracing::info!(%kind, %handler, keys, "handler is resumed");
        self.add_in_pieces(waiting.into_iter().map(|each| each.into_add(lane.id())));
        // The supervisor has not waited for the handler's caches during the pause; it has to begin now.
        self.lanes.notify();
        true
    }

    /// Queues the keys that wait at the limits of handlers, for a drain.
    pub(crate) fn queue_all_waiting(&self) {
        for lane in self.lanes.list().iter() {
            for waiting in lane.limit().into_iter().flat_map(Limit::drain) {
                self.queue_waiting(lane, waiting);
            }
        }
    }

    /// Returns whether no handler is registered.
    pub(crate) fn is_unused(&self) -> bool {
        self.lanes.list().is_empty()
    }

    /// Returns whether the cache is empty and no key is queued or being processed.
    pub(crate) fn is_idle(&self) -> bool {
        let queue = self.queue.stats();
        let to_do = queue.depth() + queue.delayed + queue.processing + self.waiting();
        self.informer.store().is_empty() && to_do == 0
    }

    /// Returns how many keys wait at the limit of a handler or for caches.
    pub(crate) fn waiting(&self) -> usize {
        let lanes = self.lanes.list();
        lanes.iter().map(|lane| lane.waiting()).sum()
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
        self.working.store(workers, Ordering::Relaxed);
    }

    /// Returns the counters of a handler.
    pub(crate) fn handler_status(&self, lane: &Lane) -> HandlerStatus {
        self.with_keys(lane.status(), &self.lanes.list())
    }

    /// Adds the numbers of failing and given up keys.
    fn with_keys(&self, mut status: HandlerStatus, lanes: &LaneList) -> HandlerStatus {
        let mut lanes = lanes.iter();
        let lane = lanes.find(|lane| Arc::ptr_eq(lane.name(), &status.name));
        if let Some(lane) = lane {
            status.failing = self.failing(lane).len();
            status.given_up = self.given_up(lane).len();
        }
        status
    }

    /// Returns the state and the counters of the controller.
    pub(crate) fn status(&self) -> ControllerStatus {
        let (handlers, gone) = self.lanes.status();
        let handlers = handlers.into_iter();
        let lanes = self.lanes.list();
        let handlers = handlers.map(|each| self.with_keys(each, &lanes)).collect();
        ControllerStatus {
            cache: self.informer.status(),
            queue: self.queue.stats(),
            workers: Some(self.working.load(Ordering::Relaxed)).filter(|workers| *workers > 0),
            blocked: self.activity.blocked(),
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
        let failing = (self.failures.keys(), KEYS * lanes.len());
        let given_up = lanes.iter().map(|lane| (lane.given_up().len(), GIVEN_UP));
        let given_up = sum(given_up);
        let [runs, older] = self.history.table_sizes();
        let (joined, aside) = self.caches.table_sizes();
        let sizes = [
            ("runs", runs),
            ("older runs", older),
            ("failing keys", failing),
            ("given up keys", given_up),
            ("suspects", self.detector.table_sizes()),
            ("keys in line", sum(lanes.iter().map(|lane| lane.in_line()))),
            ("kept places", sum(lanes.iter().map(|lane| lane.kept()))),
            ("relations", (joined, relations)),
            ("owners set aside", aside),
            ("unread related objects", self.caches.unread()),
        ];
        all.extend(
            sizes.map(|(what, (entries, bound))| TableSize::new(what, entries, bound).of(kind)),
        );
    }
}

impl CallKind for ControllerCore {
    fn informer(&self) -> &Informer {
        &self.informer
    }

    fn clients(&self) -> &CallClients {
        &self.clients
    }

    fn enqueue(&self, key: &ObjectKey, request: &Enqueue) -> Result<(), EnqueueError> {
        Self::enqueue(self, key, request)
    }
}

/// The default number of workers; lasso's.
const DEFAULT_WORKERS: usize = 5;

/// How many keys are added under one lock when all objects are enqueued.
const REPLAY_CHUNK: usize = 256;

impl fmt::Debug for ControllerCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerCore")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

/// Adds many keys in pieces, so that workers can take the queue's lock in between.
pub(super) fn add_in_pieces(queue: &Queue, adds: impl Iterator<Item = (ObjectKey, Add<Payload>)>) {
    let mut adds = adds.peekable();
    while adds.peek().is_some() {
        queue.add_all(adds.by_ref().take(REPLAY_CHUNK));
    }
}

/// Sums up entries and bounds.
pub(super) fn sum(sizes: impl Iterator<Item = (usize, usize)>) -> (usize, usize) {
    sizes.fold((0, 0), |(entries, bound), (more, most)| {
        (entries + more, bound + most)
    })
}
