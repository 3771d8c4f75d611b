//! The result of applying a set.

use std::fmt;
use std::sync::Arc;

use lariat_cache::{CachedObject, DecodeError};
use lariat_core::{Gvk, ObjectKey};
use serde::de::DeserializeOwned;

use super::dependent::ReadyRule;
use super::resolve::Target;
use super::waiting::Waiting;
use crate::diff::Diff;
use crate::readiness::Readiness;
use crate::wire::json_of;

/// What was done to an object of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// It did not exist, and was created.
    Created,
    /// It existed, and was changed.
    Changed,
    /// It was deleted and created again, because an immutable field differed.
    Replaced,
    /// It was as wanted; finding this out may have taken a request.
    Unchanged,
    /// It is no longer wanted, and is being deleted.
    Pruned,
}

impl Action {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Replaced => "replaced",
            Self::Unchanged => "unchanged",
            Self::Pruned => "pruned",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text())
    }
}

/// An object of a set, what was done to it, and its state.
///
/// Two values are equal if the same was done to the same object, whatever its state is.
#[derive(Clone)]
#[non_exhaustive]
pub struct AppliedObject {
    /// The kind.
    pub gvk: Gvk,
    /// The key.
    pub key: ObjectKey,
    /// What was done.
    pub action: Action,
    /// The object as it is on the server.
    ///
    /// It is the answer to the write, or the cached state if no request was sent; `None` for a pruned object. If the
    /// cache has only a part of the object (metadata only, or a [`Transform`](lariat_cache::Transform)) and no request
    /// was sent, so has this, unless the object is in a [step](crate::Step) or the set [reads
    /// content](crate::Apply::reads_content).
    pub object: Option<Arc<CachedObject>>,
    /// Whether the state has everything that the server has.
    pub(super) is_whole: bool,
    pub(super) is_kept: bool,
    pub(super) is_in_step: bool,
    pub(super) ready: Option<ReadyRule>,
    /// What a planned write would change.
    pub(super) diff: Diff,
}

impl AppliedObject {
    /// Returns whether the object was ready when it was applied.
    ///
    /// Decided by its own [function](crate::Dependent::ready_when), or else by [`Readiness::of`], from the
    /// [state](Self::object) above. It is [`Readiness::Unknown`] if that state is only a part of the object.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        // In a part of an object, a field that is not cached looks like one that is not set.
        let Some(object) = self.object.as_ref().filter(|_| self.is_whole) else {
            return Readiness::Unknown;
        };
        let object = json_of(object);
        match &self.ready {
            Some(rule) => rule(&object),
            None => Readiness::of(&object),
        }
    }
}

impl PartialEq for AppliedObject {
    fn eq(&self, other: &Self) -> bool {
        (&self.gvk, &self.key, self.action) == (&other.gvk, &other.key, other.action)
    }
}

impl Eq for AppliedObject {}

impl fmt::Debug for AppliedObject {
    /// Prints what was done; the content may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppliedObject")
            .field("gvk", &self.gvk)
            .field("key", &self.key)
            .field("action", &self.action)
            .finish_non_exhaustive()
    }
}

/// An object that has the labels of a set and was not deleted.
///
/// It is neither wanted nor known to be the set's, such as a copy that a user made of an object with its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skipped {
    /// The kind.
    pub gvk: Gvk,
    /// The key.
    pub key: ObjectKey,
    /// Whether the object is known to belong to others.
    ///
    /// Another owner controls it, or its managed fields name its creator. If `false`, its managed fields were removed,
    /// and it may be the set's.
    pub is_of_others: bool,
}

/// The result of applying a set: each object, in the order of processing.
///
/// Its `Display` has the numbers, such as `2 created, 1 unchanged`.
///
/// ```
/// use lariat::operator::Applied;
///
/// let nothing = Applied::default();
/// assert!(nothing.is_unchanged() && nothing.is_gone());
/// assert_eq!(nothing.to_string(), "nothing");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    pub(super) objects: Vec<AppliedObject>,
    pub(super) forbidden: Vec<Gvk>,
    pub(super) unserved: Vec<Gvk>,
    /// The number of recorded kinds that are left to later calls.
    pub(super) unsearched: usize,
    skipped: Vec<Skipped>,
    pub(super) kept: Vec<(Gvk, ObjectKey)>,
    pub(super) waiting: Vec<Waiting>,
}

impl Applied {
    /// Returns the wanted and pruned objects, in the order of processing.
    #[must_use]
    pub fn objects(&self) -> &[AppliedObject] {
        &self.objects
    }

    /// Returns a wanted object as it is on the server.
    ///
    /// `None` if it was not applied in this call. See [`AppliedObject::object`] for what the state may lack.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::apps::v1::Deployment;
    /// # use k8s_openapi::api::core::v1::Service;
    /// # use lariat::{Desired, HandlerResult, Outcome, Reconcile};
    /// # async fn example(cx: Reconcile<Deployment>, desired: Desired) -> HandlerResult {
    /// let applied = cx.apply(desired).await?;
    /// if let Some(service) = applied.read::<Service>(cx.key())? {
    ///     println!("{:?}", service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()));
    /// }
    /// # Ok(Outcome::done())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The object does not decode as `K`, or only its metadata is known ([`DecodeError::is_no_content`]).
    pub fn read<K>(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, DecodeError>
    where
        K: kube::Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        let gvk = Gvk::new(&K::group(&()), &K::version(&()), &K::kind(&()));
        let mut objects = self.objects.iter();
        let found = objects.find(|each| each.gvk == gvk && each.key == *key);
        let object = found.and_then(|found| found.object.as_ref());
        object.map(|object| object.decode::<K>(&gvk)).transpose()
    }

    /// Returns the objects that are wanted, in the order of processing.
    pub(super) fn wanted(&self) -> impl Iterator<Item = &AppliedObject> {
        let objects = self.objects.iter();
        objects.filter(|object| object.action != Action::Pruned)
    }

    /// Returns whether an object was applied and is ready.
    pub(super) fn is_ready_now(&self, target: &Target) -> bool {
        let mut wanted = self.wanted();
        let found = wanted.find(|each| each.gvk == *target.gvk() && each.key == target.key);
        found.is_some_and(|found| found.readiness().is_ready())
    }

    /// Returns the [kept](crate::Dependent::keep) objects that are no longer wanted.
    #[must_use]
    pub fn kept(&self) -> &[(Gvk, ObjectKey)] {
        &self.kept
    }

    /// Returns the number of objects to which this was done.
    #[must_use]
    pub fn count(&self, action: Action) -> usize {
        let objects = self.objects.iter();
        objects.filter(|object| object.action == action).count()
    }

    /// Returns whether every object was as wanted and none was pruned.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.count(Action::Unchanged) == self.objects.len()
    }

    /// Returns the dropped kinds that could not be searched for objects to prune.
    ///
    /// The set once had objects of these kinds, nothing in the program applies them any more, and they may not be read.
    /// They stay recorded on the owner. Declare them with [`Reconciler::prunes`](crate::Reconciler::prunes) to derive
    /// the permission.
    #[must_use]
    pub fn forbidden(&self) -> &[Gvk] {
        &self.forbidden
    }

    /// Returns the recorded kinds that the API server serves in no version.
    ///
    /// Their objects may still be stored, and come back when the kind is served again; or they were deleted with the
    /// CRD of the kind. The API server shows no difference, so the kinds stay recorded on the owner. A warning says how
    /// to remove one from the record.
    #[must_use]
    pub fn unserved(&self) -> &[Gvk] {
        &self.unserved
    }

    /// Returns the unwanted objects with the set's labels that were not deleted.
    ///
    /// This operator is not known to have applied them.
    #[must_use]
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    /// Returns whether no object of the set exists any more.
    ///
    /// No object is wanted, and none is still being deleted. A finalizer that applies an empty set has finished when
    /// this is true. Objects that are [kept](crate::Dependent::keep) do not count.
    ///
    /// The result is `true` only if it is certain. It is `false` while a kind [may not be read](Self::forbidden) or [is
    /// not served](Self::unserved), and while an object that may be the set's was [left alone](Self::skipped), for all
    /// of which a warning is logged. It is also `false` while the owner's record names more kinds than a call searches.
    /// For a set [without annotation](super::Apply::without_annotation), only the given namespaces and those of the
    /// given kinds that are served are known.
    ///
    /// If the server of an API group does not answer, the apply fails instead.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        // A finalizer that trusts this result lets the owner be deleted, after which nothing would find the objects
        // again.
        let is_unclear = self.skipped.iter().any(|each| !each.is_of_others);
        self.objects.is_empty()
            && self.waiting.is_empty()
            && self.forbidden.is_empty()
            && self.unserved.is_empty()
            && self.unsearched == 0
            && !is_unclear
    }

    pub(super) fn leave_alone(&mut self, gvk: &Gvk, key: &ObjectKey, is_of_others: bool) {
        let (gvk, key) = (gvk.clone(), key.clone());
        self.skipped.push(Skipped {
            gvk,
            key,
            is_of_others,
        });
    }

    pub(super) fn pruned(&mut self, gvk: &Gvk, key: &ObjectKey) {
        self.objects.push(AppliedObject {
            gvk: gvk.clone(),
            key: key.clone(),
            action: Action::Pruned,
            object: None,
            is_whole: false,
            is_kept: false,
            is_in_step: false,
            ready: None,
            diff: Diff::default(),
        });
    }
}

impl fmt::Display for Applied {
    /// Prints the numbers, for logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const ALL: [Action; 5] = [
            Action::Created,
            Action::Changed,
            Action::Replaced,
            Action::Unchanged,
            Action::Pruned,
        ];
        let mut counts: Vec<String> = ALL
            .iter()
            .map(|action| (self.count(*action), action))
            .filter(|(count, _)| *count > 0)
            .map(|(count, action)| format!("{count} {action}"))
            .collect();
        let left = self.skipped.len();
        if left > 0 {
            counts.push(format!("{left} left alone"));
        }
        if !self.kept.is_empty() {
            counts.push(format!("{} kept", self.kept.len()));
        }
        if !self.waiting.is_empty() {
            counts.push(self.waits());
        }
        for kind in &self.forbidden {
            counts.push(format!("{kind} not searched"));
        }
        for kind in &self.unserved {
            counts.push(format!("{kind} not served"));
        }
        if self.unsearched > 0 {
            counts.push(format!("{} more kinds not searched", self.unsearched));
        }
        if counts.is_empty() {
            f.write_str("nothing")
        } else {
            f.write_str(&counts.join(", "))
        }
    }
}
