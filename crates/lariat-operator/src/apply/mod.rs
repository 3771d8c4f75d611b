//! Apply: the objects an owner wants, and no others.
//!
//! A set is the objects of one owner under one name, applied by one operator. Its members have three labels,
//! `lariat.dev/owner-uid`, `lariat.dev/operator` and `lariat.dev/set`, and where that is legal a reference to the
//! owner. The labels of ApplySets (KEP-3659) do not fit: those have one set for each parent, told by the parent's
//! name, so that one that is made anew would inherit, and labels on the parent that call for a tool. What is taken
//! over from there is to note the kinds of the members on the owner, before the first object of a kind exists.
//!
//! A call goes through: `desired` → `resolve` (kinds, labels, references, hash) → `kinds` (the note on the owner) →
//! `object` (look, claim, send, rank by rank as in `order`) → `prune`. What needs no request is known from `memory`, and
//! to a process that has just started from `drift`; `plan` makes a dry run.
//!
//! **Invariant:** what is as wanted is not sent, whichever process applied it; what others changed is.
//!
//! **Invariant:** nothing is pruned but the very state that was looked at and found to be ours: by its labels, by
//! its controller, and by the entry of our field manager.

mod desired;
mod drift;
mod error;
mod kinds;
mod marks;
mod memory;
mod meta;
mod object;
mod order;
mod owner;
mod plan;
mod prune;
mod report;
mod resolve;
mod send;
mod set;

use std::sync::Arc;

use lariat_cache::View;

use crate::reconciler::Reconcile;

pub use desired::Desired;
pub(crate) use drift::APPLIED;
pub use error::{ApplyError, FieldConflict, ObjectError, ObjectFailure};
pub(crate) use kinds::NOTES;
pub(crate) use memory::Memory;
pub use owner::OwnerError;
pub use plan::{PlanStep, PlannedAction, SetPlan};
pub use report::{Action, Applied, AppliedObject, LeftAlone};
use set::Owner;
pub use set::{Apply, Immutable};

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
    /// Namespaces, definitions and permissions are applied first, then configuration, workloads and the rest; what
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
            own: Arc::clone(self.own()),
            store: Arc::clone(self.cache().store()),
        };
        Apply::new(self.client(), Arc::clone(self.shared()), owner, name)
    }
}
