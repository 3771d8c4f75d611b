//! The operator: a name, a factory, and what all reconcilers share.

use std::fmt;
use std::sync::{Arc, OnceLock};

use lariat_cache::{SharedCacheFactory, View};
use lariat_controller::{Leadership, SharedController, SharedControllerFactory};

use crate::api::CachedApi;
use crate::crd::Definitions;
use crate::events::Recorder;
use crate::guard::Book;
use crate::rbac::Needs;
use crate::reconciler::{Claimed, Reconciler};
use crate::remembered::Reconcilers;
use crate::status::Applied;

/// A named program on a shared factory; a clone is the same operator.
///
/// The name is the field manager of what it writes, alone or with the name of a reconciler behind it, and the reporting
/// component of its Events. Several operators,
/// and handlers without any, can share one factory.
///
/// Handlers do not keep the factory: dropping the last clone of operator and factory drops what runs.
#[derive(Clone)]
pub struct Operator {
    factory: SharedControllerFactory,
    shared: Arc<Shared>,
}

/// What reconcilers need of their operator. It has no factory, which would keep itself through its handlers.
pub(crate) struct Shared {
    pub(crate) name: Arc<str>,
    pub(crate) caches: SharedCacheFactory,
    /// The lease under which objects are written.
    pub(crate) leadership: Option<Leadership>,
    /// Set once nothing is written any more, only planned.
    pub(crate) plan: OnceLock<Book>,
    pub(crate) definitions: Definitions,
    pub(crate) needs: Needs,
    /// What only one reconciler of a kind may have.
    pub(crate) claimed: Claimed,
    pub(crate) applied: Applied,
    pub(crate) events: Recorder,
    pub(crate) sets: crate::apply::Memory,
    pub(crate) reconcilers: Reconcilers,
}

impl Operator {
    /// Makes an operator of a factory. Nothing is sent.
    ///
    /// The name is a field manager, so it may have 128 bytes and no characters that cannot be printed. It is checked
    /// when a reconciler is [registered](Reconciler::register).
    #[must_use]
    pub fn new(name: &str, factory: &SharedControllerFactory) -> Self {
        let name: Arc<str> = name.into();
        Self {
            factory: factory.clone(),
            shared: Arc::new(Shared {
                events: Recorder::new(&name, factory.caches().clients()),
                name,
                caches: factory.caches().clone(),
                leadership: factory.leadership(),
                plan: OnceLock::new(),
                definitions: Definitions::default(),
                needs: Needs::default(),
                claimed: Claimed::default(),
                applied: Applied::default(),
                sets: crate::apply::Memory::default(),
                reconcilers: Reconcilers::default(),
            }),
        }
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Returns the factory it runs on.
    #[must_use]
    pub fn factory(&self) -> &SharedControllerFactory {
        &self.factory
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Begins a reconciler of a kind; nothing happens until it is [registered](Reconciler::register).
    pub fn reconciler<K: View>(&self, name: &str, kind: &SharedController<K>) -> Reconciler<K> {
        Reconciler::new(name, kind, &self.shared)
    }

    /// Returns the handle through which objects of a kind are read, from the cache, and written.
    ///
    /// # Panics
    ///
    /// If the factory runs and this is the first use of the kind: outside a tokio runtime.
    #[must_use]
    pub fn api<K>(&self) -> CachedApi<K>
    where
        K: kube::Resource<DynamicType = ()> + View,
        K::Scope: 'static,
    {
        CachedApi::new(&self.factory.for_object::<K>())
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator")
            .field("name", &self.shared.name)
            .finish_non_exhaustive()
    }
}
