//! The publisher: applies changes to the store and publishes them, in one order for all.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use lariat_core::{Gvk, ObjectKey, ObjectMetadata, RawObject, ResourceVersion, Uid};
use parking_lot::{Mutex, ReentrantMutex};
use tracing::Level;

use super::budget::Budget;
use super::updates::LastUpdates;
use super::user::User;
use crate::client::Sent;
use crate::selection::Selection;
use crate::store::{Age, CachedObject, Change, Content, Delta, Listing, Store};

/// A subscriber to the changes of a kind.
///
/// A subscriber receives each change of an object once and in order, beginning with the state at the time of
/// subscribing. Changes that happen while no watch is open may arrive as one.
///
/// The call comes from the reflector or from a task that waits for the answer to a write. It must be quick and must not
/// wait for other threads: add the keys to a queue. Within it, subscribing to the same kind and ending subscriptions
/// are allowed. A call that panics is logged and does not affect other subscribers; its changes are not delivered
/// again.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use lariat::cache::{Change, Subscriber};
///
/// #[derive(Default)]
/// struct Deletions(AtomicUsize);
///
/// impl Subscriber for Deletions {
///     fn changed(&self, changes: &[Change]) {
///         let deletions = changes.iter().filter(|change| matches!(change, Change::Deleted { .. }));
///         self.0.fetch_add(deletions.count(), Ordering::Relaxed);
///     }
/// }
/// ```
pub trait Subscriber: Send + Sync + 'static {
    /// Receives changes, in order; never an empty slice.
    ///
    /// A write of this process is published on the task that waits for its answer, unless the watch has reported it
    /// before.
    fn changed(&self, changes: &[Change]);

    /// Receives an answered write of this process, after its change was published.
    ///
    /// The function is also called if the write changed nothing. It is called on the task that waits for the answer.
    fn wrote(&self, _written: &OwnWrite) {}
}

/// A write of this process that was answered.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OwnWrite {
    /// The cached state when the write was sent; `None` if there was no such object.
    pub before: Option<Arc<CachedObject>>,
    /// The state in the API server's answer, or a newer one.
    pub after: Arc<CachedObject>,
    /// The version in the API server's answer: the previous one if the write changed nothing.
    pub version: ResourceVersion,
}

/// What the answer to a write means for a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The object exists in this state.
    Selected,
    /// The object is not selected, or no longer.
    NotSelected,
    /// The field selector decides, which only the API server evaluates.
    Unknown,
}

/// A subscription; dropping it ends it.
///
/// The drop does not wait for a call of the subscriber that is running on another thread.
#[must_use = "dropping a subscription ends it"]
pub struct Subscription {
    publisher: Weak<Publisher>,
    number: u64,
    _user: Arc<User>,
}

/// The only writer of a store, and its subscribers.
pub(crate) struct Publisher {
    kind: Gvk,
    store: Arc<Store>,
    /// Locked while a change is applied to the store and published.
    ///
    /// So subscribers receive changes in the order of the store, and a new one misses nothing and receives nothing
    /// twice. Reentrant, because a subscriber may subscribe another one during its call.
    order: ReentrantMutex<()>,
    subscribers: Mutex<Subscribers>,
    /// The number of the next subscription.
    subscriptions: AtomicU64,
    budget: Arc<Budget>,
    /// The last updates of objects, if they are kept.
    updates: Arc<LastUpdates>,
}

/// How many objects a resync publishes under one lock.
const RESYNC_CHUNK: usize = 256;

type Subscribers = Arc<[Subscribed]>;

/// A subscriber with the number of its subscription; it may subscribe twice.
#[derive(Clone)]
struct Subscribed {
    number: u64,
    subscriber: Arc<dyn Subscriber>,
}

impl Publisher {
    pub(crate) fn new(
        kind: Gvk,
        store: Arc<Store>,
        budget: Arc<Budget>,
        updates: Arc<LastUpdates>,
    ) -> Self {
        Self {
            kind,
            store,
            order: ReentrantMutex::new(()),
            subscribers: Mutex::new(Arc::new([])),
            subscriptions: AtomicU64::new(0),
            budget,
            updates,
        }
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Adds a subscriber, and publishes the existing objects to it.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        subscriber: Arc<dyn Subscriber>,
        user: Arc<User>,
    ) -> Subscription {
        // Under the lock of changes: a change between the snapshot and the registration would be lost.
        let _order = self.order.lock();
        let present = |object| Change::Added {
            object,
            initial: true,
        };
        let snapshot = self.store.snapshot();
        let changes: Vec<Change> = snapshot.iter().cloned().map(present).collect();
        // Before the registration, under the lock: no change can reach the subscriber before its initial state.
        self.notify(&*subscriber, &changes);
        // The subscription is identified by a number, because a subscriber may subscribe twice.
        let number = self.subscriptions.fetch_add(1, Ordering::Relaxed);
        let subscribed = Subscribed { number, subscriber };
        let mut subscribers = self.subscribers.lock();
        // Copied on write: `publish` goes through the previous list without the lock.
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

    /// Applies the answer to a write of this process, and tells subscribers.
    pub(crate) fn wrote(
        &self,
        object: RawObject,
        content: Content,
        sent: Sent,
        meaning: impl FnOnce(&ObjectMetadata) -> Meaning,
    ) {
        let (key, version) = (object.key().clone(), object.version().clone());
        self.answered(object, content, sent.number, meaning);
        // The lock is released by now, so the object may have been deleted meanwhile.
        let Some(after) = self.store.get(&key) else {
            return;
        };
        let written = OwnWrite {
            before: sent.before,
            after,
            version,
        };
        // After the change was published, so a subscriber has received it, or a later one, when `wrote` is called.
        let subscribers = Arc::clone(&self.subscribers.lock());
        for each in subscribers.iter() {
            self.call(|| each.subscriber.wrote(&written));
        }
    }

    /// Applies the state that a request of this process has returned; `sent` is the number of the request.
    ///
    /// What it means is decided under the lock of changes, so that a change of the selection is applied entirely before
    /// or after it.
    pub(crate) fn answered(
        &self,
        object: RawObject,
        content: Content,
        sent: u64,
        meaning: impl FnOnce(&ObjectMetadata) -> Meaning,
    ) {
        self.publish(|store| match meaning(&object) {
            Meaning::Selected => store.wrote(object, content, sent),
            Meaning::NotSelected => store.left(&object),
            Meaning::Unknown => Vec::new(),
        });
    }

    /// Applies a deletion by this process; `sent` is the state when it was sent.
    pub(crate) fn deleted(&self, key: &ObjectKey, uid: &Uid, sent: &Sent) {
        // An object that was cached later may be the successor, which this deletion does not concern.
        let before = sent.before.as_deref();
        self.publish(|store| store.deleted(key, uid, before, sent.number));
    }

    /// Removes the objects outside a selection, and publishes their deletion.
    pub(crate) fn restrict(&self, selection: &Selection) {
        self.publish(|store| store.restrict(selection));
        self.keep_small();
    }

    /// Publishes every object again, without a request.
    pub(crate) fn resync(&self) {
        // In chunks, so that other changes need not wait for the whole resync.
        for keys in self.store.keys().chunks(RESYNC_CHUNK) {
            // Under the lock of changes: a change cannot come between reading an object and publishing it.
            self.publish(|store| {
                let present = keys.iter().filter_map(|key| store.get(key));
                present.map(|object| Change::Resynced { object }).collect()
            });
        }
    }

    /// Packs all recently changed objects, once nothing has arrived for a while.
    pub(crate) fn rest(&self) {
        self.store.pack_waiting(Age::All);
    }

    /// Packs objects if enough are waiting, and enforces the memory budget.
    ///
    /// Both may take long. So they follow the changes of a reflector, which has more time than a handler that waits for
    /// the answer to a write; and they run outside the lock under which others publish.
    fn keep_small(&self) {
        // In this order: packing and training free memory, and the budget is enforced for what is left.
        self.store.pack_waiting(Age::Old);
        self.store.train();
        self.budget.enforce();
    }

    /// Applies a change to the store and publishes what it changed.
    fn publish(&self, change: impl FnOnce(&Store) -> Vec<Change>) {
        // From here to the end: a subscriber may read the store and finds at least the published state.
        let _order = self.order.lock();
        let changes = change(&self.store);
        log(&self.kind, &changes);
        self.updates.note(&self.kind, &changes);
        // A copy, and no lock during the calls: a subscriber may subscribe another one or end a subscription.
        let subscribers = Arc::clone(&self.subscribers.lock());
        for each in subscribers.iter() {
            // A subscriber that was called before may have ended this subscription.
            if self.is_subscribed(each.number, &subscribers) {
                self.notify(&*each.subscriber, &changes);
            }
        }
    }

    /// Returns whether a subscription of an earlier list still exists.
    fn is_subscribed(&self, number: u64, then: &Subscribers) -> bool {
        let now = self.subscribers.lock();
        // Every change replaces the list, so in the usual case no search is needed.
        Arc::ptr_eq(&now, then) || now.iter().any(|each| each.number == number)
    }

    /// Calls one subscriber; a panic must not affect the others.
    fn notify(&self, subscriber: &dyn Subscriber, changes: &[Change]) {
        if changes.is_empty() {
            return;
        }
        self.call(|| subscriber.changed(changes));
    }

    fn call(&self, call: impl FnOnce()) {
        // Unwind-safe: the call borrows nothing of the publisher that it could leave half-changed.
        if catch_unwind(AssertUnwindSafe(call)).is_err() {
            tracing::error!(kind = %self.kind, "a subscriber panicked; its changes are not delivered again");
        }
    }
}

/// Logs each change; `docs/tracing.md` lists the event.
fn log(kind: &Gvk, changes: &[Change]) {
    if !tracing::enabled!(target: "lariat::cache", Level::TRACE) {
        return;
    }
    for change in changes {
        let (key, version) = (change.key(), change.object().version());
        let change = match change {
            Change::Added { initial: true, .. } => "found",
            Change::Added { .. } => "added",
            Change::Updated { .. } => "updated",
            Change::Deleted { .. } => "deleted",
            Change::Resynced { .. } => "resynced",
        };
        tracing::trace!(target: "lariat::cache", %kind, %key, change, %version, "changed");
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // Weak, so that a subscription that is kept does not keep the store.
        if let Some(publisher) = self.publisher.upgrade() {
            let mut subscribers = publisher.subscribers.lock();
            let others = subscribers
                .iter()
                .filter(|each| each.number != self.number)
                .cloned()
                .collect();
            let before = std::mem::replace(&mut *subscribers, others);
            drop(subscribers);
            // Dropped after the lock is released: dropping a subscriber may run any code, and take this lock.
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
