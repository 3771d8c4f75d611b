//! One write of a plan.

use std::fmt;

use lariat_cache::WriteVerb;
use lariat_core::{Gvk, ObjectKey};

use crate::diff::{Diff, FieldChange};

/// A write that a reconciler would have made.
#[derive(Debug, Clone)]
pub struct PlannedWrite {
    pub(super) what: What,
    pub(super) times: u64,
}

/// All that a plan says of a write.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct What {
    pub(super) reconciler: String,
    pub(super) of: (Gvk, ObjectKey),
    pub(super) verb: WriteVerb,
    pub(super) kind: String,
    pub(super) key: Option<ObjectKey>,
    pub(super) subresource: Option<String>,
    pub(super) diff: Option<Diff>,
    pub(super) refused: Option<String>,
}

impl PlannedWrite {
    /// Returns the reconciler that would write.
    #[must_use]
    pub fn reconciler(&self) -> &str {
        &self.what.reconciler
    }

    /// Returns which object it was reconciling: its kind and key.
    #[must_use]
    pub fn reconciled(&self) -> (&Gvk, &ObjectKey) {
        (&self.what.of.0, &self.what.of.1)
    }

    /// Returns what it would do.
    #[must_use]
    pub fn verb(&self) -> WriteVerb {
        self.what.verb
    }

    /// Returns the kind it would write, as `apps/v1 Deployment`, or by its plural if neither cache nor answer says.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.what.kind
    }

    /// Returns the key of what it would write; the name of an object whose name the API server makes up ends in `*`. Of
    /// a collection there is none.
    #[must_use]
    pub fn key(&self) -> Option<&ObjectKey> {
        self.what.key.as_ref()
    }

    /// Returns the subresource it would write.
    #[must_use]
    pub fn subresource(&self) -> Option<&str> {
        self.what.subresource.as_deref()
    }

    /// Returns which fields would change, at most 256, against what the API server has; `None` for deletions, and if
    /// that is not known: the object may not be read, and its content is not cached.
    ///
    /// What the API server keeps for itself is left out: versions, uid, managed fields. So is, beside other changes, the
    /// annotation in which [`apply`](crate::Reconcile::apply) notes what was applied.
    #[must_use]
    pub fn changes(&self) -> Option<&[FieldChange]> {
        self.what.diff.as_ref().map(|diff| &*diff.changes)
    }

    /// Returns why the API server refused, if it did.
    #[must_use]
    pub fn refused(&self) -> Option<&str> {
        self.what.refused.as_deref()
    }

    /// Returns how many times it came up.
    #[must_use]
    pub fn times(&self) -> u64 {
        self.times
    }
}

impl fmt::Display for PlannedWrite {
    /// Writes what would be written, and each field that would change on a line of its own, without an end of line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let What {
            reconciler,
            of: (gvk, of),
            verb,
            kind,
            ..
        } = &self.what;
        write!(f, "{reconciler}, for {gvk} {of}: would {verb} {kind}")?;
        if let Some(key) = self.key() {
            write!(f, " {key}")?;
        }
        if let Some(subresource) = self.subresource() {
            write!(f, " ({subresource})")?;
        }
        if self.times > 1 {
            write!(f, ", {} times", self.times)?;
        }
        if let Some(reason) = self.refused() {
            write!(f, ", but is refused: {reason}")?;
        }
        match &self.what.diff {
            Some(diff) => write!(f, "{diff}"),
            None => Ok(()),
        }
    }
}
