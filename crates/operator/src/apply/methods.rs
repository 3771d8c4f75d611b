//! The methods of [`Reconcile`] that apply objects.

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
    /// **What is written.** Objects are written by server-side apply, with the operator as field manager, an owner
    /// reference, and labels that mark them as members of the set. Fields that the operator applied before and does not
    /// apply any more are removed. Fields of other managers are kept. Its own fields are restored if others changed
    /// them. Objects of others are neither changed nor deleted: those that another owner controls, as long as that
    /// owner exists or may exist, and existing ones that do not belong to this owner, unless the set
    /// [adopts](Apply::adopts) them.
    ///
    /// **Order.** Namespaces, CRDs and RBAC are applied first, then configuration, workloads and the rest. Kinds that
    /// may refuse other objects, such as webhook configurations, come last. Pruning goes in the opposite order. It is
    /// skipped in a call in which an object could not be applied. A failure of one object does not stop the others.
    ///
    /// **Requests.** If nothing changes, no request is sent, provided that the factory watches the kinds, as with
    /// [`owns`](crate::Reconciler::owns). For other kinds, each call reads the wanted objects and lists those that may
    /// have to be pruned. A process that has just started recognizes an unchanged object by its content and by the
    /// annotation `lariat.dev/applied`, a hash of what was applied. This takes no request if content is cached;
    /// otherwise the object is read once. Stale caches do no harm: an object that is not cached is read before it is
    /// created, and a cached one is changed only if it is still the same object.
    ///
    /// **Leases.** If the factory elects a leader or shards, each write records the lease in the annotation
    /// `lariat.dev/lease` ([`Leadership::signature`](lariat_lease::Leadership::signature)). A new lease alone causes no
    /// write.
    ///
    /// **Names.** The set has the name of the reconciler. Sets of different operators and owners are independent. The
    /// kinds of a set are recorded in an annotation of the owner, which each call reads from the API server if a
    /// [`Transform`](lariat_cache::Transform) may remove annotations from the cache. Use [`apply_set`](Self::apply_set)
    /// for another name and for options.
    ///
    /// Together with [`set_status`](Self::set_status), and [`report_errors`](crate::Reconciler::report_errors) for
    /// failures, this replaces the generating handler of Rancher's wrangler.
    ///
    /// ```no_run
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use k8s_openapi::api::core::v1::{ConfigMap, Service};
    /// use lariat::{Desired, HandlerResult, Outcome, Reconcile};
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
    /// Some objects could not be applied or deleted. All others were applied.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, some objects may have been written; the next call writes the rest.
    pub async fn apply(&self, desired: Desired) -> Result<Applied, ApplyError> {
        let set = self.apply_set(self.handler());
        let former = self.call().former().iter();
        let set = former.fold(set, |set, name| set.renamed_from(name));
        set.apply(desired).await
    }

    /// Returns a set with a name of its own, to set options and apply it.
    ///
    /// Use it to apply several sets in one reconciler. Apply each of them in every call: a set that is not applied is
    /// not pruned. [`Apply::renamed_from`] takes over the objects of a former name.
    ///
    /// **Objects that move.** An object that leaves one set and enters another of the same owner and operator is
    /// relabelled. It is never deleted in between, in whatever order the sets are applied, provided that the reconciler
    /// applies both in each call. For this, an object that is no longer wanted is deleted one call later if the owner
    /// has several sets, and in the first call of a process; that call follows at once. A call that succeeds counts as
    /// one that has applied all sets: to end one earlier, return an error, such as
    /// [`HandlerError::retry_after`](lariat_controller::HandlerError::retry_after). An object that two sets of one
    /// program want stays with the first of them, and fails in the other with
    /// [`ObjectError::OfSibling`](crate::ObjectError::OfSibling). Two programs must not apply sets of one owner under
    /// one name of the operator: they would take such an object from each other.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use lariat::{Desired, HandlerResult, Outcome, Reconcile};
    /// # async fn example(cx: Reconcile<ConfigMap>, monitoring: Desired) -> HandlerResult {
    /// cx.apply_set("monitoring").force(true).apply(monitoring).await?;
    /// # Ok(Outcome::done())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime before the factory's client was first used.
    pub fn apply_set(&self, name: &str) -> Apply {
        let owner = SetOwner {
            gvk: self.gvk().clone(),
            reconciler: self.handler().into(),
            object: Arc::clone(self.raw()),
            call: Arc::clone(self.call()),
            store: Arc::clone(self.cache().store()),
        };
        Apply::new(self.client(), Arc::clone(self.operator()), owner, name)
    }
}
