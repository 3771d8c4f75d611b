//! Methods of a reconcile call for references to its object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use lariat_cache::View;

use super::owner::{Owner, OwnerError};
use crate::reconcile::Reconcile;

impl<K: View> Reconcile<K> {
    /// Returns the owner reference to the reconciled object as controller.
    ///
    /// `controller` and `blockOwnerDeletion` are true. It is for objects that are written by hand;
    /// sets of applied objects have it. A namespaced owner can own objects of its namespace only, a cluster-scoped one
    /// any. The garbage collector deletes an object with another reference, and the API server refuses a second
    /// controller. This method does not know the object; [`set_controller`](Self::set_controller) checks both. On
    /// clusters that enforce it, `blockOwnerDeletion` needs a permission: declare it with
    /// [`Rule::owner`](crate::Rule::owner).
    #[must_use]
    pub fn owner_reference(&self) -> OwnerReference {
        self.owner().controller_reference()
    }

    /// Makes the reconciled object the controller of another, which is not written yet.
    ///
    /// The metadata must have its namespace already. An existing reference to the reconciled object becomes that of a
    /// controller; other owners stay. This is controller-runtime's `SetControllerReference`.
    ///
    /// # Errors
    ///
    /// The other object is in another namespace, or in none although the owner is namespaced: the garbage collector
    /// would delete it. Or another object controls it. Nothing is changed then.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::api::ObjectMeta;
    /// use lariat_controller::{HandlerResult, Outcome, SharedControllerFactory};
    /// use lariat_operator::{CachedApi, Operator, Reconcile, Rule};
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

    /// Returns the reconciled object as an owner, to set, find and remove references to it.
    #[must_use]
    pub fn owner(&self) -> Owner {
        Owner::cached(self.gvk(), self.raw())
    }
}
