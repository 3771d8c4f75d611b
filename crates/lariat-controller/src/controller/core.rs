//! What all handles of a controller share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lariat_cache::{Change, Informer, Subscriber, Subscription};
use lariat_core::{Cause, Gvk, ObjectKey};
use lariat_queue::{Add, Priority, WorkQueue};

use super::options::ControllerOptions;
use super::registration::Registration;
use crate::error::RegisterError;
use crate::handler::AnyHandler;
use crate::lane::Lanes;
use crate::payload::Payload;
use crate::status::ControllerStatus;

pub(crate) type Queue = WorkQueue<ObjectKey, Payload>;

/// A controller that is in use.
pub(crate) struct ControllerCore {
    informer: Informer,
    queue: Queue,
    lanes: Lanes,
    handler_timeout: Option<Duration>,
    /// Feeds the queue for as long as the controller lives.
    _feed: Subscription,
}

impl ControllerCore {
    pub(crate) fn new(informer: Informer, options: &ControllerOptions) -> Self {
        let queue = options.queue();
        let feed = informer.subscribe(Arc::new(Feeder {
            queue: queue.clone(),
            deletions: AtomicU64::new(0),
        }));
        Self {
            informer,
            queue,
            lanes: Lanes::default(),
            handler_timeout: options.handler_timeout,
            _feed: feed,
        }
    }

    pub(crate) fn gvk(&self) -> &Gvk {
        self.informer.gvk()
    }

    pub(crate) fn informer(&self) -> &Informer {
        &self.informer
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    pub(crate) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    pub(crate) fn handler_timeout(&self) -> Option<Duration> {
        self.handler_timeout
    }

    pub(crate) fn enqueue(&self, key: ObjectKey, after: Duration, cause: Cause) {
        let add = Add::after(after).kept();
        self.queue.add(key, add.payload(cause.into()));
    }

    /// Registers a handler, and calls it, alone, for every object there is.
    pub(crate) fn register(
        self: &Arc<Self>,
        name: &str,
        handler: Box<dyn AnyHandler>,
    ) -> Result<Registration, RegisterError> {
        let lane = self.lanes.add(self.gvk(), name, handler)?;
        let cause = Cause::LateHandler {
            handler: Arc::clone(lane.name()),
        };
        // Before the cache is filled there is nothing to replay: every object will come for all lanes.
        // Afterwards, what was queued before this point may have been taken for the earlier lanes.
        self.queue
            .add_all(self.informer.store().keys().into_iter().map(|key| {
                let add = Add::now().lanes(lane.id()).priority(Priority::Low);
                (key, add.payload(cause.clone().into()))
            }));
        Ok(Registration::new(Arc::clone(self), lane))
    }

    pub(crate) fn status(&self) -> ControllerStatus {
        ControllerStatus {
            cache: self.informer.status(),
            queue: self.queue.stats(),
            handlers: self.lanes.status(),
        }
    }
}

/// Puts what the cache tells into the queue.
struct Feeder {
    queue: Queue,
    /// How many deletions there were.
    deletions: AtomicU64,
}

impl Subscriber for Feeder {
    fn changed(&self, changes: &[Change]) {
        let number = || self.deletions.fetch_add(1, Ordering::Relaxed);
        self.queue.add_all(changes.iter().map(|change| {
            let add = Add::now()
                .priority(priority(change))
                .payload(Payload::of(change, number));
            (change.key().clone(), add)
        }));
    }
}

/// What was there when the cache was filled can wait for what happens now, and so can what is told again.
fn priority(change: &Change) -> Priority {
    match change {
        Change::Added { initial: true, .. } | Change::Resynced { .. } => Priority::Low,
        _ => Priority::Normal,
    }
}

impl fmt::Debug for ControllerCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerCore")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
