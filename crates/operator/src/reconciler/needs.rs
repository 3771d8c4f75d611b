//! The methods of [`Reconciler`] that declare permissions.

use lariat_cache::View;
use lariat_controller::SharedController;

use super::builder::Reconciler;
use crate::needs::Rule;

impl<K: View> Reconciler<K> {
    /// Declares a permission that the reconciler needs.
    ///
    /// It appears in [`Operator::rules`](crate::Operator::rules). Permissions to read the watched kinds are derived,
    /// and need no declaration.
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::operator::Rule;
    /// use lariat::{Operator, Outcome, SharedControllerFactory};
    ///
    /// # fn example(factory: SharedControllerFactory) -> Result<(), Box<dyn std::error::Error>> {
    /// let operator = Operator::new("evictor", &factory);
    /// let pods = factory.for_object::<Pod>();
    /// operator
    ///     .reconciler("deployments", &factory.for_object::<Deployment>())
    ///     .needs(Rule::of(&pods).verbs(["delete"]))
    ///     .needs(Rule::of(&pods).subresource("eviction").verbs(["create"]))
    ///     .register(|_| async { Ok(Outcome::done()) })?;
    /// # Ok(()) }
    /// ```
    pub fn needs(mut self, rule: Rule) -> Self {
        self.setup.needs.push(rule);
        self
    }

    /// Declares that the reconciler applies objects of a kind, as their owner.
    ///
    /// It adds [`Rule::apply`], [`Rule::owner`], and `get` and `patch` of the owner, on which the applied kinds are
    /// recorded. In a release that no longer applies the kind, call [`prunes`](Self::prunes) instead.
    ///
    /// ```no_run
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// # use lariat::{HandlerResult, Operator, Outcome, Reconcile, SharedControllerFactory};
    ///
    /// # async fn reconcile(_: Reconcile<Deployment>) -> HandlerResult { Ok(Outcome::done()) }
    /// # fn example(factory: SharedControllerFactory, operator: Operator) -> Result<(), Box<dyn std::error::Error>> {
    /// let configs = factory.for_object::<ConfigMap>();
    /// operator
    ///     .reconciler("deployments", &factory.for_object::<Deployment>())
    ///     .owns(&configs)
    ///     .applies(&configs)
    ///     .register(reconcile)?;
    /// # Ok(()) }
    /// ```
    pub fn applies<B: View>(self, other: &SharedController<B>) -> Self {
        let owner = Rule::owner(&self.kind);
        let note = Rule::of(&self.kind).verbs(["get", "patch"]);
        self.needs(Rule::apply(other)).needs(owner).needs(note)
    }

    /// Declares that objects of a kind, applied by an earlier release, are pruned.
    ///
    /// It adds `delete`, `get` and `list` of the kind. Without them the objects stay, and the kind stays recorded on
    /// the owner: a warning is logged, and [`Applied::forbidden`](crate::Applied::forbidden) returns the kind.
    pub fn prunes<B: View>(self, other: &SharedController<B>) -> Self {
        self.needs(Rule::of(other).verbs(["delete", "get", "list"]))
    }
}
