//! A kind in use: its caches, and the subscriptions that fill the queue.
//!
//! The queue and the handlers of a kind outlive it. It begins with the first handler or the first enqueued key, and
//! ends with the last handler. Calls that are running by then keep the cache of the kind, and nothing else.

use std::sync::{Arc, Weak};

use lariat_cache::{Informer, Subscription};
use lariat_core::ObjectKey;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::caches::Caches;
use super::core::ControllerCore;
use super::shards::Follower;
use crate::clients::CallClients;
use crate::enqueue::{Enqueue, EnqueueError};
use crate::handler::CallKind;

/// A kind in use, from its first handler to its last one.
pub(crate) struct Opened {
    /// Weak, because the controller holds this.
    core: Weak<ControllerCore>,
    clients: CallClients,
    /// The informer, as a use for which starts do not wait; see `required`.
    informer: Informer,
    /// The informer again, as a use for which starts wait. Present while some handler requires the kind, and until the
    /// first handler is registered.
    required: Mutex<Option<Informer>>,
    caches: Caches,
    /// Follows what the share of this process gains.
    follower: Follower,
    /// The subscription that feeds the queue; none once the use has ended.
    feed: Mutex<Option<Subscription>>,
    /// Cancelled when the use ends. Workers that were spawned for it end after their calls.
    closed: CancellationToken,
}

impl Opened {
    /// Begins a use of the kind. From now on changes of its objects are queued.
    pub(super) fn new(core: &Arc<ControllerCore>, informer: Informer) -> Self {
        let follower = core.own_keys().follow();
        let caches = core.caches_of(&informer);
        // Last, since from here on changes are added to the queue. The feed holds parts of the controller and not the
        // controller itself: the controller owns the subscription, and that would be a cycle.
        let feed = informer.optional().subscribe(core.feed());
        Self {
            core: Arc::downgrade(core),
            clients: core.clients().clone(),
            informer: informer.optional(),
            required: Mutex::new(Some(informer)),
            caches,
            follower,
            feed: Mutex::new(Some(feed)),
            closed: CancellationToken::new(),
        }
    }

    /// Returns the informer of the kind.
    pub(crate) fn informer(&self) -> &Informer {
        &self.informer
    }

    /// Returns the caches this kind waits for.
    pub(crate) fn caches(&self) -> &Caches {
        &self.caches
    }

    /// Returns the follower of what the share of this process gains.
    pub(super) fn follower(&self) -> &Follower {
        &self.follower
    }

    /// Returns the token that is cancelled when the use ends.
    pub(super) fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    /// Marks the use as ended. Call [`close`](Self::close) next, without locks.
    pub(super) fn end(&self) {
        self.closed.cancel();
    }

    /// Ends the subscriptions and the uses of the caches, except that by running calls.
    ///
    /// It may wait for a task that is publishing a change.
    pub(super) fn close(&self) {
        let (feed, required) = (self.feed.lock().take(), self.required.lock().take());
        drop((feed, required));
        self.caches.unrelate_all();
    }

    /// Makes starts wait for the kind, or not.
    pub(super) fn require(&self, is_required: bool) {
        let informer = is_required.then(|| self.informer.required());
        let before = std::mem::replace(&mut *self.required.lock(), informer);
        // Dropped after unlocking, since it may end the use of the cache.
        drop(before);
        // The use may have ended in between.
        if self.closed.is_cancelled() {
            drop(self.required.lock().take());
        }
    }
}

impl CallKind for Opened {
    fn informer(&self) -> &Informer {
        self.informer()
    }

    fn clients(&self) -> &CallClients {
        &self.clients
    }

    fn enqueue(&self, key: &ObjectKey, request: &Enqueue) -> Result<(), EnqueueError> {
        // A call may outlive the use of the kind. The next use begins without its keys.
        let core = self.core.upgrade();
        let core = core.filter(|core| core.opened().is_some());
        core.map_or(Ok(()), |core| core.enqueue(key, request))
    }
}
