//! Watches a related kind, and enqueues the keys that its objects map to.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use lariat_cache::{CachedObject, Change, OwnWrite, Store, Subscriber, View};
use lariat_core::{Cause, Gvk, ObjectKey, RelatedChange, Scope, Subject, describe};
use lariat_queue::{Add, Lanes as Due, Payload as _, Priority};
use parking_lot::Mutex;

use super::relation::{Relation, Target};
use crate::controller::{AnyRelation, Enqueuer, Joined, SharedController, Slot, Unread, cause};
use crate::current;
use crate::lane::LaneList;
use crate::payload::Payload;

/// The number of the next relation.
static RELATIONS: AtomicU64 = AtomicU64::new(0);

/// An active relation between two kinds.
///
/// Dropping this handle keeps the relation; [`end`](Self::end) ends it.
///
/// ```no_run
/// use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
/// use lariat::{Relation, SharedControllerFactory};
///
/// # fn example(factory: &SharedControllerFactory) {
/// let (deployments, replica_sets) = (factory.for_object::<Deployment>(), factory.for_object::<ReplicaSet>());
/// let related = deployments.watch_related(&replica_sets, Relation::controllers());
/// related.end();
/// # }
/// ```
pub struct Related {
    slot: Weak<Slot>,
    relation: Arc<dyn AnyRelation>,
}

/// A relation with the related kind.
struct Relating<V> {
    number: u64,
    other: Arc<Slot>,
    relation: Arc<Relation<V>>,
}

impl Related {
    fn begin<V: View>(slot: &Arc<Slot>, other: &Arc<Slot>, relation: Relation<V>) -> Self {
        let relation: Arc<dyn AnyRelation> = Arc::new(Relating {
            number: RELATIONS.fetch_add(1, Ordering::Relaxed),
            other: Arc::clone(other),
            relation: Arc::new(relation),
        });
        slot.add_relation(Arc::clone(&relation));
        Self {
            slot: Arc::downgrade(slot),
            relation,
        }
    }

    /// Ends the relation: changes of the other kind no longer enqueue keys.
    ///
    /// Keys that are queued already are processed.
    pub fn end(self) {
        if let Some(slot) = self.slot.upgrade() {
            slot.remove_relation(self.relation.number());
        }
    }
}

impl<K: View> SharedController<K> {
    /// Enqueues keys of this kind when objects of another kind change.
    ///
    /// The relation is applied to the old and the new state of an update, and to the last state of a deleted object.
    /// The other kind is not watched until this kind is in use. Dropping the returned handle keeps the relation.
    ///
    /// A relation that is added before the start delays the handlers of this kind until the other kind's cache is
    /// synced. A handler that is registered while the factory runs waits for the caches of its relations, without
    /// delaying other handlers; its [status](crate::HandlerStatus::waits_for_caches) shows that. After 30
    /// seconds a warning is logged, and a kind that is not served is read as it was cached: without objects, if it has
    /// never synced.
    ///
    /// ```no_run
    /// use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
    /// use lariat::{Relation, SharedControllerFactory};
    ///
    /// # fn example(factory: &SharedControllerFactory) {
    /// let deployments = factory.for_object::<Deployment>();
    /// let replica_sets = factory.for_object::<ReplicaSet>();
    /// deployments.watch_related(&replica_sets, Relation::controllers());
    /// # }
    /// ```
    #[allow(
        clippy::must_use_candidate,
        reason = "the relation stays when this is dropped"
    )]
    pub fn watch_related<B: View, V: View>(
        &self,
        other: &SharedController<B>,
        relation: Relation<V>,
    ) -> Related {
        Related::begin(self.slot(), other.slot(), relation)
    }
}

impl<V: View> AnyRelation for Relating<V> {
    fn number(&self) -> u64 {
        self.number
    }

    fn concerns(&self, handler: &str) -> bool {
        self.relation.to.as_ref().is_none_or(|to| **to == *handler)
    }

    fn needs_content(&self) -> bool {
        V::NEEDS_CONTENT
    }

    fn join(self: Arc<Self>, target: Enqueuer) -> Joined {
        let informer = self.other.informer();
        // Held, because a fetched object would not do: the relation also maps the states that were replaced or deleted.
        let content = V::NEEDS_CONTENT.then(|| informer.hold_content());
        let feed = Arc::new(Feed {
            of: informer.gvk().clone(),
            store: Arc::clone(informer.store()),
            target,
            relation: Arc::clone(&self.relation),
            unread: Mutex::default(),
            aside: Mutex::new(Some(SetAside::default())),
        });
        // Publishes the cached objects first, so a relation that is added late misses none.
        let subscription = informer.subscribe(Arc::clone(&feed) as Arc<dyn Subscriber>);
        Joined {
            relation: self,
            informer,
            feed,
            _content: content,
            _subscription: subscription,
        }
    }
}

/// The subscriber of the related kind's cache.
///
/// It does not hold the informer of the target kind, which would keep that kind's cache in use.
struct Feed<V> {
    of: Gvk,
    store: Arc<Store>,
    target: Enqueuer,
    relation: Arc<Relation<V>>,
    /// The cached objects that cannot be mapped until their content is cached.
    ///
    /// Sorted, because they are published again in this order.
    unread: Mutex<BTreeSet<ObjectKey>>,
    /// The owners that wait for the scope of their kind; `None` once it is known.
    ///
    /// They are keyed with the namespace of the object that they own, and sorted, because they are queued in this
    /// order.
    aside: Mutex<Option<SetAside>>,
}

/// Owners that wait until the scope of their kind is known.
#[derive(Default)]
struct SetAside {
    owners: BTreeMap<ObjectKey, Aside>,
    /// The number of owners after the last removal of unreferenced ones.
    left: usize,
}

/// The number of waiting owners below which unreferenced ones are kept.
///
/// The kind of the owners may never be served, while objects with ever new owners come and go.
const ASIDE: usize = 1024;

/// The add with which a waiting owner is enqueued.
#[derive(Clone)]
struct Aside {
    lanes: Due,
    priority: Priority,
    payload: Payload,
}

impl<V: View> Unread for Feed<V> {
    fn unread(&self) -> usize {
        self.unread.lock().len()
    }

    fn take_readable(&self) -> Vec<Arc<CachedObject>> {
        let mut readable = Vec::new();
        self.unread.lock().retain(|key| {
            let object = self.store.get(key);
            let waits = object.as_ref().is_some_and(|object| self.waits(object));
            readable.extend(object.filter(|_| !waits));
            waits
        });
        readable
    }

    fn place_owners(&self) {
        let Some(aside) = self.aside.lock().take() else {
            return;
        };
        // `take` above leaves `None`: from now on `changed` knows the scope and enqueues owners itself.
        let has_namespace = self.scope() != Some(Scope::Cluster);
        self.target
            .queue
            .add_all(aside.owners.into_iter().map(|(key, add)| {
                let key = if has_namespace {
                    key
                } else {
                    ObjectKey::cluster(key.name())
                };
                let now = Add::now().lanes(add.lanes).priority(add.priority);
                (key, now.payload(add.payload))
            }));
    }

    fn aside(&self) -> (usize, usize) {
        let aside = self.aside.lock();
        let sizes = |aside: &SetAside| (aside.owners.len(), aside.most());
        aside.as_ref().map_or((0, 0), sizes)
    }
}

impl SetAside {
    /// Returns the bound on the number of owners.
    fn most(&self) -> usize {
        ASIDE.max(2 * self.left)
    }

    /// Adds an owner, or merges it with the entry that it has.
    fn put(&mut self, key: ObjectKey, add: Aside) {
        match self.owners.entry(key) {
            Entry::Vacant(entry) => drop(entry.insert(add)),
            Entry::Occupied(mut entry) => entry.get_mut().merge(add),
        }
    }
}

impl<V: View> Subscriber for Feed<V> {
    fn changed(&self, changes: &[Change]) {
        for change in changes {
            if let Change::Deleted { last } = change {
                self.unread.lock().remove(last.key());
            }
        }
        let lanes = self.target.lanes.list();
        // A handler that is registered later is called for every object anyway, so these keys are not lost.
        let Some(due) = self.due(&lanes) else {
            return;
        };
        let caller = current::caller();
        let scope = self.scope();
        for change in changes.iter().filter(|it| self.relation.wants(it)) {
            let mut keys = self.keys(change, scope);
            if keys.is_empty() {
                continue;
            }
            let changed = cause(change, caller.as_ref(), self.to());
            let cause = self.cause(changed, change.key());
            for key in &keys {
                tracing::trace!(target: "lariat::queue", kind = %self.to(), %key, %cause, "queued");
            }
            let mut now = due.clone();
            let debounced = lanes.take_debounced(&mut now, change);
            let mut add = Aside {
                lanes: due.clone(),
                priority: lanes.priority(&due, change),
                payload: Payload::from(cause),
            };
            // With the wrong scope, a cluster-scoped owner would be enqueued under a namespace in which it does not
            // exist.
            if scope.is_none() && self.relation.names_owners() && !self.set_aside(&mut keys, &add) {
                // `place_owners` has run since the scope was read, so no owner waits any more.
                keys = self.keys(change, self.scope());
            }
            add.lanes = now;
            for (wait, lane) in debounced {
                let later = Add::after(wait).lanes(lane).priority(add.priority);
                let later =
                    |key: &ObjectKey| (key.clone(), later.clone().payload(add.payload.clone()));
                self.target.queue.add_all(keys.iter().map(later));
            }
            self.target.queue.add_all(keys.into_iter().map(|key| {
                let now = Add::now().lanes(add.lanes.clone()).priority(add.priority);
                (key, now.payload(add.payload.clone()))
            }));
        }
    }

    fn wrote(&self, written: &OwnWrite) {
        // The change may enqueue the key of the calling handler.
        if let Some(caller) = current::caller().filter(|caller| caller.gvk() == self.to()) {
            let (detector, lead) = (&self.target.detector, caller.lead(self.to()));
            detector.wrote_related(caller.key(), &written.version, lead);
        }
    }
}

impl<V: View> Feed<V> {
    /// Returns the kind whose keys are enqueued.
    fn to(&self) -> &Gvk {
        self.target.client.gvk()
    }

    /// Returns the lanes to enqueue for; none if the handler does not exist.
    fn due(&self, lanes: &LaneList) -> Option<Due> {
        match &self.relation.to {
            None => Some(Due::ALL),
            Some(name) => Some(lanes.named(name)?.id().into()),
        }
    }

    /// Returns a change of a related object as a cause.
    fn cause(&self, of: Cause, key: &ObjectKey) -> Cause {
        let object = Subject {
            gvk: self.of.clone(),
            key: key.clone(),
        };
        let of = Arc::new(RelatedChange { object, cause: of });
        Cause::Related { of }
    }

    /// Returns the scope of the target kind, if it is known.
    ///
    /// A kind that is not served for a while comes back with the same scope.
    fn scope(&self) -> Option<Scope> {
        let resource = self.target.client.last_resource();
        resource.map(|resource| resource.scope())
    }

    /// Moves keys with a namespace to the waiting owners.
    ///
    /// Keys without a namespace stay: the owner of a cluster-scoped object is cluster-scoped. Returns `false` and moves
    /// nothing if owners do not wait any more.
    fn set_aside(&self, keys: &mut Vec<ObjectKey>, add: &Aside) -> bool {
        let mut aside = self.aside.lock();
        let Some(aside) = aside.as_mut() else {
            return false;
        };
        for key in keys.extract_if(.., |key| key.namespace().is_some()) {
            // Only after each doubling, so that the cost per owner stays constant.
            if aside.owners.len() >= aside.most() {
                let named = self.named_owners();
                aside.owners.retain(|key, _| named.contains(key));
                aside.left = aside.owners.len();
            }
            aside.put(key, add.clone());
        }
        true
    }

    /// Returns the owners that cached objects refer to, with the objects' namespaces.
    fn named_owners(&self) -> BTreeSet<ObjectKey> {
        let snapshot = self.store.snapshot();
        let keys = snapshot
            .iter()
            .flat_map(|object| self.keys_of(object, None));
        keys.collect()
    }

    /// Returns the keys that the old and the new state map to, without duplicates.
    fn keys(&self, change: &Change, scope: Option<Scope>) -> Vec<ObjectKey> {
        let mut keys = match change {
            Change::Added { object, .. } | Change::Resynced { object } => {
                self.keys_of(object, scope)
            }
            Change::Deleted { last } => self.keys_of(last, scope),
            Change::Updated { old, new } => {
                let mut keys = self.keys_of(old, scope);
                keys.extend(self.keys_of(new, scope));
                keys
            }
            _ => Vec::new(),
        };
        // Both states of an update usually map to the same keys.
        keys.sort();
        keys.dedup();
        keys
    }

    /// Returns the keys that one state maps to; none if the map fails.
    fn keys_of(&self, object: &Arc<CachedObject>, scope: Option<Scope>) -> Vec<ObjectKey> {
        let target = Target {
            gvk: self.to(),
            scope,
        };
        let (store, of) = (&*self.store, &self.of);
        // The map is the user's. A panic here would reach the publisher, and with it all other subscribers.
        let find = AssertUnwindSafe(|| self.relation.keys(object, store, of, &target));
        let (kind, key, to) = (&self.of, object.key(), self.to());
        match catch_unwind(find) {
            Ok(Ok(keys)) => keys,
            // Content that arrives later is no change, so the supervisor publishes the object again then.
            Ok(Err(error)) if error.is_no_content() => {
                self.set_unread(key);
                Vec::new()
            }
            Ok(Err(error)) => {
                let error = describe(&error);
                tracing::warn!(%kind, %key, %to, error, "cannot map a related object");
                Vec::new()
            }
            Err(_) => {
                tracing::error!(%kind, %key, %to, "relation map panicked");
                Vec::new()
            }
        }
    }
}

impl<V: View> Feed<V> {
    /// Remembers an object that cannot be mapped until its content is cached.
    ///
    /// A state that was replaced or deleted never gets content; its object was not related before.
    fn set_unread(&self, key: &ObjectKey) {
        if self
            .store
            .get(key)
            .is_some_and(|object| self.waits(&object))
        {
            let mut unread = self.unread.lock();
            if unread.is_empty() {
                // The supervisor selects over the relations that wait for content.
                self.target.lanes.notify();
            }
            unread.insert(key.clone());
        }
    }

    /// Returns whether an object lacks content that is going to be cached.
    fn waits(&self, object: &CachedObject) -> bool {
        !object.has_content() && !self.store.leaves_out(object)
    }
}

impl Aside {
    fn merge(&mut self, later: Self) {
        self.lanes.merge(&later.lanes);
        self.priority = self.priority.max(later.priority);
        self.payload.merge(later.payload);
    }
}

impl fmt::Debug for Related {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Related")
            .field("number", &self.relation.number())
            .finish()
    }
}
