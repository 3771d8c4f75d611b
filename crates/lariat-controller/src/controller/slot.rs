//! A kind somebody asked for, in use or not.

use std::sync::{Arc, OnceLock, Weak};

use lariat_cache::{Informer, SharedCacheFactory, View};
use lariat_core::{Gvk, ResourceKind};
use parking_lot::Mutex;

use super::core::ControllerCore;
use super::options::ControllerOptions;
use super::registration::Registration;
use crate::error::RegisterError;
use crate::factory::Shared;
use crate::handler::{AnyHandler, HandlerOptions};
use crate::related::AnyRelation;

/// The place of a kind's controller, which comes into being when it is first needed and ends with its last
/// handler.
pub(crate) struct Slot {
    gvk: Gvk,
    /// Where the kind is served, if that was told.
    resource: OnceLock<ResourceKind>,
    caches: SharedCacheFactory,
    options: ControllerOptions,
    state: Mutex<State>,
    factory: Weak<Shared>,
}

#[derive(Default)]
struct State {
    core: Option<Arc<ControllerCore>>,
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
        factory: Weak<Shared>,
    ) -> Self {
        Self {
            gvk,
            resource: OnceLock::new(),
            caches,
            options,
            state: Mutex::default(),
            factory,
        }
    }

    pub(crate) fn gvk(&self) -> &Gvk {
        &self.gvk
    }

    /// Tells where the kind is served; whoever tells first is believed.
    pub(crate) fn set_resource(&self, resource: ResourceKind) {
        let _ = self.resource.set(resource);
    }

    pub(crate) fn caches(&self) -> &SharedCacheFactory {
        &self.caches
    }

    pub(crate) fn factory(&self) -> &Weak<Shared> {
        &self.factory
    }

    /// Returns the informer of the kind.
    pub(crate) fn informer(&self) -> Informer {
        match self.resource.get() {
            Some(resource) => self.caches.for_resource_kind(resource),
            None => self.caches.for_kind(&self.gvk),
        }
    }

    /// Returns the controller if it is in use.
    pub(crate) fn in_use(&self) -> Option<Arc<ControllerCore>> {
        self.state.lock().core.clone()
    }

    /// Returns the controller; it comes into being, and starts if the factory runs, with the first call.
    pub(crate) fn core(self: &Arc<Self>) -> Arc<ControllerCore> {
        let core = self.make(&mut self.state.lock());
        self.start(&core);
        core
    }

    fn make(self: &Arc<Self>, state: &mut State) -> Arc<ControllerCore> {
        if let Some(core) = &state.core {
            return Arc::clone(core);
        }
        let informer = self.informer();
        let clients = self.caches.clients().clone();
        let core = Arc::new(ControllerCore::new(informer, clients, self.options.clone()));
        for relation in &state.relations {
            core.relate(&**relation);
        }
        state.core = Some(Arc::clone(&core));
        core
    }

    fn start(self: &Arc<Self>, core: &Arc<ControllerCore>) {
        if let Some(factory) = self.factory.upgrade() {
            factory.start_late(self, core);
        }
    }

    /// Returns the options of a handler, completed by those of the kind.
    fn complete(&self, options: HandlerOptions) -> HandlerOptions {
        options.or(&self.options.handlers)
    }

    /// Checks whether a handler could be registered; nothing is created.
    pub(crate) fn check(&self, new: &NewHandler) -> Result<(), RegisterError> {
        let (gvk, name) = (&self.gvk, &new.name);
        if name.is_empty() {
            return Err(RegisterError::EmptyName { gvk: gvk.clone() });
        }
        let options = self.complete(new.options.clone());
        if options.concurrency == Some(0) {
            return Err(RegisterError::NoConcurrency {
                gvk: gvk.clone(),
                name: name.clone(),
            });
        }
        if let Some(identity) = options.identity {
            let refused = self.caches.clients().for_kind_as(gvk, identity);
            refused.map_err(|source| RegisterError::Identity {
                gvk: gvk.clone(),
                name: name.clone(),
                source,
            })?;
        }
        match self.in_use() {
            Some(core) => core.lanes().check(gvk, name),
            None => Ok(()),
        }
    }

    /// Registers a handler that was checked, with nobody else registering meanwhile.
    pub(crate) fn register<V: View>(self: &Arc<Self>, new: NewHandler) -> Registration {
        let options = self.complete(new.options);
        let mut state = self.state.lock();
        let is_first = state.core.is_none();
        let core = self.make(&mut state);
        if is_first || !new.is_optional {
            core.informer().set_optional(new.is_optional);
        }
        core.informer().need::<V>();
        let lane = core.register(&new.name, new.handler, options);
        drop(state);
        self.start(&core);
        Registration::new(Arc::clone(self), core, lane)
    }

    /// Ends the controller if it has no handler any more.
    pub(crate) fn end_if_unused(&self) {
        let mut state = self.state.lock();
        let unused = |core: &Arc<ControllerCore>| core.lanes().list().is_empty();
        if !state.core.as_ref().is_some_and(unused) {
            return;
        }
        let Some(core) = state.core.take() else {
            return;
        };
        drop(state);
        core.ended().cancel();
        if let Some(factory) = self.factory.upgrade() {
            factory.forget(&core);
        }
    }

    /// Takes out handlers whose time is over.
    pub(crate) fn sweep(&self, core: &ControllerCore) {
        if core.lanes().sweep() {
            self.end_if_unused();
        }
    }

    /// Enqueues keys of the kind for something else too, from now on and whenever it is in use.
    pub(crate) fn add_relation(&self, relation: Arc<dyn AnyRelation>) {
        let mut state = self.state.lock();
        if let Some(core) = &state.core {
            core.relate(&*relation);
        }
        state.relations.push(relation);
    }

    pub(crate) fn remove_relation(&self, relation: &Arc<dyn AnyRelation>) {
        let mut state = self.state.lock();
        state.relations.retain(|each| !Arc::ptr_eq(each, relation));
        if let Some(core) = &state.core {
            core.unrelate(relation.number());
        }
    }
}
