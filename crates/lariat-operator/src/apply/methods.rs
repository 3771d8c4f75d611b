//! Methods of a reconcile call that apply objects.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use lariat_cache::View;

use super::desired::Desired;
use super::error::ApplyError;
use super::owner::{OwnerError, controller_reference, set_controller};
use super::report::Applied;
use super::set::{Apply, Owner};
use crate::reconcile::Reconcile;

impl<K: View> Reconcile<K> {
    /// Applies the objects that the reconciled object owns, and prunes the others.
    ///
    /// Objects are written by server-side apply, with an owner reference and labels by which they are found again. The
    /// field manager is the operator. Fields it applied before and does not apply any more are removed; fields of other
    /// managers stay; its own fields that others changed are restored. Objects of others are never touched: neither
    /// those another owner controls, nor existing ones that do not belong to this owner.
    ///
    /// If nothing changes, nothing is sent, provided that the factory watches the kinds, as with
    /// [`owns`](crate::Reconciler::owns). For other kinds, each call reads the wanted objects and lists those that may
    /// have to be pruned. A process that has just started recognizes an unchanged object by an annotation,
    /// `lariat.dev/applied`, with a hash of what was applied, and by its content. This takes no request if content is
    /// cached; otherwise the object is read once.
    ///
    /// If the factory elects a leader or shards, writes record the lease in the annotation `lariat.dev/lease`
    /// ([`Leadership::signature`](lariat_controller::Leadership::signature)). A new lease alone is no reason to write.
    ///
    /// Stale caches do no harm: an object that is not cached is read before it is created, and one that is cached is
    /// changed only if it is still the same object.
    ///
    /// Namespaces, CRDs and permissions are applied first, then configuration, workloads and the rest; kinds that may
    /// refuse other objects come last. Pruning goes in the opposite order, and is skipped in a call in which an object
    /// could not be applied. An error of one object does not stop the others.
    ///
    /// Together with [`set_status`](Self::set_status), and [`report_errors`](crate::Reconciler::report_errors) for
    /// failures, this is wrangler's generating handler.
    ///
    /// The set has the name of the reconciler; sets of different reconcilers, operators and owners are independent. Its
    /// kinds are recorded in an annotation of the owner. If a [`Transform`](lariat_cache::Transform) may remove
    /// annotations from the cache, each call reads them. [`apply_set`](Self::apply_set) sets another name, and options.
    ///
    /// ```no_run
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use k8s_openapi::api::core::v1::{ConfigMap, Service};
    /// use lariat_controller::{HandlerResult, Outcome};
    /// use lariat_operator::{Desired, Reconcile};
    ///
    /// # fn service_of(_: &Deployment) -> Service { unimplemented!() }
    /// # fn config_of(_: &Deployment) -> ConfigMap { unimplemented!() }
    /// async fn reconcile(cx: Reconcile<Deployment>) -> HandlerResult {
    ///     let (service, config) = (service_of(cx.object()), config_of(cx.object()));
    ///     let applied = cx.apply(Desired::new().with(&service).with(&config)).await?;
    ///     println!("{}: {applied}", cx.key());
    ///     Ok(Outcome::done())
    /// }
    /// # let _ = reconcile;
    /// ```
    ///
    /// # Errors
    ///
    /// Some objects could not be applied or deleted; all others were.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, some objects may have been written; the next call writes the rest.
    pub async fn apply(&self, desired: Desired) -> Result<Applied, ApplyError> {
        self.apply_set(self.handler()).apply(desired).await
    }

    /// Returns a set with a name of its own, to set options and apply it.
    ///
    /// Sets with different names are independent. [`Apply::formerly`] takes over the objects of a former name.
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime before the factory's client was first used.
    pub fn apply_set(&self, name: &str) -> Apply {
        let owner = Owner {
            gvk: self.gvk().clone(),
            object: Arc::clone(self.raw()),
            call: Arc::clone(self.call()),
            store: Arc::clone(self.cache().store()),
        };
        Apply::new(self.client(), Arc::clone(self.operator()), owner, name)
    }

    /// Returns the owner reference to the reconciled object as controller.
    ///
    /// `controller` and `blockOwnerDeletion` are true. It is for objects that are written by hand;
    /// [`apply`](Self::apply) adds it. A namespaced owner can own objects of its namespace only, a cluster-scoped one
    /// any. The garbage collector deletes an object with another reference, and the API server refuses a second
    /// controller. This method does not know the object; [`set_controller`](Self::set_controller) checks both. On
    /// clusters that enforce it, `blockOwnerDeletion` needs a permission: declare it with
    /// [`Rule::owner`](crate::Rule::owner).
    #[must_use]
    pub fn owner_reference(&self) -> OwnerReference {
        controller_reference(self.gvk(), self.raw())
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
        set_controller(self.owner_reference(), self.key(), of)
    }
}
