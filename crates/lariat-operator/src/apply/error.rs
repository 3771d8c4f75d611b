//! What applying a set can fail with.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use lariat_cache::MapperError;
use lariat_controller::{RetryAfter, Terminal};
use lariat_core::{Gvk, ObjectKey, debug_as_description, describe};

use super::report::Applied;
use crate::refusal::GuardError;

/// How many failures an error writes out.
const WRITTEN: usize = 5;

/// After which time fields that cannot be changed are tried again: somebody may have deleted the object.
const IMMUTABLE_RETRIED: Duration = Duration::from_secs(300);

/// Objects of a set that could not be applied or pruned; all others were.
///
/// Returned from a reconciler with `?` it is tried again, after as long as the API server asked to wait if it did,
/// unless [that cannot help](Self::is_terminal). If all that is wrong is fields that cannot be changed, that is after
/// five minutes.
pub struct ApplyError {
    set: String,
    failures: Vec<ObjectFailure>,
    applied: Applied,
    advice: Option<Box<dyn Error + Send + Sync>>,
}

/// An object that could not be applied or pruned, or a kind that could not be looked through.
#[derive(Debug)]
#[non_exhaustive]
pub struct ObjectFailure {
    /// The kind; of what has none, as much as is known.
    pub gvk: Gvk,
    /// The key; `None` if it is the kind that could not be looked through for what is to be pruned.
    pub key: Option<ObjectKey>,
    /// Why.
    pub error: ObjectError,
}

/// Why an object could not be applied or pruned.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// It is no object that could be applied.
    #[error("it cannot be applied: {reason}")]
    Malformed {
        /// What is missing or too much.
        reason: String,
    },
    /// The set has it twice. Neither is applied.
    #[error("it is in the set more than once")]
    Duplicate,
    /// The kind has namespaces, and neither object nor owner name one.
    #[error("it needs a namespace, since its owner has none")]
    NoNamespace,
    /// Where the kind is served is not known.
    #[error(transparent)]
    Mapper(#[from] MapperError),
    /// The owner is in a namespace and the object is not in it, so a reference would be illegal, and the garbage
    /// collector would delete the object.
    #[error(
        "it is outside of its owner's namespace {namespace:?} and cannot be owned; apply it in a set `without_owner`, \
         and clean up with a finalizer"
    )]
    CannotOwn {
        /// The owner's namespace.
        namespace: String,
    },
    /// Another owner is its controller.
    #[error(
        "it exists and is controlled by {controller}; choose another name, or delete one of them"
    )]
    Controlled {
        /// Kind and name of its controller.
        controller: String,
    },
    /// Another set has it.
    #[error("it belongs to the set {set:?} of the operator {operator:?}")]
    OfAnotherSet {
        /// The operator.
        operator: String,
        /// The set.
        set: String,
    },
    /// A set of another owner has it, which may be gone. It is not adopted.
    #[error(
        "it belongs to a set of another owner, whose uid is {uid:?}; delete it, or take its label \
         \"lariat.dev/owner-uid\" away if that owner is gone"
    )]
    OfAnotherOwner {
        /// The uid of the owner.
        uid: String,
    },
    /// It exists and nobody says that the owner made it.
    #[error(
        "it exists and is not this owner's; delete it, choose another name, or let the set adopt it (`Apply::adopts`)"
    )]
    NotOurs,
    /// It is being deleted, and will be applied once it is gone.
    #[error("it is being deleted; it is applied again once it is gone")]
    Deleting,
    /// It changed when it was about to be deleted.
    #[error("it changes faster than it can be deleted")]
    Changing,
    /// Others manage fields that are to be changed, and the set does not [force](super::Apply::force).
    #[error("{}", conflicts_text(conflicts))]
    Conflicts {
        /// The fields.
        conflicts: Vec<FieldConflict>,
    },
    /// Fields that cannot be changed differ.
    #[error(
        "fields that cannot be changed differ: {}; delete it, or let the set replace it (`Apply::on_immutable`)",
        fields.join(", ")
    )]
    Immutable {
        /// Their paths.
        fields: Vec<String>,
    },
    /// The API server finds it invalid. What it says about a Secret is left out.
    #[error("it is invalid: {reason}")]
    Invalid {
        /// What is invalid.
        reason: String,
    },
    /// Nothing can be created in its namespace any more.
    #[error("its namespace is being deleted")]
    NamespaceTerminating,
    /// The owner is gone, or another object has its name by now; nothing was applied.
    #[error("it is gone; nothing was applied")]
    OwnerGone,
    /// What an owner's note says of a kind cannot be checked.
    #[error(
        "whether it is served is not known, since the server of its API group does not answer; see its APIService"
    )]
    GroupUnanswered,
    /// The set was applied before in the same call, with other objects. Each would delete the other's.
    #[error(
        "its set was applied before in this call, with other objects, and each would delete the other's; put them into \
         one `Desired`, or give each set a name (`Reconcile::apply_set`)"
    )]
    AppliedTwice,
    /// The API server refused otherwise, or did not answer.
    #[error("cannot {verb} it")]
    Refused {
        /// What was tried.
        verb: &'static str,
        /// Why.
        source: Box<kube::Error>,
    },
    /// The API server answered with something else than an object.
    #[error("the answer to {verb} is not an object")]
    Unreadable {
        /// What was tried.
        verb: &'static str,
    },
}

debug_as_description!(ApplyError, ObjectError);

/// A field somebody else manages.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldConflict {
    /// The path.
    pub field: String,
    /// Who manages it, in the API server's words.
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
    /// Returns whether trying again cannot help: what is wanted has to be changed first.
    ///
    /// What the API server finds invalid or immutable may be accepted later, because a CRD, a quota or the
    /// object itself changes. What is too large for it is not.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        match self {
            Self::Malformed { .. }
            | Self::Duplicate
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

    /// Returns whether an object of that name exists that is somebody else's, so that nothing was done to it. There is
    /// nothing to do until it goes or is given away.
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

    /// Returns how long the API server asks to wait.
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

    /// Returns what failed.
    #[must_use]
    pub fn failures(&self) -> &[ObjectFailure] {
        &self.failures
    }

    /// Returns what went well.
    #[must_use]
    pub fn applied(&self) -> &Applied {
        &self.applied
    }

    /// Returns whether trying again cannot help with any of the failures.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.failures
            .iter()
            .all(|failure| failure.error.is_terminal())
    }
}

/// What is to be done about a failure as a whole, for whoever looks through the causes of an error.
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
        // Whoever looks for a guard looks here; a set that waits for one waits whatever else is wrong with it.
        let is_of_guard = |error: &&ObjectError| GuardError::find(*error).is_some();
        let mut errors = self.failures.iter().map(|failure| &failure.error);
        if let Some(error) = errors.clone().find(is_of_guard) {
            return Some(error);
        }
        if let Some(advice) = &self.advice {
            return Some(&**advice);
        }
        // Not one that alone would end the tries of all: then there would be advice.
        let first = errors.find(|error| !error.is_terminal())?;
        Some(first)
    }
}
