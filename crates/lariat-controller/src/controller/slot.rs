//! The slot of a kind: creates its controller when it is first needed, and drops it with the last handler.
//!
//! All handles of a kind share one slot. The slot outlives controllers, so that a kind can be used, dropped and used
//! again. A new controller waits for the tasks of the previous one: at no time do two workers process the same key.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};

use lariat_cache::{Informer, SharedCacheFactory, View};
use lariat_core::{Gvk, ResourceKind, TableSize};
use parking_lot::{Mutex, MutexGuard};
use tokio_util::task::TaskTracker;

use super::core::ControllerCore;
use super::joined::AnyRelation;
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

    /// Starts a controller that is created while the factory runs.
    fn start_late(&self, slot: &Arc<Slot>, core: &Arc<ControllerCore>);

    /// Removes a controller that has ended from the present run.
    fn forget(&self, core: &Arc<ControllerCore>);
}

/// The slot of a kind's controller.
///
/// The controller is created when it is first needed, and ends with its last handler.
pub(crate) struct Slot {
    gvk: Gvk,
    caches: SharedCacheFactory,
    gate: Arc<FactoryGate>,
    options: ControllerOptions,
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
    core: Option<Arc<ControllerCore>>,
    /// The tasks of the previous controller, which may still be processing a key.
    predecessor: Option<TaskTracker>,
    /// The relations of the kind; joined while the controller is in use.
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
    /// It can if it has no controller and no relations, and the tasks of the previous controller have ended.
    pub(crate) fn is_unused(&self) -> bool {
        let state = self.state.lock();
        let is_idle = |tasks: &TaskTracker| tasks.is_empty();
        state.core.is_none()
            && state.relations.is_empty()
            && state.predecessor.as_ref().is_none_or(is_idle)
    }

    /// Appends the sizes of the controller's structures, if it is in use.
    pub(crate) fn table_sizes(&self, all: &mut Vec<TableSize>) {
        let state = self.state.lock();
        let (core, relations) = (state.core.clone(), state.relations.len());
        drop(state);
        if let Some(core) = core {
            core.table_sizes(relations, all);
        }
    }

    /// Returns the controller if it is in use.
    pub(crate) fn in_use(&self) -> Option<Arc<ControllerCore>> {
        self.state.lock().core.clone()
    }

    /// Returns the controller; creates it if it is not in use.
    ///
    /// A new controller is started if the factory runs. Otherwise the next start does.
    pub(crate) fn core(self: &Arc<Self>) -> Arc<ControllerCore> {
        if let Some(core) = self.in_use() {
            return core;
        }
        // Created without the lock, because of a deadlock: creating it subscribes to the cache, which waits for a task
        // that is publishing a change. That task may be running a subscriber that enqueues a key of this kind, and so
        // waits for this lock. If two tasks create a controller at the same time, one of the two is dropped.
        let clients = CallClients {
            clients: self.caches.clients().clone(),
            gate: Arc::clone(&self.gate),
        };
        let (options, runs) = (self.options.clone(), Arc::clone(&self.runs));
        let informer = self.informer();
        let made = Arc::new(ControllerCore::new(informer, clients, options, runs));
        let (core, is_new) = {
            let mut state = self.state.lock();
            match &state.core {
                // Another task was faster. `made` is dropped at the end of this method, after unlocking: dropping it
                // ends a subscription, which waits for publishers as well.
                Some(core) => (Arc::clone(core), false),
                None => {
                    // In the critical section that publishes the controller: a task that starts it must find its
                    // predecessor.
                    made.follow(state.predecessor.take());
                    state.core = Some(Arc::clone(&made));
                    (Arc::clone(&made), true)
                }
            }
        };
        // After unlocking: relations subscribe to other caches, and the factory takes a lock of its own.
        if is_new {
            self.join_relations(&core);
            if let Some(factory) = self.factory.upgrade() {
                factory.start_late(self, &core);
            }
        }
        core
    }

    /// Checks whether a handler can be registered. Nothing is created.
    pub(crate) fn check(&self, new: &NewHandler) -> Result<(), RegisterError> {
        let (gvk, name) = (&self.gvk, &new.name);
        let options = self.options.complete(new.options.clone());
        check_options(gvk, name, &options, &self.caches)?;
        match self.in_use() {
            Some(core) => core.lanes().check(gvk, name),
            None => Ok(()),
        }
    }

    /// Registers a checked handler. The caller holds the `registering` lock.
    pub(crate) fn register<V: View>(
        self: &Arc<Self>,
        new: NewHandler,
    ) -> (Arc<ControllerCore>, Arc<Lane>) {
        let options = self.options.complete(new.options);
        let lane = Lane::new(&new.name, new.handler, options, new.is_optional);
        let core = loop {
            let core = self.core();
            let swept = core.lanes().sweep();
            // The handler must not be called before the caches of its relations are synced. Its keys wait from the
            // moment at which a worker can see the lane. (A start waits for all related caches anyway; this is for
            // handlers that are registered while the controller runs.)
            lane.hold().close(core.caches().unfilled(&new.name));
            let state = self.state.lock();
            let is_current = |current: &Arc<ControllerCore>| Arc::ptr_eq(current, &core);
            let added = state.core.as_ref().is_some_and(is_current);
            if added {
                core.lanes().add(&lane);
            }
            drop(state);
            drop(swept);
            // Between `core()` and the lock the last handler may have been deregistered, which ended the controller.
            // A lane that was added to it would never be called. Try again with the next controller.
            if added {
                break core;
            }
        };
        core.informer().need::<V>();
        // After the lane is in the list: a change before that is not published to it, but is in the store by now, so
        // the replay covers it.
        core.replay_for(&lane);
        (core, lane)
    }

    /// Ends a controller that has no handlers any more.
    pub(crate) fn end_if_unused(&self, core: &Arc<ControllerCore>) {
        core.update_use();
        let mut state = self.state.lock();
        let is_current = |current: &Arc<ControllerCore>| Arc::ptr_eq(current, core);
        // Checked under the lock under which `register` adds a lane. So either the new lane is seen here, and the
        // controller goes on, or `register` sees that the controller has ended.
        if !state.core.as_ref().is_some_and(is_current) || !core.lanes().list().is_empty() {
            return;
        }
        let ended = state.core.take();
        // Workers may still be processing keys. The next controller waits for them.
        state.predecessor = Some(core.end());
        drop(state);
        if let Some(factory) = self.factory.upgrade() {
            factory.forget(core);
        }
        drop(ended);
    }

    /// Removes handlers whose token is cancelled.
    pub(crate) fn sweep(&self, core: &Arc<ControllerCore>) {
        if !core.lanes().sweep().is_empty() {
            self.end_if_unused(core);
        }
    }

    /// Adds a relation.
    ///
    /// From now on, whenever the controller is in use, it enqueues keys.
    pub(crate) fn add_relation(&self, relation: Arc<dyn AnyRelation>) {
        let mut state = self.state.lock();
        state.relations.push(relation);
        let core = state.core.clone();
        drop(state);
        if let Some(core) = core {
            self.join_relations(&core);
        }
    }

    fn join_relations(&self, core: &ControllerCore) {
        let relations = self.state.lock().relations.clone();
        for relation in relations {
            core.caches().relate(&relation);
            // `remove_relation` may have run while this one was being joined, and found nothing to end.
            let state = self.state.lock();
            let is_same = |each: &Arc<dyn AnyRelation>| each.number() == relation.number();
            let stays = state.relations.iter().any(is_same);
            drop(state);
            if !stays {
                core.caches().unrelate(relation.number());
            }
        }
    }

    /// Removes a relation, and ends it if it is joined.
    pub(crate) fn remove_relation(&self, number: u64) {
        let mut state = self.state.lock();
        let relations = &mut state.relations;
        let removed: Vec<_> = relations
            .extract_if(.., |each| each.number() == number)
            .collect();
        let core = state.core.clone();
        drop(state);
        drop(removed);
        if let Some(core) = core {
            core.caches().unrelate(number);
        }
    }

    /// Drops handlers and relations when the factory is dropped.
    ///
    /// They may hold handles of controllers, which would keep them alive in a cycle.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        let (core, relations) = (state.core.take(), std::mem::take(&mut state.relations));
        drop(state);
        if let Some(core) = core {
            core.end();
            core.lanes().clear();
            core.caches().unrelate_all();
        }
        drop(relations);
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
