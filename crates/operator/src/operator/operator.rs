//! The type [`Operator`].

use std::fmt;
use std::sync::Arc;

use lariat_cache::View;
use lariat_controller::{SharedController, SharedControllerFactory};

use crate::api::CachedApi;
use crate::needs::Rule;
use crate::reconcile::OperatorState;
use crate::reconciler::Reconciler;

/// A named operator on a shared factory. Clones are the same operator.
///
/// The name is the field manager of the operator's writes, alone or followed by the name of a reconciler, and the
/// reporting component of its Events. Several operators, and handlers without an operator, can share one factory.
///
/// Reconcilers do not keep the factory alive: dropping the last clone of the operator and of the factory aborts the
/// controllers.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat::{HandlerResult, Operator, Outcome, Reconcile, SharedControllerFactory};
///
/// async fn reconcile(cx: Reconcile<Pod>) -> HandlerResult {
///     println!("{} exists", cx.key());
///     Ok(Outcome::done())
/// }
///
/// # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let factory = SharedControllerFactory::builder(client).build();
/// let operator = Operator::new("pods.example.com", &factory);
/// operator.reconciler("log", &factory.for_object::<Pod>()).register(reconcile)?;
/// operator.run(5, std::future::pending::<()>()).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Operator {
    factory: SharedControllerFactory,
    state: Arc<OperatorState>,
}

impl Operator {
    /// Creates an operator on a factory; no request is sent.
    ///
    /// The name must be a field manager: at most 128 bytes, all of them printable. It is checked when a reconciler is
    /// [registered](Reconciler::register).
    #[must_use]
    pub fn new(name: &str, factory: &SharedControllerFactory) -> Self {
        Self {
            factory: factory.clone(),
            state: Arc::new(OperatorState::new(name, factory)),
        }
    }

    /// Takes over what the operator wrote under a former name.
    ///
    /// These are the objects of [applied sets](crate::Reconcile::apply), with the fields that it applied, and the fields of
    /// [statuses](crate::StatusWriter). The operator of the former name must not run any more. Without it, objects of the
    /// former name are errors that name this method. Repeated calls add further names. Once every object was reconciled
    /// under the new name, the call can be removed.
    ///
    /// Call it before a reconciler is registered.
    #[must_use]
    pub fn renamed_from(self, name: &str) -> Self {
        self.state.add_former(name);
        self
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Returns the factory.
    #[must_use]
    pub fn factory(&self) -> &SharedControllerFactory {
        &self.factory
    }

    pub(super) fn shared_state(&self) -> &Arc<OperatorState> {
        &self.state
    }

    pub(super) fn state(&self) -> &OperatorState {
        &self.state
    }

    /// Declares a permission that cannot be derived from what is registered.
    ///
    /// It appears in [`rules`](Self::rules) and the manifests.
    pub fn needs(&self, rule: Rule) {
        let rule = rule.because_of(|| "the operator".to_owned());
        self.state.needs.add(0, [rule]);
    }

    /// Returns a builder of a reconciler for a kind.
    ///
    /// Nothing happens until it is [registered](Reconciler::register).
    pub fn reconciler<K: View>(&self, name: &str, kind: &SharedController<K>) -> Reconciler<K> {
        Reconciler::new(name, kind, &self.state)
    }

    /// Returns a handle that reads a kind from the cache and writes it.
    ///
    /// The operator's name is the field manager of writes that take no parameters.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// # use lariat::Operator;
    ///
    /// # async fn example(operator: Operator) -> Result<(), Box<dyn std::error::Error>> {
    /// let configs = operator.api::<ConfigMap>();
    /// let colors = configs.get_opt(&"shop/colors".parse()?).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime while the factory runs, and this is the first use of the kind.
    #[must_use]
    pub fn api<K>(&self) -> CachedApi<K>
    where
        K: kube::Resource<DynamicType = ()> + View,
        K::Scope: 'static,
    {
        CachedApi::new(&self.factory.for_object::<K>()).with_field_manager(self.name())
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operator")
            .field("name", &self.state.name)
            .finish_non_exhaustive()
    }
}
