//! The relations of a controller: other kinds whose changes enqueue its keys.

use std::sync::Arc;

use lariat_cache::{
    CachedObject, Change, ContentHold, Informer, KindClient, Subscriber, Subscription,
};

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
    /// Keeps the content cached that the relation reads; `None` if it reads metadata.
    pub(crate) _content: Option<ContentHold>,
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
    /// Returns the number of objects that wait to be mapped until content is cached.
    fn unread(&self) -> usize;

    /// Takes the objects that could not be mapped and can be now.
    fn take_readable(&self) -> Vec<Arc<CachedObject>>;

    /// Enqueues the owners that wait for the scope of their kind.
    ///
    /// From now on the scope is taken as known, and no owner waits.
    fn place_owners(&self);

    /// Returns the number of waiting owners, and its bound.
    fn aside(&self) -> (usize, usize);
}

impl Joined {
    /// Publishes the objects again whose content is cached by now.
    ///
    /// Returns whether there were some, or none is left.
    pub(crate) fn replay(&self) -> bool {
        let initial = |object| Change::Added {
            object,
            initial: true,
        };
        let readable = self.feed.take_readable().into_iter();
        let changes: Vec<Change> = readable.map(initial).collect();
        self.feed.changed(&changes);
        !changes.is_empty() || self.feed.unread() == 0
    }
}
