//! What all handles of a controller share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use lariat_cache::{Informer, Phase, SharedClientFactory, Subscription};
use lariat_core::{Cause, Gvk, ObjectKey};
use lariat_queue::{Add, Lanes as Due, Priority, WorkQueue};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::feed::Feed;
use super::history::History;
use super::options::ControllerOptions;
use crate::enqueue::{Enqueue, EnqueueError};
use crate::handler::{AnyHandler, HandlerOptions};
use crate::lane::{Lane, Lanes, Waiting};
use crate::payload::Payload;
use crate::related::{AnyRelation, Enqueuer, Joined};
use crate::sentinel::Watchman;
use crate::status::ControllerStatus;

pub(crate) type Queue = WorkQueue<ObjectKey, Payload>;

/// A controller that is in use.
pub(crate) struct ControllerCore {
    informer: Informer,
    clients: SharedClientFactory,
    queue: Queue,
    lanes: Arc<Lanes>,
    history: History,
    watchman: Arc<Watchman>,
    options: ControllerOptions,
    /// What else keys are enqueued for.
    related: Mutex<Vec<Joined>>,
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
    ) -> Self {
        let queue = options.queue();
        let lanes = Arc::new(Lanes::default());
        let gvk = informer.gvk().clone();
        let watchman = Arc::new(Watchman::new(gvk.clone(), options.sentinel_options()));
        let feed = informer.subscribe(Arc::new(Feed {
            gvk,
            queue: queue.clone(),
            lanes: Arc::clone(&lanes),
            watchman: Arc::clone(&watchman),
            deletions: AtomicU64::new(0),
        }));
        Self {
            informer,
            clients,
            queue,
            lanes,
            history: History::new(options.runs_remembered()),
            watchman,
            options,
            related: Mutex::default(),
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

    pub(crate) fn clients(&self) -> &SharedClientFactory {
        &self.clients
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

    pub(crate) fn watchman(&self) -> &Watchman {
        &self.watchman
    }

    pub(crate) fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Enqueues a key as a request says.
    pub(crate) fn enqueue(&self, key: &ObjectKey, request: &Enqueue) -> Result<(), EnqueueError> {
        let lanes = match &request.to {
            None => Due::ALL,
            Some(name) => self.lane_named(name, key)?.id().into(),
        };
        let cause = request.cause(self.gvk());
        let add = Add::after(request.after)
            .kept()
            .lanes(lanes)
            .priority(request.priority)
            .payload(cause.into());
        match request.rate_limited {
            true => self.queue.add_rate_limited(key.clone(), add),
            false => self.queue.add(key.clone(), add),
        }
        Ok(())
    }

    fn lane_named(&self, name: &Arc<str>, key: &ObjectKey) -> Result<Arc<Lane>, EnqueueError> {
        let lanes = self.lanes.list();
        let lane = lanes.named(name).cloned();
        lane.ok_or_else(|| EnqueueError::UnknownHandler {
            gvk: self.gvk().clone(),
            key: key.clone(),
            name: Arc::clone(name),
            handlers: lanes.names(),
        })
    }

    /// Registers a handler whose name was checked, and calls it, alone, for every object there is.
    pub(crate) fn register(
        &self,
        name: &str,
        handler: Box<dyn AnyHandler>,
        options: HandlerOptions,
    ) -> Arc<Lane> {
        self.lanes.sweep();
        let lane = self.lanes.add(name, handler, options);
        let cause = Cause::LateHandler {
            handler: Arc::clone(lane.name()),
        };
        // Before the cache is filled there is nothing to replay: every object will come for all lanes.
        // Afterwards, what was queued before this point may have been taken for the earlier lanes.
        self.replay(&lane, &cause, true);
        lane
    }

    /// Calls one handler for every object there is.
    pub(crate) fn replay(&self, lane: &Lane, cause: &Cause, as_new: bool) {
        let priority = lane.priority(Priority::Low);
        let snapshot = self.informer.store().snapshot();
        let objects = snapshot.iter().filter(|object| {
            // A predicate that would have refused its creation refuses it now.
            !as_new || lane.wants(&Feed::initial(object))
        });
        self.queue.add_all(objects.map(|object| {
            let add = Add::now().lanes(lane.id()).priority(priority);
            (object.key().clone(), add.payload(cause.clone().into()))
        }));
    }

    /// Begins to enqueue keys for changes of another kind.
    pub(crate) fn relate(&self, relation: &dyn AnyRelation) {
        let joined = relation.join(Enqueuer {
            client: Arc::clone(self.informer.client()),
            queue: self.queue.clone(),
            lanes: Arc::clone(&self.lanes),
        });
        self.related.lock().push(joined);
        self.lanes.tell();
    }

    pub(crate) fn unrelate(&self, number: u64) {
        let mut related = self.related.lock();
        let ended: Vec<Joined> = related
            .extract_if(.., |each| each.number == number)
            .collect();
        drop(related);
        // Subscriptions are dropped behind the lock.
        drop(ended);
    }

    /// Waits until the cache of the kind and those of related kinds are filled; `false` if some kind is not
    /// served and not waited for.
    pub(crate) async fn synced(&self) -> bool {
        let related: Vec<Informer> = self
            .related
            .lock()
            .iter()
            .map(|joined| joined.informer().clone())
            .collect();
        for informer in related.iter().chain([&self.informer]) {
            if !informer.synced().await {
                return false;
            }
        }
        true
    }

    /// Returns whether the cache of the kind and those of related kinds are filled now.
    pub(crate) fn is_synced(&self) -> bool {
        let related = self.related.lock();
        let informers = related.iter().map(Joined::informer).chain([&self.informer]);
        let phases = informers.map(|informer| informer.status().phase);
        phases.into_iter().all(|phase| phase == Phase::Synced)
    }

    /// Tells related objects again whose content was not there when they were told first. Ends once it is, or
    /// never if there are none.
    pub(crate) async fn read_unread(&self) {
        let unread: Vec<(u64, Informer)> = self
            .related
            .lock()
            .iter()
            .filter(|joined| joined.has_unread())
            .map(|joined| (joined.number, joined.informer().clone()))
            .collect();
        if unread.is_empty() {
            return std::future::pending().await;
        }
        for (number, informer) in unread {
            informer.synced().await;
            let related = self.related.lock();
            if let Some(joined) = related.iter().find(|joined| joined.number == number) {
                joined.replay();
            }
        }
    }

    /// Queues a key whose turn has come in the line before a handler.
    pub(crate) fn queue_waiting(&self, lane: &Lane, waiting: Option<Waiting>) {
        if let Some(Waiting {
            key,
            payload,
            priority,
        }) = waiting
        {
            let add = Add::now().lanes(lane.id()).priority(priority);
            self.queue.add(key, add.payload(payload));
        }
    }

    /// Queues everything that waits for its turn, so that a drain finds it.
    pub(crate) fn queue_all_waiting(&self) {
        for lane in self.lanes.list().iter() {
            for waiting in lane.limit().into_iter().flat_map(|limit| limit.dismiss()) {
                self.queue_waiting(lane, Some(waiting));
            }
        }
    }

    /// Returns whether there is no object, and nothing to do.
    pub(crate) fn is_idle(&self) -> bool {
        let queue = self.queue.stats();
        self.informer.store().is_empty() && queue.depth() + queue.delayed + queue.held == 0
    }

    /// Returns how many keys are handled at a time, if the factory is started with so many for each kind.
    pub(crate) fn workers(&self, started_with: Option<usize>, default: Option<usize>) -> usize {
        let own = self.options.workers;
        own.or(started_with).or(default).unwrap_or(DEFAULT_WORKERS)
    }

    /// Notes how many workers the controller has.
    pub(crate) fn set_working(&self, workers: usize) {
        self.working.store(workers, Ordering::Relaxed);
    }

    pub(crate) fn status(&self) -> ControllerStatus {
        ControllerStatus {
            cache: self.informer.status(),
            queue: self.queue.stats(),
            workers: Some(self.working.load(Ordering::Relaxed)).filter(|workers| *workers > 0),
            handlers: self.lanes.status(),
            circles: self.watchman.status(),
        }
    }
}

/// lasso's.
const DEFAULT_WORKERS: usize = 5;

impl fmt::Debug for ControllerCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerCore")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
