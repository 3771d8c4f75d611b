//! A set of an owner, and its options.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::Client;
use lariat_cache::{CachedObject, Store, View};
use lariat_controller::SharedController;
use lariat_core::Gvk;

use super::marks::{Marks, label_value};
use super::memory::{Memory, SetMemory};
use crate::reconcile::{CallState, OperatorState};

/// What is done if immutable fields differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Immutable {
    /// The object fails with [`ObjectError::Immutable`](crate::ObjectError::Immutable).
    #[default]
    Report,
    /// The object is deleted, if it is the set's, and created again. If the deletion takes time, because of a grace
    /// period or a finalizer, the object fails first, and a later call creates it.
    Replace,
}

/// A named set of objects of one owner, with options.
///
/// Created by [`Reconcile::apply_set`](crate::Reconcile::apply_set).
///
/// A kind that nothing in the program applies or [prunes](crate::Reconciler::prunes) any more, and that may not be read
/// either, is skipped with a warning. It stays recorded, and [`Applied::forbidden`](crate::Applied::forbidden) returns
/// it. A release that drops a kind keeps the permission by `Reconciler::prunes`. For a kind that the process has
/// applied for any owner, or that is [declared](crate::Reconciler::applies), a missing permission is a failure.
///
/// Objects to prune are searched in the owner's namespace. If the owner is cluster-scoped, or the set has [no
/// owner](Self::without_owner), all namespaces are searched, or those to which the kind's cache is
/// [restricted](lariat_cache::Selection::in_namespaces). In any case they are searched wherever the set ever had
/// objects: namespaces other than the owner's are recorded with the kinds.
///
/// One call of a reconciler applies a set once, or again with the same objects. Two sets with one name would prune each
/// other's objects, so the second is refused with [`ObjectError::AppliedTwice`](crate::ObjectError::AppliedTwice).
///
/// ```no_run
/// use k8s_openapi::api::apps::v1::Deployment;
/// use lariat_controller::{HandlerResult, Outcome};
/// use lariat_operator::{Desired, Immutable, Reconcile};
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
    /// The cached objects of the owner's kind.
    pub(super) owners: Arc<Store>,
    pub(super) call: Arc<CallState>,
    pub(super) marks: Marks,
    pub(super) options: Options,
}

#[derive(Clone)]
pub(super) struct Options {
    pub(super) force: bool,
    pub(super) immutable: Immutable,
    pub(super) adopts: bool,
    pub(super) owned: bool,
    pub(super) annotates: bool,
    pub(super) reads_content: bool,
    pub(super) prunes: BTreeSet<Gvk>,
    /// The namespaces to search in addition.
    pub(super) places: BTreeSet<String>,
}

/// The owner of a set.
pub(super) struct SetOwner {
    pub(super) gvk: Gvk,
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
        Self {
            marks: Marks::new(owner.object.uid(), &operator.name, name),
            client,
            memory: operator.feature(),
            operator,
            owner: owner.object,
            owner_gvk: owner.gvk,
            owners: owner.store,
            call: owner.call,
            options: Options {
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

    /// Sets whether fields of other managers are taken over (default: yes).
    ///
    /// Kubernetes recommends this to controllers. Otherwise a field with another value is an error that names its
    /// manager: [`ObjectError::Conflicts`](crate::ObjectError::Conflicts).
    pub fn force(mut self, force: bool) -> Self {
        self.options.force = force;
        self
    }

    /// Sets what is done if immutable fields differ (default: [`Immutable::Report`]).
    pub fn on_immutable(mut self, immutable: Immutable) -> Self {
        self.options.immutable = immutable;
        self
    }

    /// Sets whether the set adopts existing objects without a controller (default: no).
    ///
    /// Otherwise they fail with [`ObjectError::NotOurs`](crate::ObjectError::NotOurs). Adopted objects are deleted like
    /// all others, by pruning or with the owner. Objects of another owner's set fail in any case.
    pub fn adopts(mut self, adopts: bool) -> Self {
        self.options.adopts = adopts;
        self
    }

    /// Returns whole objects from an apply, whatever is cached (default: only those in [steps](crate::Step)).
    ///
    /// If the cache has only the metadata of an object, as that of a kind that is only [owned](crate::Reconciler::owns),
    /// the object is read, and remembered until it changes.
    pub fn reads_content(mut self) -> Self {
        self.options.reads_content = true;
        self
    }

    /// Searches a kind for objects to prune, in every call.
    ///
    /// It is needed only for sets [without annotation](Self::without_annotation); otherwise the kinds are recorded.
    pub fn prunes<B: View>(self, kind: &SharedController<B>) -> Self {
        self.prunes_kind(kind.gvk())
    }

    /// Searches a kind for objects to prune, in every call.
    ///
    /// As [`prunes`](Self::prunes).
    pub fn prunes_kind(mut self, gvk: impl Into<Gvk>) -> Self {
        self.options.prunes.insert(gvk.into());
        self
    }

    /// Searches a namespace for objects to prune, in every call.
    ///
    /// It is needed only for sets [without annotation](Self::without_annotation); otherwise the namespaces are
    /// recorded.
    pub fn prunes_in(mut self, namespace: &str) -> Self {
        self.options.places.insert(namespace.to_owned());
        self
    }

    /// Omits the owner references: objects are the set's by their labels alone.
    ///
    /// They can be in any namespace, or in none. The garbage collector does not delete them with the owner: add a
    /// finalizer that applies an empty set, and is done once that [is gone](crate::Applied::is_gone). An owner that is
    /// recreated under the same name does not take over the old one's objects; they fail with
    /// [`ObjectError::OfAnotherOwner`](crate::ObjectError::OfAnotherOwner).
    ///
    /// [`owns`](crate::Reconciler::owns) uses owner references, so changes and deletions of such objects do not call
    /// the reconciler. The next call, for whatever reason, repairs them.
    pub fn without_owner(mut self) -> Self {
        self.options.owned = false;
        self
    }

    /// Does not record the set's kinds and namespaces on the owner.
    ///
    /// By default they are recorded in an annotation, which is written when they change. Use this for owners that the
    /// operator may not or should not patch. Only kinds among the objects of a call or given by
    /// [`prunes`](Self::prunes) are searched then, and only in the namespaces of the owner, of the objects of a call,
    /// of the kind's cache, or given by [`prunes_in`](Self::prunes_in).
    pub fn without_annotation(mut self) -> Self {
        self.options.annotates = false;
        self
    }

    /// Takes over the objects of a set of another name, its former name.
    ///
    /// That set has the same owner and operator, and must not be in use any more.
    pub fn formerly(mut self, name: &str) -> Self {
        self.marks.former.push(label_value(name));
        self
    }

    /// Returns what is remembered of the set.
    pub(super) fn remembered(&self) -> SetMemory<'_> {
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
