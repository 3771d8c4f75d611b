//! What a reconciler needs to be allowed.

use lariat_cache::View;
use lariat_controller::SharedController;

use super::builder::Reconciler;
use crate::needs::Rule;

impl<K: View> Reconciler<K> {
    /// Says that the reconciler needs to be allowed something, for [`Operator::rules`](crate::Operator::rules); reading what it watches is
    /// known.
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

    /// Says that the reconciler applies objects of a kind, as their owner; see [`Rule::apply`] and [`Rule::owner`].
    /// On the owner it is noted which kinds those are, for which it is read when it changed meanwhile.
    ///
    /// A release that does not apply a kind any more says [`prunes`](Self::prunes) instead.
    pub fn applies<B: View>(self, other: &SharedController<B>) -> Self {
        let owner = Rule::owner(&self.kind);
        let note = Rule::of(&self.kind).verbs(["get", "patch"]);
        self.needs(Rule::apply(other)).needs(owner).needs(note)
    }

    /// Says that the reconciler applied objects of a kind once, in an earlier release, and deletes what is left of
    /// them: it needs to be allowed to delete, get and list the kind.
    ///
    /// In a program that says nothing of the kind, and has no right to read it, they stay, and the kind stays noted on
    /// the owner; a warning says so, and so does [`Applied::forbidden`](crate::Applied::forbidden).
    pub fn prunes<B: View>(self, other: &SharedController<B>) -> Self {
        self.needs(Rule::of(other).verbs(["delete", "get", "list"]))
    }
}
