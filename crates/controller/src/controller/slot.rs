//! The slot of a kind: opens it when it is first needed, and lets it rest when the last handler has ended.
//!
//! All handles of a kind share one slot, which has one controller for its whole life. The controller's queue knows the
//! keys that are being processed, also by calls of handlers that were deregistered: at no time do two workers process
//! the same key.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock, Weak};

use lariat_cache::{Informer, SharedCacheFactory, View};
use lariat_core::{Gvk, ResourceKind, TableSize};
use parking_lot::{Mutex, MutexGuard};

use super::core::ControllerCore;
use super::joined::AnyRelation;
use super::opened::Opened;
use super::options::ControllerOptions;
use crate::clients::{CallClients, FactoryGate};
use crate::error::RegisterError;
use crate::handler::{AnyHandler, Handler, HandlerOptions, Viewed};
use crate::lane::Lane;

/// The factory, as a slot uses it.
pub(crate) trait Kinds: Send + Sync {
    /// Returns the factory of the caches.
    fn caches(&self) -> &SharedCacheFactory;

    /// Returns the slot of a kind, the same for all callers.
    fn slot(self: Arc<Self>, gvk: Gvk) -> Arc<Slot>;

    /// Locks registration, so that a transaction registers all handlers or none.
    fn registering(&self) -> MutexGuard<'_, ()>;

    /// Starts an owner of a kind that is opened while the factory runs.
    fn start_late(&self, slot: &Arc<Slot>);

    /// Lets the owner of a kind in which nothing is running end; returns whether it may.
    fn give_up(&self, slot: &Arc<Slot>) -> bool;
}

/// The slot of a kind's controller.
pub(crate) struct Slot {
    gvk: Gvk,
    caches: SharedCacheFactory,
    gate: Arc<FactoryGate>,
    options: ControllerOptions,
    /// Created when it is first needed: a handle alone costs nothing.
    core: OnceLock<Arc<ControllerCore>>,
    /// Locked briefly. While it is locked, no user code is called, and no lock of a cache or of another slot is taken.
    state: Mutex<SlotState>,
    factory: Weak<dyn Kinds>,
    /// The number of the factory's next run.
    runs: Arc<AtomicU64>,
}

/// The part of a slot that changes together, under one lock.
#[derive(Default)]
struct SlotState {
    /// The resource of the kind, if it was set.
    resource: Option<ResourceKind>,
    /// The number of registrations that have opened the kind and not yet added their handler.
    registering: usize,
    /// The relations of the kind; joined while it is open.
    relations: Vec<Arc<dyn AnyRelation>>,
}

/// A handler to register.
pub(crate) struct NewHandler {
    pub(crate) name: String,
    pub(crate) handler: Box<dyn AnyHandler>,
    pub(crate) options: HandlerOptions,
    /// Whether starts do without the kind's cache, as far as this handler is concerned.
    pub(crate) is_optional: bool,
}

impl NewHandler {
    pub(crate) fn new<K: View>(name: &str, handler: impl Handler<K>) -> Self {
        Self {
            name: name.to_owned(),
            options: handler.options(),
            handler: Box::new(Viewed::<K, _>::new(handler)),
            is_optional: false,
        }
    }
}

impl Slot {
    pub(crate) fn new(
        gvk: Gvk,
        caches: SharedCacheFactory,
        gate: Arc<FactoryGate>,
        options: ControllerOptions,
        factory: Weak<dyn Kinds>,
        runs: Arc<AtomicU64>,
    ) -> Self {
        Self {
            gvk,
            caches,
            gate,
            options,
            core: OnceLock::new(),
            state: Mutex::default(),
            factory,
            runs,
        }
    }

    pub(crate) fn gvk(&self) -> &Gvk {
        &self.gvk
    }

    /// Sets the resource of the kind, unless it is set already.
    pub(crate) fn set_resource(&self, resource: ResourceKind) {
        self.state.lock().resource.get_or_insert(resource);
    }

    /// Replaces the resource of the kind, after discovery has found a new one.
    pub(crate) fn replace_resource(&self, resource: &ResourceKind) {
        self.state.lock().resource = Some(resource.clone());
        let client = self.caches.clients().for_kind(&self.gvk);
        client.set_resource(resource.clone());
    }

    pub(crate) fn caches(&self) -> &SharedCacheFactory {
        &self.caches
    }

    pub(crate) fn factory(&self) -> &Weak<dyn Kinds> {
        &self.factory
    }

    /// Returns the informer of the kind; creates the cache if there is none.
    pub(crate) fn informer(&self) -> Informer {
        let resource = self.state.lock().resource.clone();
        match resource {
            Some(resource) => self.caches.for_resource_kind(&resource),
            None => self.caches.for_kind(&self.gvk),
        }
    }

    /// Returns whether the slot can be dropped without losing anything.
    ///
    /// It can if the kind rests, has no relations, and no call is running. A run of the factory holds the slots of the
    /// kinds that have an owner, so those are not asked.
    pub(crate) fn is_unused(&self) -> bool {
        let state = self.state.lock();
        let rests = || self.core.get().is_none_or(|core| core.in_use().is_none());
        state.relations.is_empty() && rests()
    }

    /// Appends the sizes of the controller's structures, if it is in use.
    pub(crate) fn table_sizes(&self, all: &mut Vec<TableSize>) {
        let relations = self.state.lock().relations.len();
        if let Some(core) = self.in_use() {
            core.table_sizes(relations, all);
        }
    }

    /// Returns the controller, which may rest.
    pub(crate) fn controller(&self) -> &Arc<ControllerCore> {
        self.core.get_or_init(|| {
            let clients = CallClients {
                clients: self.caches.clients().clone(),
                gate: Arc::clone(&self.gate),
            };
            let (options, runs) = (self.options.clone(), Arc::clone(&self.runs));
            let gvk = self.gvk.clone();
            Arc::new(ControllerCore::new(gvk, clients, options, runs))
        })
    }

    /// Returns the controller if it is in use: open, or in calls of deregistered handlers.
    pub(crate) fn in_use(&self) -> Option<Arc<ControllerCore>> {
        let core = self.core.get()?;
        core.in_use().map(|_| Arc::clone(core))
    }

    /// Returns the controller, and its use of the kind if it is in use.
    pub(crate) fn used(&self) -> Option<(&Arc<ControllerCore>, Arc<Opened>)> {
        let core = self.core.get()?;
        Some((core, core.in_use()?))
    }

    /// Returns the present use of the kind; none while it rests.
    pub(super) fn opened(&self) -> Option<Arc<Opened>> {
        self.core.get()?.opened()
    }

    /// Returns the controller, and opens the kind if it rests.
    ///
    /// A kind that is opened while the factory runs is started. Otherwise the next start does.
    pub(crate) fn core(self: &Arc<Self>) -> Arc<ControllerCore> {
        self.open();
        Arc::clone(self.controller())
    }

    /// Opens the kind if it rests; returns its use.
    fn open(self: &Arc<Self>) -> Arc<Opened> {
        let core = self.controller();
        if let Some(opened) = core.opened() {
            return opened;
        }
        // Created without the lock, because of a deadlock: creating it subscribes to the cache, which waits for a task
        // that is publishing a change. That task may be running a subscriber that enqueues a key of this kind, and so
        // waits for this lock. If two tasks open a kind at the same time, one of the two uses is dropped.
        let made = Arc::new(Opened::new(core, self.informer()));
        let state = self.state.lock();
        let (opened, is_new) = core.open(&made);
        drop(state);
        // After unlocking: relations subscribe to other caches, and the factory takes a lock of its own.
        if is_new {
            self.join_relations(&opened);
            if let Some(factory) = self.factory.upgrade() {
                factory.start_late(self);
            }
        }
        opened
    }

    /// Checks whether a handler can be registered. Nothing is created.
    pub(crate) fn check(&self, new: &NewHandler) -> Result<(), RegisterError> {
        let (gvk, name) = (&self.gvk, &new.name);
        let options = self.options.complete(new.options.clone());
        check_options(gvk, name, &options, &self.caches)?;
        match self.core.get() {
            Some(core) => core.lanes().check(gvk, name),
            None => Ok(()),
        }
    }

    /// Registers a checked handler. The caller holds the factory's `registering` lock.
    pub(crate) fn register<V: View>(self: &Arc<Self>, new: NewHandler) -> Arc<Lane> {
        let options = self.options.complete(new.options);
        let lane = Lane::new(&new.name, new.handler, options, new.is_optional);
        let core = self.controller();
        // Without the lane the kind may be about to rest.
        let registering = Registering::begin(self);
        let opened = self.open();
        // Another task may have opened the kind just now, and have joined no relation yet.
        self.join_relations(&opened);
        // Dropped last: the drop of a handler runs user code, which may panic.
        let swept = core.sweep();
        // The handler must not be called before the caches of its relations are synced. Its keys wait from the moment
        // at which a worker can see the lane. (A start waits for all related caches anyway; this is for handlers that
        // are registered while the controller runs.)
        core.set_gate(&lane, opened.caches().unfilled(&new.name));
        core.lanes().add(&lane);
        drop(registering);
        opened.informer().need::<V>();
        // After the lane is in the list: a change before that is not published to it, but is in the store by now, so
        // the replay covers it.
        core.replay_for(&opened, &lane);
        drop(swept);
        lane
    }

    /// Lets the kind rest if it has no handlers any more.
    ///
    /// Its queued keys are dropped, its subscriptions and its use of the cache end. Calls that are running keep the
    /// cache until they end.
    pub(crate) fn rest_if_unused(&self) {
        let core = self.controller();
        core.update_use();
        let state = self.state.lock();
        // Checked under the lock under which a registration is announced. So either the registration is seen here, and
        // the kind stays open, or the registration opens it again.
        if state.registering > 0 || !core.lanes().list().is_empty() {
            return;
        }
        let opened = core.rest();
        drop(state);
        if let Some(opened) = opened {
            opened.close();
        }
    }

    /// Removes handlers whose token is cancelled.
    pub(crate) fn sweep(&self) {
        let swept = self.controller().sweep();
        if !swept.is_empty() {
            self.rest_if_unused();
        }
    }

    /// Adds a relation.
    ///
    /// From now on, whenever the kind is open, it enqueues keys.
    pub(crate) fn add_relation(&self, relation: Arc<dyn AnyRelation>) {
        self.state.lock().relations.push(relation);
        if let Some(opened) = self.opened() {
            self.join_relations(&opened);
        }
    }

    fn join_relations(&self, opened: &Opened) {
        let relations = self.state.lock().relations.clone();
        for relation in relations {
            opened.caches().relate(&relation);
            // `remove_relation` may have run while this one was being joined, and found nothing to end.
            let state = self.state.lock();
            let is_same = |each: &Arc<dyn AnyRelation>| each.number() == relation.number();
            let stays = state.relations.iter().any(is_same);
            drop(state);
            if !stays {
                opened.caches().unrelate(relation.number());
            }
        }
        // The kind may rest by now, and has ended the relations that were joined before.
        if opened.closed().is_cancelled() {
            opened.caches().unrelate_all();
        }
    }

    /// Removes a relation, and ends it if it is joined.
    pub(crate) fn remove_relation(&self, number: u64) {
        let mut state = self.state.lock();
        let relations = &mut state.relations;
        let removed: Vec<_> = relations
            .extract_if(.., |each| each.number() == number)
            .collect();
        drop(state);
        drop(removed);
        if let Some(opened) = self.opened() {
            opened.caches().unrelate(number);
        }
    }

    /// Drops handlers and relations when the factory is dropped.
    ///
    /// They may hold handles of controllers, which would keep them alive in a cycle.
    pub(crate) fn close(&self) {
        let relations = std::mem::take(&mut self.state.lock().relations);
        if let Some(core) = self.core.get() {
            core.lanes().clear();
            self.rest_if_unused();
        }
        drop(relations);
    }
}

/// A registration that has not added its handler yet. The kind does not rest meanwhile.
struct Registering<'a>(&'a Slot);

impl<'a> Registering<'a> {
    fn begin(slot: &'a Slot) -> Self {
        slot.state.lock().registering += 1;
        Self(slot)
    }
}

impl Drop for Registering<'_> {
    fn drop(&mut self) {
        self.0.state.lock().registering -= 1;
    }
}

/// Checks the name and the options of a handler.
pub(crate) fn check_options(
    gvk: &Gvk,
    name: &str,
    options: &HandlerOptions,
    caches: &SharedCacheFactory,
) -> Result<(), RegisterError> {
    let (gvk, name) = (gvk.clone(), name.to_owned());
    if name.is_empty() {
        return Err(RegisterError::EmptyName { gvk });
    }
    if options.concurrency == Some(0) {
        return Err(RegisterError::NoConcurrency { gvk, name });
    }
    let identity = options.identity.clone().unwrap_or_default();
    match caches.clients().for_kind_as(&gvk, identity) {
        Ok(_) => Ok(()),
        Err(source) => Err(RegisterError::Identity { gvk, name, source }),
    }
}
