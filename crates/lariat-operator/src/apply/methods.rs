//! What a reconcile does with objects of its own.

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
    /// Brings the objects the reconciled one owns to what is wanted, by server-side apply, and deletes those it does
    /// not want any more.
    ///
    /// Objects get a reference to their owner and labels by which they are found again. The field manager is the
    /// operator: fields it applied once and does not any more are removed, those of others are left alone, and those
    /// others changed are taken back. Objects of others are never touched: neither what another owner controls, nor
    /// what exists without being this owner's.
    ///
    /// If nothing changes, nothing is sent, provided that the kinds are watched on the factory, as by
    /// [`owns`](crate::Reconciler::owns). Of kinds that are not, each call asks for the objects that are wanted,
    /// and lists those that may have to go. A process that has just started knows an object that is as wanted by an
    /// annotation, `lariat.dev/applied`, with a hash of what was applied, and by its content: of a kind whose content is
    /// cached that takes no request either, of others the object is read once.
    ///
    /// Where the factory elects a leader or shards, what is sent says under which lease in the annotation
    /// `lariat.dev/lease` ([`Leadership::signature`](lariat_controller::Leadership::signature)). Another lease alone is no
    /// reason to send anything.
    ///
    /// A cache that is behind does no harm: what it does not show is asked for before it is created, and what it shows
    /// is changed only if it is still that very object.
    ///
    /// Namespaces, CRDs and permissions are applied first, then configuration, workloads and the rest; what
    /// may refuse others comes last. Pruning goes the other way, and does not happen in a call in which something
    /// could not be applied. One failure does not stop the others.
    ///
    /// With [`set_status`](Self::set_status) behind it, and [`report_errors`](crate::Reconciler::report_errors) for
    /// what fails, this is what wrangler calls a generating handler.
    ///
    /// The set has the name of the reconciler; reconcilers, operators and owners do not get in each other's way.
    /// Which kinds it has is noted in an annotation of the owner; where a [`Transform`](lariat_cache::Transform) may
    /// leave annotations out of the cache, each call asks for them. For another name and for options there is
    /// [`apply_set`](Self::apply_set).
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
    /// Objects that could not be applied or deleted; all others were.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, some objects may have been written and others not; the next call does what is left.
    pub async fn apply(&self, desired: Desired) -> Result<Applied, ApplyError> {
        self.apply_set(self.handler()).apply(desired).await
    }

    /// Begins to apply a set under a name of its own, or with options. Sets of different names are independent.
    ///
    /// What an earlier name left behind is taken over by [`Apply::formerly`].
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, if the client is asked for the first time.
    pub fn apply_set(&self, name: &str) -> Apply {
        let owner = Owner {
            gvk: self.gvk().clone(),
            object: Arc::clone(self.raw()),
            call: Arc::clone(self.call()),
            store: Arc::clone(self.cache().store()),
        };
        Apply::new(self.client(), Arc::clone(self.operator()), owner, name)
    }

    /// Returns the reference by which an object says that the reconciled one is its controller: `controller` and
    /// `blockOwnerDeletion` are true.
    ///
    /// For objects that are written by hand; [`apply`](Self::apply) adds it by itself. An object in a namespace can
    /// only own objects of that namespace, and one without a namespace any: the garbage collector deletes an object
    /// whose reference leads elsewhere, and the API server refuses a second controller. This does not know the object;
    /// [`set_controller`](Self::set_controller) checks both. Who sets `blockOwnerDeletion` needs to be allowed to on
    /// clusters that enforce it: say so with [`Rule::owner`](crate::Rule::owner).
    #[must_use]
    pub fn owner_reference(&self) -> OwnerReference {
        controller_reference(self.gvk(), self.raw())
    }

    /// Makes the reconciled object the controller of another, before that is written.
    ///
    /// The other one's metadata has its namespace by then. A reference to the reconciled object that is there already
    /// becomes the one of a controller, and other owners stay. This is controller-runtime's `SetControllerReference`.
    ///
    /// # Errors
    ///
    /// The other object is in another namespace, or in none although the reconciled one is in one: the garbage
    /// collector would delete it. Or another object is its controller. Nothing is changed.
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
