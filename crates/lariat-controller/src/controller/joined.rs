//! The relations of a controller: other kinds whose changes enqueue its keys.

use std::sync::Arc;

use lariat_cache::{CachedObject, Change, Informer, KindClient, Subscriber, Subscription};

use crate::hot_loop::Detector;
use crate::lane::Lanes;
use crate::payload::Queue;

/// A relation, with its view type erased.
///
/// It belongs to a slot. Whenever the slot has a controller in use, the relation is joined.
pub(crate) trait AnyRelation: Send + Sync {
    /// Returns a number that identifies the relation in the process.
    fn number(&self) -> u64;

    /// Returns whether the relation enqueues keys for the handler of this name.
    fn concerns(&self, handler: &str) -> bool;

    /// Returns whether it reads more of the related objects than their metadata.
    fn needs_content(&self) -> bool;

    /// Subscribes to the related kind and starts to enqueue keys.
    fn join(self: Arc<Self>, target: Enqueuer) -> Joined;
}

/// An active relation. Dropping it ends the subscription.
pub(crate) struct Joined {
    pub(crate) relation: Arc<dyn AnyRelation>,
    pub(crate) informer: Informer,
    pub(crate) feed: Arc<dyn Unread>,
    pub(crate) _subscription: Subscription,
}

/// The parts of a controller that a relation needs to enqueue keys.
///
/// It holds no informer of the controller's kind: that would keep the kind's cache in use.
pub(crate) struct Enqueuer {
    pub(crate) client: Arc<KindClient>,
    pub(crate) queue: Queue,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) detector: Arc<Detector>,
}

/// A relation's subscriber, with what it could not enqueue yet.
///
/// An object cannot be mapped while only its metadata is cached and the map reads content. An owner cannot be enqueued
/// until the scope of its kind is known.
pub(crate) trait Unread: Subscriber {
    /// Returns whether an object could not be mapped because its content is not cached.
    fn has_unread(&self) -> bool;

    /// Forgets that objects could not be mapped, before they are published again.
    fn forget_unread(&self);

    /// Ignores objects without content from now on.
    fn give_up(&self);

    /// Enqueues the owners that wait for the scope of their kind.
    ///
    /// From now on the scope is taken as known, and no owner waits.
    fn place_owners(&self);

    /// Returns the number of waiting owners, and its bound.
    fn aside(&self) -> (usize, usize);
}

impl Joined {
    /// Returns the informer of the related kind.
    pub(crate) fn informer(&self) -> &Informer {
        &self.informer
    }

    /// Enqueues the owners that wait until the scope of their kind is known.
    pub(crate) fn place_owners(&self) {
        self.feed.place_owners();
    }

    /// Returns the number of waiting owners, and its bound.
    pub(crate) fn aside(&self) -> (usize, usize) {
        self.feed.aside()
    }

    /// Returns whether objects must be published again once their content is cached.
    pub(crate) fn has_unread(&self) -> bool {
        self.feed.has_unread()
    }

    /// Publishes every object of the related kind again.
    pub(crate) fn replay(&self) {
        let snapshot = self.informer.store().snapshot();
        let initial = |object: &Arc<CachedObject>| Change::Added {
            object: Arc::clone(object),
            initial: true,
        };
        let changes: Vec<Change> = snapshot.iter().map(initial).collect();
        self.feed.forget_unread();
        self.feed.changed(&changes);
        // Content is still missing although the cache is synced, so the kind is stored on demand. Waiting would never
        // end.
        if self.feed.has_unread() {
            self.feed.give_up();
            self.feed.forget_unread();
            let kind = self.informer.gvk();
            tracing::warn!(%kind, "a relation reads content that is not cached; make it read Metadata");
        }
    }
}
