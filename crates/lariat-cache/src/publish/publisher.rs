//! Where changes go: into the store, then to everybody who subscribed, in one order for all.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use lariat_core::{Gvk, ObjectKey, ObjectMetadata, RawObject, ResourceVersion, Uid};
use lariat_flight::Stored;
use parking_lot::{Mutex, ReentrantMutex};

use super::budget::Budget;
use super::user::User;
use crate::client::Sent;
use crate::flight::KindFlight;
use crate::selection::Selection;
use crate::store::{Age, CachedObject, Change, Content, Delta, Listing, Store};

/// A subscriber that is notified of every change of a kind.
///
/// Changes of one object come in their order, each once, beginning with the state at the time of
/// subscribing. The call comes from the reflector, so it must be prompt and must not wait for other
/// threads: hand the keys to a queue. From within it, subscribing to the same kind and ending subscriptions
/// are allowed.
/// A call that panics is reported in the log and disturbs no other subscriber; what it was given is not given
/// again.
pub trait Subscriber: Send + Sync + 'static {
    /// Is called with changes, in order, and never with none.
    ///
    /// What this process writes is published on the task that waits for the answer, unless the watch reported it
    /// before.
    fn changed(&self, changes: &[Change]);

    /// Is called with a write of this process that was answered with the object, after its change was published; also if
    /// it changed nothing. Called on the task that waits for the answer.
    fn wrote(&self, _written: &Written) {}
}

/// A write of this process.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Written {
    /// The state that was known when the write was sent; none if there was no such object.
    pub before: Option<Arc<CachedObject>>,
    /// The state the API server answered with, or a newer one.
    pub after: Arc<CachedObject>,
    /// The version the API server answered with. The one before, if the write changed nothing.
    pub version: ResourceVersion,
}

/// What the answer to a write means for a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The object is there in this state.
    Selected,
    /// The object is not selected, or not any more.
    NotSelected,
    /// Only the API server knows, and the watch reports it.
    Unknown,
}

/// A subscription; dropping it ends it. A call that is under way on another thread is not waited for.
#[must_use = "dropping a subscription ends it"]
pub struct Subscription {
    publisher: Weak<Publisher>,
    number: u64,
    _user: Arc<User>,
}

/// The one writer of a store and its subscribers.
pub(crate) struct Publisher {
    kind: Gvk,
    store: Arc<Store>,
    /// Held while the store changes and the change is published, so that a late subscriber misses nothing
    /// and sees nothing twice. Reentrant, for subscribers that subscribe another.
    order: ReentrantMutex<()>,
    subscribers: Mutex<Subscribers>,
    /// Counts subscriptions.
    subscriptions: AtomicU64,
    budget: Budget,
    flight: Option<KindFlight>,
}

/// How many objects a resync publishes at a time.
const RESYNC_CHUNK: usize = 256;

type Subscribers = Arc<[Subscribed]>;

/// A subscriber, and the number of its subscription: one may subscribe twice.
#[derive(Clone)]
struct Subscribed {
    number: u64,
    subscriber: Arc<dyn Subscriber>,
}

impl Publisher {
    pub(crate) fn new(
        kind: Gvk,
        store: Arc<Store>,
        budget: Budget,
        flight: Option<KindFlight>,
    ) -> Self {
        Self {
            kind,
            store,
            order: ReentrantMutex::new(()),
            subscribers: Mutex::new(Arc::new([])),
            subscriptions: AtomicU64::new(0),
            budget,
            flight,
        }
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Shows a new subscriber what there is, and from then on what changes.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        subscriber: Arc<dyn Subscriber>,
        user: Arc<User>,
    ) -> Subscription {
        let _order = self.order.lock();
        let present = |object| Change::Added {
            object,
            initial: true,
        };
        let snapshot = self.store.snapshot();
        let changes: Vec<Change> = snapshot.iter().cloned().map(present).collect();
        self.notify(&*subscriber, &changes);
        let number = self.subscriptions.fetch_add(1, Ordering::Relaxed);
        let subscribed = Subscribed { number, subscriber };
        let mut subscribers = self.subscribers.lock();
        *subscribers = subscribers.iter().chain([&subscribed]).cloned().collect();
        Subscription {
            publisher: Arc::downgrade(self),
            number,
            _user: user,
        }
    }

    pub(crate) fn list_page(&self, listing: &Listing, page: Vec<RawObject>) {
        if !page.is_empty() {
            self.publish(|store| store.list_page(listing, page));
            self.keep_small();
        }
    }

    pub(crate) fn end_listing(&self, listing: &Listing, version: &ResourceVersion) {
        self.publish(|store| store.end_listing(listing, version));
        self.keep_small();
    }

    pub(crate) fn apply(&self, deltas: Vec<Delta>, content: Content) {
        if !deltas.is_empty() {
            self.publish(|store| store.apply(deltas, content));
            self.keep_small();
        }
    }

    /// Takes in the answer to a write of this process.
    ///
    /// What it means is decided while nothing else is published, so that a change of the selection comes before or
    /// after as a whole.
    pub(crate) fn wrote(
        &self,
        object: RawObject,
        content: Content,
        sent: Sent,
        meaning: impl FnOnce(&ObjectMetadata) -> Meaning,
    ) {
        let (key, version) = (object.key().clone(), object.version().clone());
        if let Some(flight) = &self.flight {
            flight.store(Stored::Wrote {
                key: key.as_str(),
                version: (&version).into(),
            });
        }
        self.publish(|store| match meaning(&object) {
            Meaning::Selected => store.wrote(object, content, sent.number),
            Meaning::NotSelected => store.left(&object),
            Meaning::Unknown => Vec::new(),
        });
        let Some(after) = self.store.get(&key) else {
            return;
        };
        let written = Written {
            before: sent.before,
            after,
            version,
        };
        let subscribers = Arc::clone(&self.subscribers.lock());
        for each in subscribers.iter() {
            self.call(|| each.subscriber.wrote(&written));
        }
    }

    /// Takes in that this process deleted an object; `sent` is what was known when the deletion was sent.
    pub(crate) fn deleted(&self, key: &ObjectKey, uid: &Uid, sent: &Sent) {
        if let Some(flight) = &self.flight {
            let key = key.as_str();
            flight.store(Stored::Removed { key });
        }
        let before = sent.before.as_ref().map(|before| before.uid());
        self.publish(|store| store.deleted(key, uid, before, sent.number));
    }

    /// Removes what a selection leaves out, and publishes the deletions.
    pub(crate) fn restrict(&self, selection: &Selection) {
        self.publish(|store| store.restrict(selection));
        self.keep_small();
    }

    /// Removes everything, and publishes the deletions.
    pub(crate) fn clear(&self) {
        self.publish(Store::clear);
        self.keep_small();
    }

    /// Publishes every object again, without a request.
    pub(crate) fn resync(&self) {
        // In pieces, so that what happens meanwhile is not kept waiting.
        for keys in self.store.keys().chunks(RESYNC_CHUNK) {
            self.publish(|store| {
                let present = keys.iter().filter_map(|key| store.get(key));
                present.map(|object| Change::Resynced { object }).collect()
            });
        }
    }

    /// Packs all objects that have changed lately: nothing has come for a while.
    pub(crate) fn rest(&self) {
        self.store.pack_young(Age::All);
    }

    /// Packs what has grown enough for it, and keeps to the memory budget.
    ///
    /// Both may take their time, so they happen after a reflector's changes, which hurries less than a handler that
    /// waits for the answer to a write; and without the lock under which others publish.
    fn keep_small(&self) {
        self.store.pack_young(Age::Old);
        self.store.learn();
        self.budget.enforce();
    }

    fn publish(&self, change: impl FnOnce(&Store) -> Vec<Change>) {
        let _order = self.order.lock();
        let changes = change(&self.store);
        if let Some(flight) = &self.flight {
            flight.changes(&changes);
        }
        let subscribers = Arc::clone(&self.subscribers.lock());
        for each in subscribers.iter() {
            // A subscriber that was notified before may have ended the subscription.
            if self.is_subscribed(each.number, &subscribers) {
                self.notify(&*each.subscriber, &changes);
            }
        }
    }

    /// Returns whether one of those who were subscribed at some time still is.
    fn is_subscribed(&self, number: u64, then: &Subscribers) -> bool {
        let now = self.subscribers.lock();
        Arc::ptr_eq(&now, then) || now.iter().any(|each| each.number == number)
    }

    /// Notifies one subscriber, whose panic must not silence the kind for the others.
    fn notify(&self, subscriber: &dyn Subscriber, changes: &[Change]) {
        if changes.is_empty() {
            return;
        }
        self.call(|| subscriber.changed(changes));
    }

    fn call(&self, call: impl FnOnce()) {
        if catch_unwind(AssertUnwindSafe(call)).is_err() {
            tracing::error!(kind = %self.kind, "a subscriber panicked");
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(publisher) = self.publisher.upgrade() {
            let mut subscribers = publisher.subscribers.lock();
            let others = subscribers.iter().filter(|each| each.number != self.number);
            let others = others.cloned().collect();
            let before = std::mem::replace(&mut *subscribers, others);
            drop(subscribers);
            // The subscriber may be dropped with it, and do as it likes.
            drop(before);
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
