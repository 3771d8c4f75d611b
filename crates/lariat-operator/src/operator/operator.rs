//! The operator: a name on a factory.

use std::fmt;
use std::sync::Arc;

use lariat_cache::View;
use lariat_controller::{SharedController, SharedControllerFactory};

use crate::api::CachedApi;
use crate::needs::Rule;
use crate::reconcile::OperatorState;
use crate::reconciler::Reconciler;

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
    state: Arc<OperatorState>,
}

impl Operator {
    /// Makes an operator of a factory. Nothing is sent.
    ///
    /// The name is a field manager, so it may have 128 bytes and no characters that cannot be printed. It is checked
    /// when a reconciler is [registered](Reconciler::register).
    #[must_use]
    pub fn new(name: &str, factory: &SharedControllerFactory) -> Self {
        Self {
            factory: factory.clone(),
            state: Arc::new(OperatorState::new(name, factory)),
        }
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Returns the factory it runs on.
    #[must_use]
    pub fn factory(&self) -> &SharedControllerFactory {
        &self.factory
    }

    pub(super) fn state(&self) -> &OperatorState {
        &self.state
    }

    /// Says that something is needed that cannot be seen from what is registered.
    pub fn needs(&self, rule: Rule) {
        let rule = rule.because_of(|| "the operator".to_owned());
        self.state.needs.add(0, [rule]);
    }

    /// Begins a reconciler of a kind; nothing happens until it is [registered](Reconciler::register).
    pub fn reconciler<K: View>(&self, name: &str, kind: &SharedController<K>) -> Reconciler<K> {
        Reconciler::new(name, kind, &self.state)
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
            .field("name", &self.state.name)
            .finish_non_exhaustive()
    }
}
