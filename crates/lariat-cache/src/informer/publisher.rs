//! Where changes go: into the store, then to everybody who subscribed, in one order for all.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use lariat_core::Gvk;
use parking_lot::{Mutex, ReentrantMutex};

use crate::store::{CachedObject, Change, Delta, Listing, Store};

/// Somebody who is told of every change of a kind.
///
/// Changes of one object come in their order, each once, beginning with the state at the time of
/// subscribing. The call comes from the reflector, so it must be prompt and must not wait for other
/// threads: hand the keys to a queue. From within it, subscribing and ending subscriptions are allowed.
/// A call that panics is reported in the log and disturbs nobody else; what it was told is not told
/// again.
pub trait Subscriber: Send + Sync + 'static {
    /// Tells of changes, in order. Never called with none.
    fn changed(&self, changes: &[Change]);
}

/// A subscription; dropping it ends it. A call that is under way on another thread is not waited for.
#[must_use = "dropping a subscription ends it"]
pub struct Subscription {
    publisher: Weak<Publisher>,
    subscriber: Arc<dyn Subscriber>,
}

/// The one writer of a store and its subscribers.
pub(crate) struct Publisher {
    kind: Gvk,
    store: Arc<Store>,
    /// How many lists were begun.
    lists: AtomicU32,
    /// Held while the store changes and the change is told, so that a late subscriber misses nothing
    /// and sees nothing twice. Reentrant, for subscribers that subscribe another.
    order: ReentrantMutex<()>,
    subscribers: Mutex<Subscribers>,
}

type Subscribers = Arc<[Arc<dyn Subscriber>]>;

impl Publisher {
    pub(crate) fn new(kind: Gvk, store: Arc<Store>) -> Self {
        Self {
            kind,
            store,
            lists: AtomicU32::new(0),
            order: ReentrantMutex::new(()),
            subscribers: Mutex::new(Arc::default()),
        }
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Tells a new subscriber what there is, and from then on what changes.
    pub(crate) fn subscribe(self: &Arc<Self>, subscriber: Arc<dyn Subscriber>) -> Subscription {
        let _order = self.order.lock();
        let present = |object| Change::Added {
            object,
            initial: true,
        };
        let changes: Vec<Change> = self.store.snapshot().into_iter().map(present).collect();
        self.tell(&*subscriber, &changes);
        let mut subscribers = self.subscribers.lock();
        *subscribers = subscribers.iter().chain([&subscriber]).cloned().collect();
        Subscription {
            publisher: Arc::downgrade(self),
            subscriber,
        }
    }

    /// Begins a list; one that is given up is simply never ended.
    pub(crate) fn begin_listing(&self, initial: bool) -> Listing {
        Listing::after(self.lists.fetch_add(1, Ordering::Relaxed), initial)
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
        let _order = self.order.lock();
        let changes = change(&self.store);
        let subscribers = Arc::clone(&self.subscribers.lock());
        for subscriber in subscribers.iter() {
            // Somebody told before may have ended the subscription.
            if self.is_subscribed(subscriber, &subscribers) {
                self.tell(&**subscriber, &changes);
            }
        }
    }

    /// Returns whether one of those who were subscribed at some time still is.
    fn is_subscribed(&self, subscriber: &Arc<dyn Subscriber>, then: &Subscribers) -> bool {
        let now = self.subscribers.lock();
        Arc::ptr_eq(&now, then) || now.iter().any(|each| Arc::ptr_eq(each, subscriber))
    }

    /// Tells one subscriber, whose panic must not silence the kind for the others.
    fn tell(&self, subscriber: &dyn Subscriber, changes: &[Change]) {
        if changes.is_empty() {
            return;
        }
        let told = catch_unwind(AssertUnwindSafe(|| subscriber.changed(changes)));
        if told.is_err() {
            let (kind, changes) = (&self.kind, changes.len());
            tracing::error!(%kind, changes, "a subscriber panicked");
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(publisher) = self.publisher.upgrade() {
            let is_other =
                |subscriber: &Arc<dyn Subscriber>| !Arc::ptr_eq(subscriber, &self.subscriber);
            let mut subscribers = publisher.subscribers.lock();
            *subscribers = subscribers
                .iter()
                .filter(|each| is_other(each))
                .cloned()
                .collect();
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
