//! A set of an owner, and how it is applied.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::Client;
use lariat_cache::{CachedObject, Informer, Phase, Store, View};
use lariat_controller::SharedController;
use lariat_core::{Gvk, ObjectKey};
use parking_lot::Mutex;

use super::desired::Desired;
use super::error::{ApplyError, ObjectError, ObjectFailure};
use super::marks::{Marks, label_value};
use super::memory::Place;
use super::plan::SetPlan;
use super::report::Applied;
use crate::operator::Shared;
use crate::reconciler::Own;

/// What is done if fields differ that cannot be changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Immutable {
    /// It is an error of the object: [`ObjectError::Immutable`].
    #[default]
    Report,
    /// The object is deleted, if it is the set's, and created again. If its deletion takes time, because of a grace
    /// period or a finalizer, that is an error first, and it is created by a later call.
    Replace,
}

/// A named set of objects of one owner, with options; see [`Reconcile::apply_set`](crate::Reconcile::apply_set).
///
/// A kind nobody in the program applies or [prunes](crate::Reconciler::prunes) any more, and that may not be read any
/// more either, is passed over with a warning, stays noted, and is told by [`Applied::forbidden`]. A release that drops
/// a kind keeps the right by `Reconciler::prunes`. Of a kind the process has applied for any owner, or somebody
/// [says](crate::Reconciler::applies) so, a right that is missing is a failure.
///
/// What is not wanted any more is looked for in the owner's namespace. If the owner has none, or the objects
/// [no owner](Self::without_owner), that is everywhere; of a kind whose cache is
/// [restricted to namespaces](lariat_cache::Selection::in_namespaces), it is in those. In any case it is looked for
/// wherever the set ever had objects: namespaces other than the owner's are noted beside the kinds.
///
/// One call of a reconciler applies a set of a name once, or with the same objects again: two sets of one name would
/// delete each other's objects, and the second is refused with [`ObjectError::AppliedTwice`].
#[derive(Clone)]
#[must_use = "a set does nothing until objects are applied"]
pub struct Apply {
    pub(super) client: Client,
    pub(super) shared: Arc<Shared>,
    pub(super) owner: Arc<CachedObject>,
    pub(super) owner_gvk: Gvk,
    /// The cached objects of the owner's kind.
    pub(super) owners: Arc<Store>,
    pub(super) own: Arc<Mutex<Own>>,
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
    pub(super) own: Arc<Mutex<Own>>,
    /// The cache of its kind.
    pub(super) store: Arc<Store>,
}

impl Apply {
    pub(super) fn new(client: Client, shared: Arc<Shared>, owner: Owner, name: &str) -> Self {
        Self {
            marks: Marks::new(owner.object.uid(), &shared.name, name),
            client,
            shared,
            owner: owner.object,
            owner_gvk: owner.gvk,
            owners: owner.store,
            own: owner.own,
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
    /// not, a field whose value differs is an error that names who manages it: [`ObjectError::Conflicts`].
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
    /// [`ObjectError::NotOurs`]). They will be deleted like all others, by pruning or with the owner. What a set of
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
    /// done when that [is gone](Applied::is_gone). An owner that is made anew under the same name does not take over
    /// what the old one left behind: that is [`ObjectError::OfAnotherOwner`].
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

    /// Brings the objects of the set to what is wanted, and deletes those that are not wanted any more.
    ///
    /// [`Reconcile::apply`](crate::Reconcile::apply) says what is sent, and in which order.
    ///
    /// # Errors
    ///
    /// Objects that could not be applied or deleted; all others were, except that nothing is deleted in a call in
    /// which something could not be applied.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, some objects may have been written and others not; the next call does what is left.
    pub async fn apply(&self, desired: Desired) -> Result<Applied, ApplyError> {
        let run = Run::new(self);
        run.run(desired).await
    }

    /// Tells what [`apply`](Self::apply) would do, by rehearsing it on the API server. Nothing is written.
    ///
    /// What an object needs that does not exist yet, such as its namespace or its definition, makes its rehearsal
    /// fail.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn plan(&self, desired: Desired) -> SetPlan {
        Run::new(self).plan(desired).await
    }

    pub(super) fn place(&self) -> Place<'_> {
        Place {
            memory: &self.shared.sets,
            owner: (&self.owner_gvk, &self.owner),
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

/// One call: what the options say, and which caches can be looked into.
pub(super) struct Run<'a> {
    pub(super) set: &'a Apply,
    /// The caches that were asked for, of kinds that have one which is filled. None is opened.
    caches: Mutex<BTreeMap<Gvk, Option<Informer>>>,
}

impl<'a> Run<'a> {
    fn new(set: &'a Apply) -> Self {
        let caches = Mutex::default();
        Self { set, caches }
    }

    /// Returns the cache of a kind, if there is one and it is filled. To ask is to use it: kinds that have nothing to
    /// do with the set are not asked for, so that those which nobody uses end.
    pub(super) fn informer(&self, gvk: &Gvk) -> Option<Informer> {
        let mut caches = self.caches.lock();
        if let Some(informer) = caches.get(gvk) {
            return informer.clone();
        }
        let informer = self.set.shared.caches.existing(gvk);
        let informer = informer.filter(|informer| informer.status().phase == Phase::Synced);
        caches.insert(gvk.clone(), informer.clone());
        informer
    }

    async fn run(&self, desired: Desired) -> Result<Applied, ApplyError> {
        let (targets, mut failures) = self.resolve(desired).await;
        let mut applied = Applied::default();
        let wanted: BTreeSet<(Gvk, ObjectKey)> = targets.iter().map(|each| each.id()).collect();
        if self.is_another(&wanted) {
            failures.push(self.of_owner(ObjectError::AppliedTwice));
            return Err(self.failed(failures, applied));
        }
        match self.note_extent(&targets).await {
            Ok(known) => {
                self.apply_all(&targets, &mut applied, &mut failures).await;
                if failures.is_empty() && !self.is_first(&wanted) {
                    failures.push(self.of_owner(ObjectError::AppliedTwice));
                }
                if failures.is_empty() {
                    self.set.place().keep(|id| wanted.contains(id));
                    failures = self.prune(&known, &targets, &mut applied).await;
                }
            }
            Err(error) => failures.push(self.of_owner(error)),
        }
        match failures.is_empty() {
            true => Ok(applied),
            false => Err(self.failed(failures, applied)),
        }
    }

    fn failed(&self, failures: Vec<ObjectFailure>, applied: Applied) -> ApplyError {
        ApplyError::new(self.set.marks.set.clone(), failures, applied)
    }

    /// Returns whether this call of the reconciler has pruned all but other objects of the same set.
    fn is_another(&self, wanted: &BTreeSet<(Gvk, ObjectKey)>) -> bool {
        let own = self.set.own.lock();
        let before = own.sets.get(&self.set.marks.set);
        before.is_some_and(|before| before != wanted)
    }

    /// Notes which objects the set has before the others are pruned; returns whether it has no others in this call.
    fn is_first(&self, wanted: &BTreeSet<(Gvk, ObjectKey)>) -> bool {
        let mut own = self.set.own.lock();
        let set = self.set.marks.set.clone();
        own.sets.entry(set).or_insert_with(|| wanted.clone()) == wanted
    }

    /// Returns the failure to read or note what the owner says of its sets.
    pub(super) fn of_owner(&self, error: ObjectError) -> ObjectFailure {
        ObjectFailure::new(&self.set.owner_gvk, self.set.owner.key(), error)
    }

    /// Returns whether a write of the owner may have been refused because it is gone, or another by now.
    pub(super) fn may_be_gone(error: &ObjectError) -> bool {
        let ObjectError::Refused { source, .. } = error else {
            return false;
        };
        matches!(&**source, kube::Error::Api(status) if matches!(status.code, 404 | 409 | 422))
    }
}
