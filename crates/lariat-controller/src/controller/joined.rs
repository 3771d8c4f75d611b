//! Relations as a controller has them: what else its keys are enqueued for.

use std::sync::Arc;

use lariat_cache::{CachedObject, Change, Informer, KindClient, Subscriber, Subscription};

use crate::lane::Lanes;
use crate::payload::Queue;
use crate::sentinel::Watchman;

/// A relation whose view is forgotten.
pub(crate) trait AnyRelation: Send + Sync {
    fn number(&self) -> u64;

    /// Returns whether a handler of some name is called because of it.
    fn concerns(&self, handler: &str) -> bool;

    /// Begins to enqueue.
    fn join(self: Arc<Self>, target: Enqueuer) -> Joined;
}

/// A relation at work, until it is dropped.
pub(crate) struct Joined {
    pub(crate) relation: Arc<dyn AnyRelation>,
    pub(crate) informer: Informer,
    pub(crate) feed: Arc<dyn Unread>,
    pub(crate) _subscription: Subscription,
}

/// What keys are enqueued with.
pub(crate) struct Enqueuer {
    pub(crate) client: Arc<KindClient>,
    pub(crate) queue: Queue,
    pub(crate) lanes: Arc<Lanes>,
    pub(crate) watchman: Arc<Watchman>,
}

/// What could not be enqueued yet, because of some objects only the metadata was there, or because it was not known
/// whether their owners have a namespace.
pub(crate) trait Unread: Subscriber {
    fn has_unread(&self) -> bool;

    fn forget_unread(&self);

    /// Reads of this kind what can be read of metadata, from now on.
    fn give_up(&self);

    /// Enqueues the owners that were set aside, by what is known of their kind now, and sets none aside from now on.
    fn place_owners(&self);
    /// Returns how many owners are set aside, and how many at most.
    fn aside(&self) -> (usize, usize);
}

impl Joined {
    /// Returns the cache that is watched for the sake of another kind.
    pub(crate) fn informer(&self) -> &Informer {
        &self.informer
    }

    /// Enqueues the owners that were set aside because it was not known whether they have a namespace.
    pub(crate) fn place_owners(&self) {
        self.feed.place_owners();
    }

    /// Returns how many owners are set aside, and how many at most.
    pub(crate) fn aside(&self) -> (usize, usize) {
        self.feed.aside()
    }

    /// Returns whether objects have to be reported again once their content is there.
    pub(crate) fn has_unread(&self) -> bool {
        self.feed.has_unread()
    }

    /// Publishes every object again.
    pub(crate) fn replay(&self) {
        let snapshot = self.informer.store().snapshot();
        let initial = |object: &Arc<CachedObject>| Change::Added {
            object: Arc::clone(object),
            initial: true,
        };
        let changes: Vec<Change> = snapshot.iter().map(initial).collect();
        self.feed.forget_unread();
        self.feed.changed(&changes);
        // A kind that is kept on demand has no content to wait for.
        if self.feed.has_unread() {
            self.feed.give_up();
            self.feed.forget_unread();
            let kind = self.informer.gvk();
            tracing::warn!(%kind, "a relation reads content that is not cached; let it read Metadata");
        }
    }
}
