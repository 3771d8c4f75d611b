//! What all handles of a controller share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use lariat_cache::{CachedObject, Informer, SharedClientFactory, Subscription};
use lariat_core::{Cause, Gvk, ObjectKey, Remembered};
use lariat_flight::{Controlled, Recorder};
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
use crate::current::{self, Caller};
use crate::enqueue::{Enqueue, EnqueueError};
use crate::flight::ControllerFlight;
use crate::handler::CallKind;
use crate::lane::{Lane, Lanes, Limit, Waiting};
use crate::payload::{Payload, Queue};
use crate::sentinel::Watchman;
use crate::status::ControllerStatus;

/// A controller that is in use.
pub(crate) struct ControllerCore {
    /// As an optional use: see `required`.
    informer: Informer,
    /// Makes starts wait for the kind, as long as a handler wants that, or nobody has come yet.
    required: Mutex<Option<Informer>>,
    /// Its tasks, for the controller after this one.
    tasks: TaskTracker,
    /// Those of the one before.
    predecessor: Mutex<Option<TaskTracker>>,
    clients: SharedClientFactory,
    /// The number of the factory's next run.
    runs: Arc<AtomicU64>,
    queue: Queue,
    lanes: Arc<Lanes>,
    history: History,
    failures: Failures,
    activity: Activity,
    flight: Option<ControllerFlight>,
    watchman: Arc<Watchman>,
    options: ControllerOptions,
    own_keys: OwnKeys,
    caches: Caches,
    /// How many keys are handled at a time; zero while it does not run.
    working: AtomicUsize,
    /// Cancelled when nobody needs the controller any more.
    ended: CancellationToken,
    /// Feeds the queue for as long as the controller lives.
    _feed: Subscription,
}

impl ControllerCore {
    pub(crate) fn new(
        informer: Informer,
        clients: SharedClientFactory,
        options: ControllerOptions,
        runs: Arc<AtomicU64>,
        flight: Option<Recorder>,
    ) -> Self {
        let gvk = informer.gvk().clone();
        let (ageing, fair) = options.turns();
        let flight = flight.map(|recorder| ControllerFlight::new(recorder, &gvk, ageing, fair));
        let queue = options.queue(flight.as_ref());
        let lanes = Arc::new(Lanes::new(flight.clone()));
        let failures = Failures::new(gvk.clone());
        let watchman = Arc::new(Watchman::new(gvk.clone(), options.sentinel_options()));
        let own_keys = OwnKeys::new(gvk.clone(), options.shards.clone());
        let caches = Caches::new(
            informer.optional(),
            queue.clone(),
            Arc::clone(&lanes),
            Arc::clone(&watchman),
        );
        let feed = informer.optional().subscribe(Arc::new(Feed {
            gvk,
            queue: queue.clone(),
            lanes: Arc::clone(&lanes),
            watchman: Arc::clone(&watchman),
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
            activity: Activity::default(),
            flight,
            watchman,
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

    /// Returns the caches that are waited for.
    pub(crate) fn caches(&self) -> &Caches {
        &self.caches
    }

    /// Numbers a run.
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

    pub(crate) fn activity(&self) -> &Activity {
        &self.activity
    }

    pub(super) fn flight(&self) -> Option<&ControllerFlight> {
        self.flight.as_ref()
    }

    pub(crate) fn watchman(&self) -> &Watchman {
        &self.watchman
    }

    pub(crate) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Enqueues a key as a request says.
    pub(crate) fn enqueue(&self, key: &ObjectKey, request: &Enqueue) -> Result<(), EnqueueError> {
        let lanes = self.lanes_of(request, Some(key))?;
        self.enqueue_for(lanes, key, request);
        Ok(())
    }

    /// Enqueues a key for some lanes, with the rest as a request says.
    pub(crate) fn enqueue_for(&self, lanes: Due, key: &ObjectKey, request: &Enqueue) {
        let caller = current::caller();
        let payload = Payload::from(self.cause(request, caller.as_ref()));
        let add = Add::after(request.after)
            .kept()
            .lanes(lanes)
            .priority(request.priority.unwrap_or(Priority::Normal))
            .payload(payload.led_by(caller.as_ref()));
        if request.rate_limited {
            self.queue.add_rate_limited(key.clone(), add)
        } else {
            self.queue.add(key.clone(), add)
        }
    }

    /// Enqueues the key of every object of this process as a request says; returns how many there are.
    pub(crate) fn enqueue_all(&self, request: &Enqueue) -> Result<usize, EnqueueError> {
        let lanes = self.lanes_of(request, None)?;
        let cause = self.cause(request, current::caller().as_ref());
        let priority = request.priority.unwrap_or(Priority::Low);
        let add = |object: &Arc<CachedObject>| {
            let add = Add::after(request.after).kept().lanes(lanes.clone());
            let add = add.priority(priority).payload(cause.clone().into());
            (object.key().clone(), add)
        };
        let snapshot = self.informer.store().snapshot();
        let mut count = 0;
        let own = snapshot.iter().filter(self.own_keys.filter());
        let adds = own.inspect(|_| count += 1).map(add);
        if request.rate_limited {
            adds.for_each(|(key, add)| self.queue.add_rate_limited(key, add))
        } else {
            self.add_in_pieces(adds)
        }
        Ok(count)
    }

    /// Returns a request, made in the call of a handler or outside of any, as a cause of work.
    fn cause(&self, request: &Enqueue, caller: Option<&Caller>) -> Cause {
        // Who asks for later means to come again.
        let leads_on = |caller: &Caller| {
            if request.after.is_zero() {
                caller.leads_to()
            } else {
                0
            }
        };
        Cause::Enqueued {
            chain: caller.map_or(0, leads_on),
            by: caller.map(|caller| caller.name(self.gvk())),
            why: request.because.clone(),
            at: request.at,
        }
    }

    /// Adds many keys, so that others get at the queue meanwhile.
    pub(super) fn add_in_pieces(&self, adds: impl Iterator<Item = (ObjectKey, Add<Payload>)>) {
        let mut adds = adds.peekable();
        while adds.peek().is_some() {
            self.queue.add_all(adds.by_ref().take(REPLAY_CHUNK));
        }
    }

    /// Returns which lanes a request is for.
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

    /// Calls a handler that was added, alone, for every object there is.
    pub(crate) fn replay_for(&self, lane: &Lane) {
        self.update_use();
        let cause = Cause::LateHandler {
            handler: Arc::clone(lane.name()),
        };
        // Before the cache is filled there is nothing to replay: every object will come for all lanes.
        // Afterwards, what was queued before this point may have been taken for the earlier lanes.
        self.replay(lane, &cause, true);
    }

    /// Calls one handler for every object there is.
    pub(crate) fn replay(&self, lane: &Lane, cause: &Cause, as_new: bool) {
        let priority = lane.priority(Priority::Low);
        let snapshot = self.informer.store().snapshot();
        let objects = snapshot
            .iter()
            .filter(self.own_keys.filter())
            .filter(|object| {
                // A predicate that would have refused its creation refuses it now.
                !as_new || lane.wants(&Feed::initial(object))
            });
        let add = |object: &Arc<CachedObject>| {
            let add = Add::now().lanes(lane.id()).priority(priority);
            (object.key().clone(), add.payload(cause.clone().into()))
        };
        self.add_in_pieces(objects.map(add));
    }

    /// Makes starts wait for the kind or not, by the handlers there are.
    pub(crate) fn update_use(&self) {
        let lanes = self.lanes.list();
        let is_required = lanes.is_empty() || lanes.iter().any(|lane| !lane.is_optional());
        let informer = is_required.then(|| self.informer.required());
        let before = std::mem::replace(&mut *self.required.lock(), informer);
        drop(before);
        self.failures.forget_gone(&lanes);
    }

    /// Notes whose tasks have to end before this controller takes keys.
    pub(crate) fn follow(&self, predecessor: Option<TaskTracker>) {
        *self.predecessor.lock() = predecessor;
    }

    /// Returns the tracker of the controller's tasks.
    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Waits until no worker of the controller before this one has a key.
    pub(crate) async fn wait_for_predecessor(&self) {
        let predecessor = self.predecessor.lock().clone();
        if let Some(predecessor) = predecessor {
            predecessor.wait().await;
            *self.predecessor.lock() = None;
        }
    }

    /// Stops the workers; the returned future resolves once all have ended.
    pub(crate) fn end(&self) -> TaskTracker {
        self.ended.cancel();
        self.tasks.close();
        self.tasks.clone()
    }

    /// Gives up the place that is kept for a key at the limit of a handler, if one is.
    pub(super) fn pass(&self, lane: &Lane, key: &ObjectKey) {
        let waiting = lane.limit().and_then(|limit| limit.pass(key));
        self.queue_waiting(lane, waiting);
    }

    /// Queues a key whose turn has come in the line before a handler.
    pub(super) fn queue_waiting(&self, lane: &Lane, waiting: Option<Waiting>) {
        if let Some(waiting) = waiting {
            let (key, add) = waiting.into_add(lane.id());
            self.queue.add(key, add);
        }
    }

    /// Queues everything that waits for its turn, so that a drain finds it.
    pub(crate) fn queue_all_waiting(&self) {
        for lane in self.lanes.list().iter() {
            for waiting in lane.limit().into_iter().flat_map(Limit::drain) {
                self.queue_waiting(lane, Some(waiting));
            }
        }
    }

    /// Returns whether there is no handler.
    pub(crate) fn is_unused(&self) -> bool {
        self.lanes.list().is_empty()
    }

    /// Returns whether there is no object, and nothing to do.
    pub(crate) fn is_idle(&self) -> bool {
        let queue = self.queue.stats();
        let to_do = queue.depth() + queue.delayed + queue.processing + self.waiting();
        self.informer.store().is_empty() && to_do == 0
    }

    /// Returns how many keys wait in the lanes, at the limit of a handler or for caches.
    pub(crate) fn waiting(&self) -> usize {
        let lanes = self.lanes.list();
        lanes.iter().map(|lane| lane.waiting()).sum()
    }

    /// Returns which keys of the kind this process handles.
    pub(super) fn own_keys(&self) -> &OwnKeys {
        &self.own_keys
    }

    /// Returns the election of the kind; none if every replica handles the kind.
    pub(crate) fn leadership(&self) -> Option<&Leadership> {
        self.options.leadership.as_ref()
    }

    /// Returns whether this process may call a handler at this moment.
    ///
    /// One that was suspended beyond its deadline may not, and asks before the task that holds the lease has noticed.
    pub(super) fn may_call(&self) -> bool {
        self.leadership().is_none_or(Leadership::leads)
    }

    /// Returns how many keys are handled at a time, if the factory is started with so many for each kind.
    pub(crate) fn workers(&self, started_with: Option<usize>, default: Option<usize>) -> usize {
        let own = self.options.workers;
        own.or(started_with).or(default).unwrap_or(DEFAULT_WORKERS)
    }

    /// Notes how many workers the controller has; zero when they have ended.
    pub(crate) fn set_working(&self, workers: usize) {
        self.working.store(workers, Ordering::Relaxed);
        if let Some(flight) = &self.flight {
            let workers = u32::try_from(workers).unwrap_or(u32::MAX);
            flight.record(match workers {
                0 => Controlled::Stopped {},
                workers => Controlled::Started { workers },
            });
        }
    }

    pub(crate) fn status(&self) -> ControllerStatus {
        let (handlers, gone) = self.lanes.status();
        ControllerStatus {
            cache: self.informer.status(),
            queue: self.queue.stats(),
            workers: Some(self.working.load(Ordering::Relaxed)).filter(|workers| *workers > 0),
            handlers,
            gone,
            hot_loops: self.watchman.status(),
        }
    }

    /// Adds how much is remembered, of a controller whose kind has so many relations.
    pub(crate) fn remembered(&self, relations: usize, all: &mut Vec<Remembered>) {
        let kind = self.gvk();
        let queue = self.queue.memory();
        let queue = queue.map(|of| Remembered::new(of.what, of.entries, of.bound).of(kind));
        all.extend(queue);
        let lanes = self.lanes.list();
        let failing = (self.failures.keys(), KEYS * lanes.len());
        let [runs, older] = self.history.remembered();
        let (joined, aside) = self.caches.remembered();
        let sizes = [
            ("runs", runs),
            ("older runs", older),
            ("failing keys", failing),
            ("suspects", self.watchman.remembered()),
            ("keys in line", sum(lanes.iter().map(|lane| lane.in_line()))),
            ("kept places", sum(lanes.iter().map(|lane| lane.kept()))),
            ("relations", (joined, relations)),
            ("owners set aside", aside),
        ];
        let sizes = sizes.into_iter();
        all.extend(
            sizes.map(|(what, (entries, bound))| Remembered::new(what, entries, bound).of(kind)),
        );
    }
}

impl CallKind for ControllerCore {
    fn informer(&self) -> &Informer {
        &self.informer
    }

    fn clients(&self) -> &SharedClientFactory {
        &self.clients
    }

    fn enqueue(&self, key: &ObjectKey, request: &Enqueue) -> Result<(), EnqueueError> {
        Self::enqueue(self, key, request)
    }
}

/// lasso's.
const DEFAULT_WORKERS: usize = 5;

/// How many keys are queued at a time when a handler is called for all of them.
const REPLAY_CHUNK: usize = 256;

impl fmt::Debug for ControllerCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerCore")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

/// Adds entries and bounds up.
fn sum(sizes: impl Iterator<Item = (usize, usize)>) -> (usize, usize) {
    sizes.fold((0, 0), |(entries, bound), (more, most)| {
        (entries + more, bound + most)
    })
}
