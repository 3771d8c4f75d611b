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

/// What is done if fields differ that cannot be changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Immutable {
    /// It is an error of the object: [`ObjectError::Immutable`](crate::ObjectError::Immutable).
    #[default]
    Report,
    /// The object is deleted, if it is the set's, and created again. If its deletion takes time, because of a grace
    /// period or a finalizer, that is an error first, and it is created by a later call.
    Replace,
}

/// A named set of objects of one owner, with options; see [`Reconcile::apply_set`](crate::Reconcile::apply_set).
///
/// A kind nobody in the program applies or [prunes](crate::Reconciler::prunes) any more, and that may not be read any
/// more either, is passed over with a warning, stays noted, and is returned by
/// [`Applied::forbidden`](crate::Applied::forbidden). A release that drops
/// a kind keeps the right by `Reconciler::prunes`. Of a kind the process has applied for any owner, or somebody
/// [says](crate::Reconciler::applies) so, a right that is missing is a failure.
///
/// What is not wanted any more is looked for in the owner's namespace. If the owner has none, or the objects
/// [no owner](Self::without_owner), that is everywhere; of a kind whose cache is
/// [restricted to namespaces](lariat_cache::Selection::in_namespaces), it is in those. In any case it is looked for
/// wherever the set ever had objects: namespaces other than the owner's are noted beside the kinds.
///
/// One call of a reconciler applies a set of a name once, or with the same objects again: two sets of one name would
/// delete each other's objects, and the second is refused with
/// [`ObjectError::AppliedTwice`](crate::ObjectError::AppliedTwice).
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
    pub(super) prunes: BTreeSet<Gvk>,
    /// Namespaces to be looked through.
    pub(super) places: BTreeSet<String>,
}

/// The object a set is applied for.
pub(super) struct Owner {
    pub(super) gvk: Gvk,
    pub(super) object: Arc<CachedObject>,
    /// The call that is about it.
    pub(super) call: Arc<CallState>,
    /// The cache of its kind.
    pub(super) store: Arc<Store>,
}

impl Apply {
    pub(super) fn new(
        client: Client,
        operator: Arc<OperatorState>,
        owner: Owner,
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
                prunes: BTreeSet::new(),
                places: BTreeSet::new(),
            },
        }
    }

    /// Sets whether fields others manage are taken over (default: yes, as Kubernetes advises controllers to do). If
    /// not, a field whose value differs is an error that names who manages it: [`ObjectError::Conflicts`](crate::ObjectError::Conflicts).
    pub fn force(mut self, force: bool) -> Self {
        self.options.force = force;
        self
    }

    /// Sets what is done if fields differ that cannot be changed (default: [`Immutable::Report`]).
    pub fn on_immutable(mut self, immutable: Immutable) -> Self {
        self.options.immutable = immutable;
        self
    }

    /// Sets whether objects that exist, and that nobody controls, become the set's (default: no, they are errors:
    /// [`ObjectError::NotOurs`](crate::ObjectError::NotOurs)). They will be deleted like all others, by pruning or with the owner. What a set of
    /// another owner has is an error all the same.
    pub fn adopts(mut self, adopts: bool) -> Self {
        self.options.adopts = adopts;
        self
    }

    /// Looks through a kind for what is to be pruned, in every call.
    ///
    /// Usually there is no need: kinds are remembered. It is for sets [without](Self::without_annotation) that.
    pub fn prunes<B: View>(self, kind: &SharedController<B>) -> Self {
        self.prunes_kind(kind.gvk())
    }

    /// Looks through a kind for what is to be pruned, in every call; as [`prunes`](Self::prunes).
    pub fn prunes_kind(mut self, gvk: impl Into<Gvk>) -> Self {
        self.options.prunes.insert(gvk.into());
        self
    }

    /// Looks through a namespace for what is to be pruned, in every call.
    ///
    /// Usually there is no need: namespaces are remembered. It is for sets [without](Self::without_annotation) that.
    pub fn prunes_in(mut self, namespace: &str) -> Self {
        self.options.places.insert(namespace.to_owned());
        self
    }

    /// Gives objects no reference to the owner: they are the set's by their labels alone, and can be in any namespace
    /// or in none.
    ///
    /// The garbage collector does not know about them: give the owner a finalizer that applies an empty set, and is
    /// done when that [is gone](crate::Applied::is_gone). An owner that is made anew under the same name does not take over
    /// what the old one left behind: that is [`ObjectError::OfAnotherOwner`](crate::ObjectError::OfAnotherOwner).
    ///
    /// Nor does [`owns`](crate::Reconciler::owns) notice when somebody changes or deletes such an object, since it goes
    /// by the reference; that is mended by the next call, whatever it is for.
    pub fn without_owner(mut self) -> Self {
        self.options.owned = false;
        self
    }

    /// Does not note on the owner which kinds the set has and in which namespaces (default: it does, in an annotation,
    /// when that changes).
    ///
    /// For owners the operator may not or should not patch. Kinds that are neither among the objects of a call nor
    /// given by [`prunes`](Self::prunes) are not looked through then, nor are namespaces that neither the owner, the
    /// objects of a call nor the cache of the kind name, unless they are given by [`prunes_in`](Self::prunes_in).
    pub fn without_annotation(mut self) -> Self {
        self.options.annotates = false;
        self
    }

    /// Takes over the objects of a set of another name, of the same owner and operator: what it was called before.
    /// That set must not be in use any more.
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
