//! A kind somebody asked for, in use or not.

use std::sync::{Arc, OnceLock, Weak};

use lariat_cache::SharedCacheFactory;
use lariat_core::{Gvk, ResourceKind};

use super::core::ControllerCore;
use super::options::ControllerOptions;
use crate::factory::Shared;

/// The place of a kind's controller, which comes into being when it is first needed.
pub(crate) struct Slot {
    gvk: Gvk,
    /// Where the kind is served, if that was told.
    resource: OnceLock<ResourceKind>,
    caches: SharedCacheFactory,
    options: ControllerOptions,
    core: OnceLock<Arc<ControllerCore>>,
    factory: Weak<Shared>,
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
            core: OnceLock::new(),
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

    /// Returns the controller if it is in use.
    pub(crate) fn in_use(&self) -> Option<&Arc<ControllerCore>> {
        self.core.get()
    }

    /// Returns the controller; it comes into being, and starts if the factory runs, with the first call.
    pub(crate) fn core(&self) -> &Arc<ControllerCore> {
        if let Some(core) = self.core.get() {
            return core;
        }
        let core = self.core.get_or_init(|| {
            let informer = match self.resource.get() {
                Some(resource) => self.caches.for_resource_kind(resource),
                None => self.caches.for_kind(&self.gvk),
            };
            Arc::new(ControllerCore::new(informer, &self.options))
        });
        if let Some(factory) = self.factory.upgrade() {
            factory.start_late(core);
        }
        core
    }
}
