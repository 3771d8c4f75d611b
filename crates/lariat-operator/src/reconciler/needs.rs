//! The permissions that reconcilers declare.

use lariat_cache::View;
use lariat_controller::SharedController;

use super::builder::Reconciler;
use crate::needs::Rule;

impl<K: View> Reconciler<K> {
    /// Declares a permission the reconciler needs, for [`Operator::rules`](crate::Operator::rules).
    ///
    /// Permissions to read what it watches are derived.
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat_controller::{Outcome, SharedControllerFactory};
    /// use lariat_operator::{Operator, Rule};
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
    /// See [`Rule::apply`] and [`Rule::owner`]. The applied kinds are recorded on the owner, which is read for this if
    /// it changed meanwhile.
    ///
    /// In a release that does not apply the kind any more, call [`prunes`](Self::prunes) instead.
    pub fn applies<B: View>(self, other: &SharedController<B>) -> Self {
        let owner = Rule::owner(&self.kind);
        let note = Rule::of(&self.kind).verbs(["get", "patch"]);
        self.needs(Rule::apply(other)).needs(owner).needs(note)
    }

    /// Declares that objects of a kind, applied by an earlier release, are pruned.
    ///
    /// This needs permission to delete, get and list the kind.
    ///
    /// Without this declaration, and without permission to read the kind, the objects stay and the kind stays recorded
    /// on the owner. A warning is logged, and [`Applied::forbidden`](crate::Applied::forbidden) returns the kind.
    pub fn prunes<B: View>(self, other: &SharedController<B>) -> Self {
        self.needs(Rule::of(other).verbs(["delete", "get", "list"]))
    }
}
