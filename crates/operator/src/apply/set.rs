//! A named set of one owner, with its options.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::Client;
use lariat_cache::{CachedObject, Store, View};
use lariat_controller::SharedController;
use lariat_core::Gvk;

use super::marks::{Marks, RecordedOwner};
use super::memory::{Memory, SetMemory};
use crate::reconcile::{CallState, OperatorState};

/// What is done if immutable fields of an object differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Immutable {
    /// The object fails with [`ObjectError::Immutable`](crate::ObjectError::Immutable).
    #[default]
    Report,
    /// The object is deleted, if it is the set's, and created again.
    ///
    /// If a grace period or a finalizer delays the deletion, the object fails at first, and a later call creates it. A
    /// [`Guard`](crate::Guard) counts both writes before the deletion, and does not refuse the creation after it.
    Replace,
}

/// A named set of objects of one owner, with options.
///
/// Created by [`Reconcile::apply_set`](crate::Reconcile::apply_set). [`apply`](Self::apply) writes the objects, and
/// [`plan`](Self::plan) shows what it would do.
///
/// **Where objects to prune are searched.** In the owner's namespace. If the owner is cluster-scoped, or the set has
/// [no owner references](Self::without_owner), in all namespaces, or those to which the kind's cache is
/// [restricted](lariat_cache::Selection::in_namespaces). In addition, wherever the set ever had objects: namespaces
/// other than the owner's are recorded on the owner, with the kinds.
///
/// **Dropped kinds.** A release that no longer applies a kind still has to delete the objects of earlier releases. If
/// it may not read the kind any more, the kind is skipped with a warning, stays recorded, and is in
/// [`Applied::forbidden`](crate::Applied::forbidden). Declare the kind with
/// [`Reconciler::prunes`](crate::Reconciler::prunes) to derive the permission. For a kind that the process has applied
/// for any owner, or that is [declared](crate::Reconciler::applies), a missing permission is a failure.
///
/// **Once per call.** One call of a reconciler applies a set once, or again with the same objects. A second apply with
/// other objects would prune those of the first, so it fails with
/// [`ObjectError::AppliedTwice`](crate::ObjectError::AppliedTwice).
///
/// ```no_run
/// use k8s_openapi::api::apps::v1::Deployment;
/// use lariat::operator::Immutable;
/// use lariat::{Desired, HandlerResult, Outcome, Reconcile};
///
/// async fn reconcile(cx: Reconcile<Deployment>) -> HandlerResult {
///     let jobs = cx.apply_set("jobs").on_immutable(Immutable::Replace);
///     jobs.apply(Desired::new()).await?;
///     Ok(Outcome::done())
/// }
/// # let _ = reconcile;
/// ```
#[derive(Clone)]
#[must_use = "a set does nothing until objects are applied"]
pub struct Apply {
    pub(super) client: Client,
    pub(super) operator: Arc<OperatorState>,
    pub(super) memory: Arc<Memory>,
    pub(super) owner: Arc<CachedObject>,
    pub(super) owner_gvk: Gvk,
    /// The name of the reconciler that applies the set.
    pub(super) reconciler: Arc<str>,
    /// The cached objects of the owner's kind.
    pub(super) owners: Arc<Store>,
    pub(super) call: Arc<CallState>,
    pub(super) marks: Marks,
    pub(super) options: Options,
}

/// The options of a set, which options of single objects override.
#[derive(Clone)]
pub(super) struct Options {
    /// Whether fields of other field managers are taken over.
    pub(super) force: bool,
    pub(super) immutable: Immutable,
    /// Whether existing objects without a controller are adopted.
    pub(super) adopts: bool,
    /// Whether the objects get owner references.
    pub(super) owned: bool,
    /// Whether kinds and namespaces are recorded on the owner.
    pub(super) annotates: bool,
    /// Whether the result contains whole objects.
    pub(super) reads_content: bool,
    /// The kinds to search in addition.
    pub(super) prunes: BTreeSet<Gvk>,
    /// The namespaces to search in addition.
    pub(super) places: BTreeSet<String>,
}

/// The owner of a set, and the call that applies it.
pub(super) struct SetOwner {
    pub(super) gvk: Gvk,
    /// The name of its reconciler.
    pub(super) reconciler: Arc<str>,
    pub(super) object: Arc<CachedObject>,
    /// The reconcile call of the owner.
    pub(super) call: Arc<CallState>,
    /// The cache of its kind.
    pub(super) store: Arc<Store>,
}

impl Apply {
    pub(super) fn new(
        client: Client,
        operator: Arc<OperatorState>,
        owner: SetOwner,
        name: &str,
    ) -> Self {
        let recorded = RecordedOwner {
            gvk: owner.gvk.clone(),
            key: owner.object.key().clone(),
        };
        let mut marks = Marks::new(owner.object.uid(), recorded, &operator.name, name);
        for former in operator.former() {
            marks.add_former_operator(&former);
        }
        Self {
            marks,
            client,
            memory: operator.feature(),
            operator,
            owner: owner.object,
            owner_gvk: owner.gvk,
            reconciler: owner.reconciler,
            owners: owner.store,
            call: owner.call,
            options: Options {
                // As Kubernetes recommends to controllers, which cannot resolve a conflict.
                force: true,
                immutable: Immutable::Report,
                adopts: false,
                owned: true,
                annotates: true,
                reads_content: false,
                prunes: BTreeSet::new(),
                places: BTreeSet::new(),
            },
        }
    }

    /// Sets whether fields of other field managers are taken over (default: yes).
    ///
    /// Kubernetes recommends taking over to controllers. Without it, a field that another manager has set to another
    /// value is an error that names the manager: [`ObjectError::Conflicts`](crate::ObjectError::Conflicts).
    pub fn force(mut self, force: bool) -> Self {
        self.options.force = force;
        self
    }

    /// Sets what is done if immutable fields differ (default: [`Immutable::Report`]).
    pub fn on_immutable(mut self, immutable: Immutable) -> Self {
        self.options.immutable = immutable;
        self
    }

    /// Sets whether existing objects without a controller are adopted (default: no).
    ///
    /// Without it, they fail with [`ObjectError::NotAdopted`](crate::ObjectError::NotAdopted). An adopted object is
    /// deleted like all others, by pruning or with the owner.
    ///
    /// **Objects of other owners.** An object of another owner's set is adopted only if that owner is gone: it is
    /// recorded on the object, and the API server answers that no object has its name, or one with another uid. So an
    /// owner that was recreated takes over what its predecessor left, after `kubectl delete --cascade=orphan` or from a
    /// backup. It is not adopted while it has another controller, or if the API server does not answer for the owner:
    /// [`ObjectError::OwnerUnknown`](crate::ObjectError::OwnerUnknown). This takes the permission to `get` owners of that
    /// kind.
    pub fn adopts(mut self, adopts: bool) -> Self {
        self.options.adopts = adopts;
        self
    }

    /// Returns whole objects from an apply (default: only those in [steps](crate::Step)).
    ///
    /// If the cache has only the metadata of an object, such as for a kind that is only
    /// [owned](crate::Reconciler::owns), the object is read, and remembered until it changes.
    pub fn reads_content(mut self) -> Self {
        self.options.reads_content = true;
        self
    }

    /// Searches a kind for objects to prune in every call.
    ///
    /// Only sets [without annotation](Self::without_annotation) need this; other sets record their kinds. To declare a
    /// kind that a release has dropped, use [`Reconciler::prunes`](crate::Reconciler::prunes).
    pub fn prunes<B: View>(self, kind: &SharedController<B>) -> Self {
        self.prunes_kind(kind.gvk())
    }

    /// Searches a kind, given by its [`Gvk`], for objects to prune in every call.
    ///
    /// Otherwise like [`prunes`](Self::prunes).
    pub fn prunes_kind(mut self, gvk: impl Into<Gvk>) -> Self {
        self.options.prunes.insert(gvk.into());
        self
    }

    /// Searches a namespace for objects to prune in every call.
    ///
    /// Only sets [without annotation](Self::without_annotation) need this; other sets record their namespaces.
    pub fn prunes_in(mut self, namespace: &str) -> Self {
        self.options.places.insert(namespace.to_owned());
        self
    }

    /// Omits the owner references: objects belong to the set by their labels alone.
    ///
    /// The objects can be in any namespace, or be cluster-scoped. The garbage collector does not delete them with the
    /// owner. Add a finalizer that applies an empty set, and that is done once [`is_gone`](crate::Applied::is_gone) is
    /// true. An owner that is recreated under the same name takes over the objects of the old one only if the set
    /// [adopts](Self::adopts) objects; otherwise they fail with
    /// [`ObjectError::OfAnotherOwner`](crate::ObjectError::OfAnotherOwner).
    ///
    /// [`owns`](crate::Reconciler::owns) relies on owner references, so changes and deletions of these objects do not
    /// call the reconciler. The next call, for whatever reason, repairs them.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Namespace;
    /// # use lariat::operator::Finalizer;
    /// # use lariat::{Desired, HandlerResult, Outcome, Reconcile};
    /// # use std::time::Duration;
    /// /// Deletes the objects in other namespaces before the owner is deleted.
    /// async fn cleanup(cx: Reconcile<Namespace>) -> HandlerResult {
    ///     let applied = cx.apply_set("elsewhere").without_owner().apply(Desired::new()).await?;
    ///     if applied.is_gone() { Ok(Outcome::done()) } else { Ok(Outcome::requeue_after(Duration::from_secs(5))) }
    /// }
    /// # let _ = cleanup;
    /// ```
    pub fn without_owner(mut self) -> Self {
        self.options.owned = false;
        self
    }

    /// Does not record the set's kinds and namespaces on the owner.
    ///
    /// By default they are recorded in an annotation, which is written when they change. Use this for owners that the
    /// operator may not or should not patch. Then only these kinds are searched for objects to prune: those of the
    /// objects of a call, and those given by [`prunes`](Self::prunes). And only these namespaces: the owner's, those of
    /// the objects of a call, those of the kind's cache, and those given by [`prunes_in`](Self::prunes_in).
    pub fn without_annotation(mut self) -> Self {
        self.options.annotates = false;
        self
    }

    /// Takes over the objects of the set that had this name before.
    ///
    /// Those that are not wanted any more are pruned. That set has the same owner and operator. Its name must not be in use any more. Repeated calls add further names.
    /// For the set of a renamed reconciler use [`Reconciler::renamed_from`](crate::Reconciler::renamed_from), for a
    /// renamed operator [`Operator::renamed_from`](crate::Operator::renamed_from).
    pub fn renamed_from(mut self, name: &str) -> Self {
        self.marks.add_former_set(name);
        self
    }

    /// Returns the part of the operator's memory that concerns the set.
    pub(super) fn memory(&self) -> SetMemory<'_> {
        SetMemory {
            memory: &self.memory,
            owner_gvk: &self.owner_gvk,
            owner: &self.owner,
            owners: &self.owners,
            set: &self.marks.set,
        }
    }
}

impl std::fmt::Debug for Apply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Apply")
            .field("set", &self.marks.set)
            .field("owner", self.owner.key())
            .finish_non_exhaustive()
    }
}
