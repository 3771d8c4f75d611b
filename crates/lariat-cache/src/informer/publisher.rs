//! Where changes go: into the store, then to everybody who subscribed, in one order for all.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::store::{CachedObject, Change, Delta, Listing, Store};

/// Somebody who is told of every change of a kind.
///
/// Changes of one object come in their order, each once, beginning with the state at the time of
/// subscribing. The call comes from the reflector, so it must be prompt: hand the keys to a queue.
pub trait Subscriber: Send + Sync + 'static {
    /// Tells of changes, in order. Never called with none.
    fn changed(&self, changes: &[Change]);
}

/// A subscription; dropping it ends it.
#[must_use = "dropping a subscription ends it"]
pub struct Subscription {
    publisher: Weak<Publisher>,
    subscriber: Arc<dyn Subscriber>,
}

/// The one writer of a store and its subscribers.
pub(crate) struct Publisher {
    store: Arc<Store>,
    /// Held while the store changes and the change is told, so that a late subscriber misses nothing
    /// and sees nothing twice.
    subscribers: Mutex<Vec<Arc<dyn Subscriber>>>,
}

impl Publisher {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self {
            store,
            subscribers: Mutex::default(),
        }
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Tells a new subscriber what there is, and from then on what changes.
    pub(crate) fn subscribe(self: &Arc<Self>, subscriber: Arc<dyn Subscriber>) -> Subscription {
        let mut subscribers = self.subscribers.lock();
        let present = |object| Change::Added {
            object,
            initial: true,
        };
        let changes: Vec<Change> = self.store.snapshot().into_iter().map(present).collect();
        if !changes.is_empty() {
            subscriber.changed(&changes);
        }
        subscribers.push(Arc::clone(&subscriber));
        Subscription {
            publisher: Arc::downgrade(self),
            subscriber,
        }
    }

    pub(crate) fn list_page(&self, listing: Listing, page: Vec<CachedObject>) {
        self.publish(|store| store.list_page(listing, page));
    }

    pub(crate) fn end_listing(&self, listing: Listing) {
        self.publish(|store| store.end_listing(listing));
    }

    pub(crate) fn apply(&self, deltas: Vec<Delta>) {
        self.publish(|store| store.apply(deltas));
    }

    fn publish(&self, change: impl FnOnce(&Store) -> Vec<Change>) {
        let subscribers = self.subscribers.lock();
        let changes = change(&self.store);
        if !changes.is_empty() {
            for subscriber in subscribers.iter() {
                subscriber.changed(&changes);
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(publisher) = self.publisher.upgrade() {
            let is_other =
                |subscriber: &Arc<dyn Subscriber>| !Arc::ptr_eq(subscriber, &self.subscriber);
            publisher.subscribers.lock().retain(is_other);
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscription")
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
