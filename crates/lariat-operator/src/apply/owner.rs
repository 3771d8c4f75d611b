//! References to owners.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use lariat_cache::{CachedObject, View};
use lariat_core::Gvk;

use crate::reconciler::Reconcile;

impl<K: View> Reconcile<K> {
    /// Returns the reference by which an object says that the reconciled one is its controller: `controller` and
    /// `blockOwnerDeletion` are true.
    ///
    /// For objects that are written by hand; [`apply`](Self::apply) adds it by itself. An object in a namespace can
    /// only own objects of that namespace, and one without a namespace any: the garbage collector deletes an object
    /// whose reference leads elsewhere. Who sets `blockOwnerDeletion` needs to be allowed to on clusters that enforce it:
    /// say so with [`Rule::owner`](crate::Rule::owner).
    ///
    /// ```no_run
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::api::ObjectMeta;
    /// use lariat_controller::{HandlerResult, Outcome, SharedControllerFactory};
    /// use lariat_operator::{CachedApi, Operator, Reconcile, Rule};
    ///
    /// async fn reconcile(cx: Reconcile<Deployment>, config_maps: CachedApi<ConfigMap>) -> HandlerResult {
    ///     let metadata = ObjectMeta {
    ///         name: Some(format!("{}-config", cx.key().name())),
    ///         namespace: cx.key().namespace().map(str::to_owned),
    ///         owner_references: Some(vec![cx.owner_reference()]),
    ///         ..ObjectMeta::default()
    ///     };
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
    #[must_use]
    pub fn owner_reference(&self) -> OwnerReference {
        controller_reference(self.gvk(), self.raw())
    }
}

/// Returns the reference to an object as a controller.
pub(super) fn controller_reference(gvk: &Gvk, owner: &CachedObject) -> OwnerReference {
    OwnerReference {
        api_version: gvk.api_version(),
        kind: gvk.kind().to_owned(),
        name: owner.key().name().to_owned(),
        uid: owner.uid().to_string(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}
