//! The relations of a controller: other kinds whose changes enqueue its keys.

use std::sync::Arc;

use lariat_cache::{CachedObject, Change, Informer, KindClient, Subscriber, Subscription};

use crate::lane::Lanes;
use crate::payload::Queue;
use crate::sentinel::Watchman;

/// A relation, with its view type erased.
pub(crate) trait AnyRelation: Send + Sync {
    fn number(&self) -> u64;

    /// Returns whether the relation calls the handler of this name.
    fn concerns(&self, handler: &str) -> bool;

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

/// What a relation needs to enqueue keys.
pub(crate) struct Enqueuer {
    pub(crate) client: Arc<KindClient>,
    pub(crate) queue: Queue,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) watchman: Arc<Watchman>,
}

/// A relation's subscriber, and what it could not enqueue yet.
///
/// Either only the metadata of a related object was cached, or it was not known whether the owners have a namespace.
pub(crate) trait Unread: Subscriber {
    fn has_unread(&self) -> bool;

    fn forget_unread(&self);

    /// From now on maps related objects by their metadata if they have no content.
    fn give_up(&self);

    /// Enqueues the owners that wait for the scope of their kind, and keeps none waiting from now on.
    fn place_owners(&self);
    /// Returns how many owners are set aside, and how many at most.
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

    /// Returns how many owners wait, and their bound.
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
        // A kind that is stored on demand never caches content, so waiting for it would not end.
        if self.feed.has_unread() {
            self.feed.give_up();
            self.feed.forget_unread();
            let kind = self.informer.gvk();
            tracing::warn!(%kind, "a relation reads content that is not cached; make it read Metadata");
        }
    }
}
