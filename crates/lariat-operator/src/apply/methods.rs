//! Methods of a reconcile call that apply objects.

use std::sync::Arc;

use lariat_cache::View;

use super::desired::Desired;
use super::error::ApplyError;
use super::report::Applied;
use super::set::{Apply, SetOwner};
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
        let owner = SetOwner {
            gvk: self.gvk().clone(),
            object: Arc::clone(self.raw()),
            call: Arc::clone(self.call()),
            store: Arc::clone(self.cache().store()),
        };
        Apply::new(self.client(), Arc::clone(self.operator()), owner, name)
    }
}
