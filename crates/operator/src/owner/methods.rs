//! The methods of [`Reconcile`] for owner references to its object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use lariat_cache::View;

use super::owner::{Owner, OwnerError};
use crate::reconcile::Reconcile;

impl<K: View> Reconcile<K> {
    /// Returns the owner reference to the reconciled object as controller.
    ///
    /// `controller` and `blockOwnerDeletion` are true. Use it for objects that are written by hand;
    /// [`apply`](Self::apply) sets the reference itself. Prefer [`set_controller`](Self::set_controller), which checks
    /// the other object: a namespaced owner can own objects of its own namespace only, or the garbage collector deletes
    /// them, and an object can have one controller only. On clusters that enforce it, `blockOwnerDeletion` needs the
    /// permission [`Rule::owner`](crate::Rule::owner).
    #[must_use]
    pub fn owner_reference(&self) -> OwnerReference {
        self.owner().controller_reference()
    }

    /// Makes the reconciled object the controller of another, which is not written yet.
    ///
    /// The metadata must have the namespace already. An existing reference to the reconciled object becomes a
    /// controller reference, and other owners are kept. This is controller-runtime's `SetControllerReference`.
    ///
    /// # Errors
    ///
    /// The other object is in another namespace, or in none although the owner is namespaced: the garbage collector
    /// would delete it. Or another object is its controller. Nothing is changed then.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::api::ObjectMeta;
    /// use lariat::operator::{CachedApi, Rule};
    /// use lariat::{HandlerResult, Operator, Outcome, Reconcile, SharedControllerFactory};
    ///
    /// async fn reconcile(cx: Reconcile<Deployment>, config_maps: CachedApi<ConfigMap>) -> HandlerResult {
    ///     let mut metadata = ObjectMeta {
    ///         name: Some(format!("{}-config", cx.key().name())),
    ///         namespace: cx.key().namespace().map(str::to_owned),
    ///         ..ObjectMeta::default()
    ///     };
    ///     cx.set_controller(&mut metadata)?;
    ///     config_maps.create(&ConfigMap { metadata, ..ConfigMap::default() }).await?;
    ///     Ok(Outcome::done())
    /// }
    ///
    /// # fn example(factory: SharedControllerFactory) -> Result<(), Box<dyn std::error::Error>> {
    /// # let operator = Operator::new("configurer", &factory);
    /// let deployments = factory.for_object::<Deployment>();
    /// let config_maps = operator.api::<ConfigMap>();
    /// operator
    ///     .reconciler("configs", &deployments)
    ///     .needs(Rule::owner(&deployments))
    ///     .needs(Rule::of(&factory.for_object::<ConfigMap>()).verbs(["create"]))
    ///     .register(move |cx| reconcile(cx, config_maps.clone()))?;
    /// # Ok(()) }
    /// ```
    pub fn set_controller(&self, of: &mut ObjectMeta) -> Result<(), OwnerError> {
        self.owner().set_controller(of)
    }

    /// Returns the reconciled object as an owner, to set, find and remove references.
    #[must_use]
    pub fn owner(&self) -> Owner {
        Owner::cached(self.gvk(), self.raw())
    }
}
