//! What came of applying a set.

use std::fmt;

use lariat_core::{Gvk, ObjectKey};

/// What happened to an object of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// It did not exist.
    Created,
    /// It existed in another state.
    Changed,
    /// It was deleted and created again, because a field that cannot be changed differed.
    Replaced,
    /// It was as it should be. Whether that took a request is not said.
    Unchanged,
    /// It is not wanted any more, and its deletion has begun, now or before.
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

/// An object of a set, and what happened to it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AppliedObject {
    /// The kind.
    pub gvk: Gvk,
    /// The key.
    pub key: ObjectKey,
    /// What happened.
    pub action: Action,
}

/// An object with the labels of a set that was not deleted, because it is not known to be the set's.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftAlone {
    /// The kind.
    pub gvk: Gvk,
    /// The key.
    pub key: ObjectKey,
    /// Whether others made it for certain, such as a copy of an object of the set: another owner controls it, or its
    /// managed fields name who created it. If not, it may be the set's: its managed fields were taken off.
    pub is_of_others: bool,
}

/// What came of applying a set: each object that was dealt with, in the order in which that was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    pub(super) objects: Vec<AppliedObject>,
    pub(super) forbidden: Vec<Gvk>,
    left_alone: Vec<LeftAlone>,
}

impl Applied {
    /// Returns the objects.
    #[must_use]
    pub fn objects(&self) -> &[AppliedObject] {
        &self.objects
    }

    /// Returns how many objects something happened to.
    #[must_use]
    pub fn count(&self, action: Action) -> usize {
        let objects = self.objects.iter();
        objects.filter(|object| object.action == action).count()
    }

    /// Returns whether every object was as it should be, and none had to go.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.count(Action::Unchanged) == self.objects.len()
    }

    /// Returns the kinds the set once had, and nobody in the program applies any more, whose objects may not be read, so
    /// that they could not be looked for. They stay noted on the owner; [`Reconciler::prunes`](crate::Reconciler::prunes)
    /// asks for the right.
    #[must_use]
    pub fn forbidden(&self) -> &[Gvk] {
        &self.forbidden
    }

    /// Returns the objects with the labels of the set that are not wanted, and were not deleted, because nothing says
    /// that this operator applied them.
    #[must_use]
    pub fn left_alone(&self) -> &[LeftAlone] {
        &self.left_alone
    }

    /// Returns whether nothing is left of the set: none is wanted, and none is still being deleted. A finalizer that
    /// applied an empty set is done then.
    ///
    /// It is true only if that is certain. Something may be left as long as a kind [may not be read](Self::forbidden),
    /// or an object that may be the set's was [left alone](Self::left_alone), which is warned of. Of a set
    /// [without annotation](super::Apply::without_annotation) it is only as complete as the kinds and namespaces given.
    ///
    /// Of a kind the API server says it does not serve, in any version, nothing can be left: its objects went with its
    /// CRD. The kind stays noted on the owner. A server of a group that does not answer is an error instead.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        let is_unclear = self.left_alone.iter().any(|each| !each.is_of_others);
        self.objects.is_empty() && self.forbidden.is_empty() && !is_unclear
    }

    pub(super) fn leave_alone(&mut self, gvk: &Gvk, key: &ObjectKey, is_of_others: bool) {
        let (gvk, key) = (gvk.clone(), key.clone());
        self.left_alone.push(LeftAlone {
            gvk,
            key,
            is_of_others,
        });
    }

    pub(super) fn add(&mut self, gvk: &Gvk, key: &ObjectKey, action: Action) {
        let (gvk, key) = (gvk.clone(), key.clone());
        self.objects.push(AppliedObject { gvk, key, action });
    }
}

impl fmt::Display for Applied {
    /// Writes the numbers, for logs.
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
        let left = self.left_alone.len();
        if left > 0 {
            counts.push(format!("{left} left alone"));
        }
        for kind in &self.forbidden {
            counts.push(format!("{kind} not looked through"));
        }
        if counts.is_empty() {
            f.write_str("nothing")
        } else {
            f.write_str(&counts.join(", "))
        }
    }
}
