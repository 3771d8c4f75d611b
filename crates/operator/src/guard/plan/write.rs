//! One write of a plan.

use std::fmt;

use lariat_cache::WriteVerb;
use lariat_core::{Gvk, ObjectKey};

use crate::diff::{Diff, FieldChange};

/// A write that the program would have made.
///
/// Its `Display` has a line for the write, and one for each changed field.
///
/// ```no_run
/// use lariat::Operator;
///
/// # fn example(operator: Operator) {
/// for write in &operator.planned() {
///     println!("{:?} {} {}", write.reconciler(), write.verb(), write.kind());
/// }
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct PlannedWrite {
    pub(super) what: What,
    pub(super) times: u64,
}

/// A planned write without its count; equal ones are counted together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct What {
    pub(super) reconciler: Option<String>,
    pub(super) of: Option<(Gvk, ObjectKey)>,
    pub(super) verb: WriteVerb,
    pub(super) kind: String,
    pub(super) key: Option<ObjectKey>,
    pub(super) subresource: Option<String>,
    pub(super) diff: Option<Diff>,
    pub(super) refused: Option<String>,
}

impl PlannedWrite {
    /// Returns the name of the reconciler or handler; `None` outside of calls.
    #[must_use]
    pub fn reconciler(&self) -> Option<&str> {
        self.what.reconciler.as_deref()
    }

    /// Returns the kind and key of the reconciled object; `None` outside of calls.
    #[must_use]
    pub fn reconciled(&self) -> Option<(&Gvk, &ObjectKey)> {
        let (gvk, key) = self.what.of.as_ref()?;
        Some((gvk, key))
    }

    /// Returns the verb.
    #[must_use]
    pub fn verb(&self) -> WriteVerb {
        self.what.verb
    }

    /// Returns the written kind, such as `apps/v1 Deployment`.
    ///
    /// It is the plural if neither the cache nor the answer tells the kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.what.kind
    }

    /// Returns the key of the written object; `None` for a collection.
    ///
    /// A name that the API server generates ends in `*`.
    #[must_use]
    pub fn key(&self) -> Option<&ObjectKey> {
        self.what.key.as_ref()
    }

    /// Returns the written subresource, if there is one.
    #[must_use]
    pub fn subresource(&self) -> Option<&str> {
        self.what.subresource.as_deref()
    }

    /// Returns the changed fields compared with the API server's state, at most 256.
    ///
    /// `None` for deletions, and if the changes are unknown because the object may not be read and its content is not
    /// cached. Fields that the API server maintains are left out: resource version, uid, managed fields. If there are
    /// other changes, so is the annotation in which [`apply`](crate::Reconcile::apply) records what it applied.
    #[must_use]
    pub fn changes(&self) -> Option<&[FieldChange]> {
        self.what.diff.as_ref().map(|diff| &*diff.changes)
    }

    /// Returns the error of the dry run, if the API server refused it.
    #[must_use]
    pub fn refused(&self) -> Option<&str> {
        self.what.refused.as_deref()
    }

    /// Returns the number of times that the write would have been made.
    #[must_use]
    pub fn times(&self) -> u64 {
        self.times
    }
}

impl fmt::Display for PlannedWrite {
    /// Prints the write, and each changed field on a line, without a final line break.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let What {
            reconciler,
            of,
            verb,
            kind,
            ..
        } = &self.what;
        match reconciler.as_ref().zip(of.as_ref()) {
            Some((reconciler, (gvk, of))) => write!(f, "{reconciler}, for {gvk} {of}: ")?,
            None => f.write_str("outside of calls: ")?,
        }
        write!(f, "would {verb} {kind}")?;
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
