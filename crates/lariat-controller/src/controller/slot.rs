//! A kind somebody asked for, in use or not.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};

use lariat_cache::{Informer, SharedCacheFactory, View};
use lariat_core::{Gvk, Remembered, ResourceKind};
use parking_lot::{Mutex, MutexGuard};
use tokio_util::task::TaskTracker;

use super::core::ControllerCore;
use super::joined::AnyRelation;
use super::options::ControllerOptions;
use crate::error::RegisterError;
use crate::handler::{AnyHandler, HandlerOptions};
use crate::lane::Lane;

/// What a kind needs of its factory, which has all kinds.
pub(crate) trait Kinds: Send + Sync {
    fn caches(&self) -> &SharedCacheFactory;

    /// Returns the place of a kind's controller, the same for all who ask.
    fn slot(self: Arc<Self>, gvk: Gvk) -> Arc<Slot>;

    /// Keeps others from registering handlers, so that a transaction registers all or none.
    fn registering(&self) -> MutexGuard<'_, ()>;

    /// Starts a controller that came into use while the factory runs.
    fn start_late(&self, slot: &Arc<Slot>, core: &Arc<ControllerCore>);

    /// Forgets a controller that nobody needs any more.
    fn forget(&self, core: &Arc<ControllerCore>);
}

/// The place of a kind's controller, which comes into being when it is first needed and ends with its last
/// handler.
pub(crate) struct Slot {
    gvk: Gvk,
    caches: SharedCacheFactory,
    options: ControllerOptions,
    /// Locked for moments only: nothing of a user's is called, and no other lock is taken, meanwhile.
    state: Mutex<SlotState>,
    factory: Weak<dyn Kinds>,
    /// The number of the factory's next run.
    runs: Arc<AtomicU64>,
}

#[derive(Default)]
struct SlotState {
    /// Where the kind is served, if that was given.
    resource: Option<ResourceKind>,
    core: Option<Arc<ControllerCore>>,
    /// The tasks of the controller before this one, which may have a key still.
    predecessor: Option<TaskTracker>,
    /// What else keys of the kind are enqueued for, while the controller is in use.
    relations: Vec<Arc<dyn AnyRelation>>,
}

/// A handler that is to be registered.
pub(crate) struct NewHandler {
    pub(crate) name: String,
    pub(crate) handler: Box<dyn AnyHandler>,
    pub(crate) options: HandlerOptions,
    /// A start does not wait for the kind on its account.
    pub(crate) is_optional: bool,
}

impl Slot {
    pub(crate) fn new(
        gvk: Gvk,
        caches: SharedCacheFactory,
        options: ControllerOptions,
        factory: Weak<dyn Kinds>,
        runs: Arc<AtomicU64>,
    ) -> Self {
        Self {
            gvk,
            caches,
            options,
            state: Mutex::default(),
            factory,
            runs,
        }
    }

    pub(crate) fn gvk(&self) -> &Gvk {
        &self.gvk
    }

    /// Sets where the kind is served; the first that is given is kept.
    pub(crate) fn set_resource(&self, resource: ResourceKind) {
        self.state.lock().resource.get_or_insert(resource);
    }

    /// Sets where the kind is served by now.
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

    /// Returns the informer of the kind.
    pub(crate) fn informer(&self) -> Informer {
        let resource = self.state.lock().resource.clone();
        match resource {
            Some(resource) => self.caches.for_resource_kind(&resource),
            None => self.caches.for_kind(&self.gvk),
        }
    }

    /// Returns whether nothing would be lost with it: nothing is in use, nothing is related, and the tasks of the last
    /// controller have ended.
    pub(crate) fn is_unused(&self) -> bool {
        let state = self.state.lock();
        let is_idle = |tasks: &TaskTracker| tasks.is_empty();
        state.core.is_none()
            && state.relations.is_empty()
            && state.predecessor.as_ref().is_none_or(is_idle)
    }

    /// Returns how much the controller remembers, if it is in use.
    pub(crate) fn remembered(&self, all: &mut Vec<Remembered>) {
        let state = self.state.lock();
        let (core, relations) = (state.core.clone(), state.relations.len());
        drop(state);
        if let Some(core) = core {
            core.remembered(relations, all);
        }
    }

    /// Returns the controller if it is in use.
    pub(crate) fn in_use(&self) -> Option<Arc<ControllerCore>> {
        self.state.lock().core.clone()
    }

    /// Returns the controller; it comes into being, and starts if the factory runs, with the first call.
    pub(crate) fn core(self: &Arc<Self>) -> Arc<ControllerCore> {
        if let Some(core) = self.in_use() {
            return core;
        }
        // Made before anything is locked, because subscribing waits for whoever changes the cache, and that
        // may be somebody who is notified of a change and enqueues a key. Of two that are made one is dropped.
        let clients = self.caches.clients().clone();
        let (options, runs) = (self.options.clone(), Arc::clone(&self.runs));
        let flight = self.caches.flight().cloned();
        let made = ControllerCore::new(self.informer(), clients, options, runs, flight);
        let made = Arc::new(made);
        let (core, is_new) = {
            let mut state = self.state.lock();
            match &state.core {
                Some(core) => (Arc::clone(core), false),
                None => {
                    made.follow(state.predecessor.take());
                    state.core = Some(Arc::clone(&made));
                    (Arc::clone(&made), true)
                }
            }
        };
        if is_new {
            self.join_relations(&core);
            if let Some(factory) = self.factory.upgrade() {
                factory.start_late(self, &core);
            }
        }
        core
    }

    /// Checks whether a handler could be registered; nothing is created.
    pub(crate) fn check(&self, new: &NewHandler) -> Result<(), RegisterError> {
        let (gvk, name) = (&self.gvk, &new.name);
        let options = self.options.complete(new.options.clone());
        check_options(gvk, name, &options, &self.caches)?;
        match self.in_use() {
            Some(core) => core.lanes().check(gvk, name),
            None => Ok(()),
        }
    }

    /// Registers a handler that was checked, with nobody else registering meanwhile.
    pub(crate) fn register<V: View>(
        self: &Arc<Self>,
        new: NewHandler,
    ) -> (Arc<ControllerCore>, Arc<Lane>) {
        let options = self.options.complete(new.options);
        let lane = Lane::new(&new.name, new.handler, options, new.is_optional);
        let core = loop {
            let core = self.core();
            let swept = core.lanes().sweep();
            // Before any worker sees it. The caches of what is registered before the start are filled by then anyway.
            lane.hold().close(core.caches().unfilled(&new.name));
            let state = self.state.lock();
            let is_current = |current: &Arc<ControllerCore>| Arc::ptr_eq(current, &core);
            let added = state.core.as_ref().is_some_and(is_current);
            if added {
                core.lanes().add(&lane);
            }
            drop(state);
            drop(swept);
            // Otherwise it ended at this very moment.
            if added {
                break core;
            }
        };
        core.informer().need::<V>();
        core.replay_for(&lane);
        (core, lane)
    }

    /// Ends a controller if it has no handler any more.
    pub(crate) fn end_if_unused(&self, core: &Arc<ControllerCore>) {
        core.update_use();
        let mut state = self.state.lock();
        let is_current = |current: &Arc<ControllerCore>| Arc::ptr_eq(current, core);
        if !state.core.as_ref().is_some_and(is_current) || !core.lanes().list().is_empty() {
            return;
        }
        let ended = state.core.take();
        state.predecessor = Some(core.end());
        drop(state);
        if let Some(factory) = self.factory.upgrade() {
            factory.forget(core);
        }
        drop(ended);
    }

    /// Takes out handlers whose time is over.
    pub(crate) fn sweep(&self, core: &Arc<ControllerCore>) {
        if !core.lanes().sweep().is_empty() {
            self.end_if_unused(core);
        }
    }

    /// Enqueues keys of the kind for something else too, from now on and whenever it is in use.
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
            // It may have been taken away meanwhile.
            let state = self.state.lock();
            let stays = |each: &Arc<dyn AnyRelation>| each.number() == relation.number();
            let stays = state.relations.iter().any(stays);
            drop(state);
            if !stays {
                core.caches().unrelate(relation.number());
            }
        }
    }

    pub(crate) fn remove_relation(&self, number: u64) {
        let mut state = self.state.lock();
        let relations = &mut state.relations;
        let removed = relations.extract_if(.., |each| each.number() == number);
        let removed: Vec<_> = removed.collect();
        let core = state.core.clone();
        drop(state);
        drop(removed);
        if let Some(core) = core {
            core.caches().unrelate(number);
        }
    }

    /// Lets everything go when the factory does: handlers and relations may hold handles of controllers.
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

/// Checks what can be wrong with a handler of a kind.
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
