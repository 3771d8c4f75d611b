//! The error of applying a set.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use lariat_cache::MapperError;
use lariat_controller::{RetryAfter, Terminal};
use lariat_core::{Gvk, ObjectKey, debug_as_description, describe};

use super::report::Applied;
use crate::refusal::GuardError;

/// The number of failures an error prints.
const WRITTEN: usize = 5;

/// The retry delay for immutable fields; the object may be deleted meanwhile.
const IMMUTABLE_RETRIED: Duration = Duration::from_secs(300);

/// Some objects of a set could not be applied or pruned; all others were.
///
/// Returned from a reconciler with `?` it is retried, unless it [is terminal](Self::is_terminal): after the delay the
/// API server asked for, if any, or after five minutes if the only failures are immutable fields.
pub struct ApplyError {
    set: String,
    failures: Vec<ObjectFailure>,
    applied: Applied,
    advice: Option<Box<dyn Error + Send + Sync>>,
}

/// An object that could not be applied or pruned, or a kind not searched.
#[derive(Debug)]
#[non_exhaustive]
pub struct ObjectFailure {
    /// The kind, as far as it is known.
    pub gvk: Gvk,
    /// The key; `None` if the kind could not be searched for objects to prune.
    pub key: Option<ObjectKey>,
    /// The error.
    pub error: ObjectError,
}

/// An object could not be applied or pruned.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// It is not a valid object to apply.
    #[error("it cannot be applied: {reason}")]
    Malformed {
        /// What is wrong.
        reason: String,
    },
    /// The set has it twice. Neither is applied.
    #[error("it is in the set more than once")]
    Duplicate,
    /// The steps of the set have no order; nothing is applied.
    #[error("its set has no order: {reason}")]
    Steps {
        /// What is wrong.
        reason: String,
    },
    /// The kind is namespaced, but neither the object nor the owner has a namespace.
    #[error("it needs a namespace, since its owner has none")]
    NoNamespace,
    /// The resource of the kind could not be found.
    #[error(transparent)]
    Mapper(#[from] MapperError),
    /// The owner is namespaced and the object is not in its namespace. The garbage collector would delete the object
    /// because of the invalid owner reference.
    #[error(
        "it is outside of its owner's namespace {namespace:?} and cannot be owned; apply it in a set `without_owner`, \
         and clean up with a finalizer"
    )]
    CannotOwn {
        /// The owner's namespace.
        namespace: String,
    },
    /// Another owner controls it.
    #[error(
        "it exists and is controlled by {controller}; choose another name, or delete one of them"
    )]
    Controlled {
        /// Kind and name of that owner.
        controller: String,
    },
    /// It belongs to another set.
    #[error("it belongs to the set {set:?} of the operator {operator:?}")]
    OfAnotherSet {
        /// The operator of that set.
        operator: String,
        /// The name of that set.
        set: String,
    },
    /// It belongs to a set of another owner, which may not exist any more. It is not adopted.
    #[error(
        "it belongs to a set of another owner, whose uid is {uid:?}; delete it, or take its label \
         \"lariat.dev/owner-uid\" away if that owner is gone"
    )]
    OfAnotherOwner {
        /// The uid of that owner.
        uid: String,
    },
    /// It exists, and does not belong to the owner.
    #[error(
        "it exists and is not this owner's; delete it, choose another name, or let the set adopt it (`Apply::adopts`)"
    )]
    NotOurs,
    /// It is being deleted, and is applied once it is gone.
    #[error("it is being deleted; it is applied again once it is gone")]
    Deleting,
    /// It changed when it was about to be deleted.
    #[error("it changes faster than it can be deleted")]
    Changing,
    /// Other managers have fields that would change, and the set does not [force](super::Apply::force).
    #[error("{}", conflicts_text(conflicts))]
    Conflicts {
        /// The fields.
        conflicts: Vec<FieldConflict>,
    },
    /// Immutable fields differ.
    #[error(
        "fields that cannot be changed differ: {}; delete it, or let the set replace it (`Apply::on_immutable`)",
        fields.join(", ")
    )]
    Immutable {
        /// Their paths.
        fields: Vec<String>,
    },
    /// The API server finds it invalid. For a Secret its message is left out.
    #[error("it is invalid: {reason}")]
    Invalid {
        /// What is invalid.
        reason: String,
    },
    /// Its namespace is being deleted, so nothing can be created there.
    #[error("its namespace is being deleted")]
    NamespaceTerminating,
    /// The owner does not exist, or another object has its name by now; nothing was applied.
    #[error("it is gone; nothing was applied")]
    OwnerGone,
    /// The server of the kind's API group does not answer, so it is unknown whether the kind is served.
    #[error(
        "whether it is served is not known, since the server of its API group does not answer; see its APIService"
    )]
    GroupUnanswered,
    /// The set was applied before in the same call, with other objects. Each apply would prune the other's.
    #[error(
        "its set was applied before in this call, with other objects, and each would delete the other's; put them into \
         one `Desired`, or give each set a name (`Reconcile::apply_set`)"
    )]
    AppliedTwice,
    /// Another error of the API server, or no answer.
    #[error("cannot {verb} it")]
    Refused {
        /// The verb of the request.
        verb: &'static str,
        /// The error.
        source: Box<kube::Error>,
    },
    /// The answer is not an object.
    #[error("the answer to {verb} is not an object")]
    Unreadable {
        /// The verb of the request.
        verb: &'static str,
    },
}

debug_as_description!(ApplyError, ObjectError);

/// A field that another manager has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldConflict {
    /// The path.
    pub field: String,
    /// The manager, in the API server's words.
    pub manager: String,
}

fn conflicts_text(conflicts: &[FieldConflict]) -> String {
    let each = conflicts
        .iter()
        .map(|conflict| format!("{} ({})", conflict.field, conflict.manager));
    let fields = each.collect::<Vec<_>>().join(", ");
    format!("others manage {fields}; leave the fields out, or take them over (`Apply::force`)")
}

impl ObjectError {
    /// Returns whether a retry cannot help before the wanted object changes.
    ///
    /// What the API server finds invalid or immutable may be accepted later, because a CRD, a quota or the object
    /// itself changes. An object that is too large is not.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        match self {
            Self::Malformed { .. }
            | Self::Duplicate
            | Self::Steps { .. }
            | Self::NoNamespace
            | Self::CannotOwn { .. }
            | Self::AppliedTwice
            | Self::OwnerGone => true,
            Self::Refused { source, .. } => {
                matches!(&**source, kube::Error::Api(status) if status.code == 413)
            }
            _ => false,
        }
    }

    /// Returns whether an object of this name exists that is not the set's.
    ///
    /// It was not touched. Nothing can be done until it is deleted or given to the set.
    #[must_use]
    pub fn is_in_the_way(&self) -> bool {
        matches!(
            self,
            Self::Controlled { .. }
                | Self::OfAnotherSet { .. }
                | Self::OfAnotherOwner { .. }
                | Self::NotOurs
        )
    }

    /// Returns the delay that the API server asked for.
    fn retry_after(&self) -> Option<Duration> {
        let Self::Refused { source, .. } = self else {
            return None;
        };
        let kube::Error::Api(status) = &**source else {
            return None;
        };
        let seconds = status.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }
}

impl ObjectFailure {
    pub(super) fn new(gvk: &Gvk, key: &ObjectKey, error: ObjectError) -> Self {
        Self {
            gvk: gvk.clone(),
            key: Some(key.clone()),
            error,
        }
    }
}

impl ObjectFailure {
    /// Returns whether it is the failure of an object.
    pub(super) fn is_of(&self, gvk: &Gvk, key: &ObjectKey) -> bool {
        self.gvk == *gvk && self.key.as_ref() == Some(key)
    }
}

impl fmt::Display for ObjectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = describe(&self.error);
        match &self.key {
            Some(key) => write!(f, "{} {key}: {error}", self.gvk),
            None => write!(f, "all {}: {error}", self.gvk),
        }
    }
}

impl ApplyError {
    pub(super) fn new(set: String, failures: Vec<ObjectFailure>, applied: Applied) -> Self {
        Self {
            set,
            advice: advice(&failures),
            failures,
            applied,
        }
    }

    /// Returns the failures.
    #[must_use]
    pub fn failures(&self) -> &[ObjectFailure] {
        &self.failures
    }

    /// Returns the objects without failures.
    #[must_use]
    pub fn applied(&self) -> &Applied {
        &self.applied
    }

    /// Returns whether a retry cannot help with any of the failures.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.failures
            .iter()
            .all(|failure| failure.error.is_terminal())
    }
}

/// Returns the retry policy for all failures together, as an error source.
fn advice(failures: &[ObjectFailure]) -> Option<Box<dyn Error + Send + Sync>> {
    if failures.iter().all(|failure| failure.error.is_terminal()) {
        return Some(Terminal::because("trying again does not help").into());
    }
    let delays = failures.iter();
    let asked = delays.filter_map(|each| each.error.retry_after()).max();
    let mut errors = failures.iter().map(|failure| &failure.error);
    let is_patient =
        |error: &ObjectError| error.is_terminal() || matches!(error, ObjectError::Immutable { .. });
    let delay = asked.or(errors.all(is_patient).then_some(IMMUTABLE_RETRIED))?;
    Some(RetryAfter::new(delay).into())
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.failures.len();
        let objects = if count == 1 { "object" } else { "objects" };
        write!(
            f,
            "cannot apply {count} {objects} of the set {:?}",
            self.set
        )?;
        let mut before = ": ";
        for failure in self.failures.iter().take(WRITTEN) {
            write!(f, "{before}{failure}")?;
            before = "; ";
        }
        match count.saturating_sub(WRITTEN) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl Error for ApplyError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        // The retry policy of guards is found in the sources; a set that waits for a guard waits whatever its other
        // failures are.
        let is_of_guard = |error: &&ObjectError| GuardError::find(*error).is_some();
        let mut errors = self.failures.iter().map(|failure| &failure.error);
        if let Some(error) = errors.clone().find(is_of_guard) {
            return Some(error);
        }
        if let Some(advice) = &self.advice {
            return Some(&**advice);
        }
        // A terminal failure would end the retries for all.
        let first = errors.find(|error| !error.is_terminal())?;
        Some(first)
    }
}
