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
    /// It was as it should be. Whether that took a request is not told.
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

/// What came of applying a set: each object that was dealt with, in the order in which that was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    pub(super) objects: Vec<AppliedObject>,
    pub(super) forbidden: Vec<Gvk>,
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

    /// Returns whether nothing is left of the set: none is wanted, and none is still being deleted. A finalizer that
    /// applied an empty set is done then.
    ///
    /// As long as a kind [may not be read](Self::forbidden), something may be left.
    ///
    /// Of a kind the API server says it does not serve, in any version, nothing can be left: its objects went with its
    /// definition. The kind stays noted on the owner. A server of a group that does not answer is an error instead.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.objects.is_empty() && self.forbidden.is_empty()
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
        let counts = ALL.iter().map(|action| (self.count(*action), action));
        let mut counts: Vec<String> = counts
            .filter(|(count, _)| *count > 0)
            .map(|(count, action)| format!("{count} {action}"))
            .collect();
        for kind in &self.forbidden {
            counts.push(format!("{kind} not looked through"));
        }
        match counts.is_empty() {
            true => f.write_str("nothing"),
            false => f.write_str(&counts.join(", ")),
        }
    }
}
