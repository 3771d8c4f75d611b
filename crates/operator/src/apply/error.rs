//! The error of applying a set.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use lariat_cache::MapperError;
use lariat_client::is_too_large;
use lariat_controller::{Ignore, RetryAfter, RetrySlowly, Terminal};
use lariat_core::{Gvk, ObjectKey, debug_as_description, describe};

use super::report::Applied;
use crate::refusal::GuardError;

/// The number of failures that an error prints in full.
const WRITTEN: usize = 5;

/// Some objects of a set could not be applied or pruned.
///
/// All other objects were applied. If a reconciler returns it with `?`, the call is retried, unless
/// [`is_terminal`](Self::is_terminal) is true. If the owner no longer exists, the call counts as a success, because the
/// deletion calls the reconciler again. The delay is the one that the API server asked for, or [five
/// minutes](RetrySlowly) if all failures are immutable fields, objects that do not fit the schema of their kind or
/// objects that are too large, or otherwise that of the handler's backoff.
///
/// ```no_run
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use lariat::{Desired, HandlerResult, Outcome, Reconcile};
/// # async fn example(cx: Reconcile<ConfigMap>, desired: Desired) -> HandlerResult {
/// if let Err(error) = cx.apply(desired).await {
///     for failure in error.failures().iter().filter(|failure| failure.error.is_name_taken()) {
///         println!("delete or rename {failure}");
///     }
///     return Err(error.into());
/// }
/// # Ok(Outcome::done())
/// # }
/// ```
pub struct ApplyError {
    set: String,
    failures: Vec<ObjectFailure>,
    applied: Applied,
    /// The retry policy for all failures together.
    advice: Option<Box<dyn Error + Send + Sync>>,
}

/// The failure of one object, or of the search of one kind.
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

/// The reason why an object could not be applied or pruned.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// It is not a valid object.
    #[error("it cannot be applied: {reason}")]
    Malformed {
        /// What is wrong.
        reason: String,
    },
    /// The set contains it more than once; none of the copies is applied.
    #[error("it is in the set more than once")]
    Duplicate,
    /// The steps of the set have no valid order; nothing is applied.
    #[error("the steps of its set have no valid order: {reason}")]
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
    /// It is not in the namespace of its owner.
    ///
    /// The garbage collector would delete it because of the invalid owner reference.
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
        /// Kind and name of that owner.
        controller: String,
    },
    /// Another set of the same owner and operator wants it too.
    #[error("the set {set:?} of the same owner wants it too; leave it out of one of the two sets")]
    OfSibling {
        /// The name of the other set.
        set: String,
    },
    /// It belongs to a set of another operator for the same owner.
    #[error(
        "it belongs to the set {set:?} of the operator {operator:?}; if that is a former name of this operator, say so \
         (`Operator::renamed_from`), or else choose another name for the object"
    )]
    OfAnotherSet {
        /// The operator of that set.
        operator: String,
        /// The name of that set.
        set: String,
    },
    /// It belongs to a set of another owner, and the set does not adopt objects.
    ///
    /// That owner may not exist any more.
    #[error(
        "it belongs to a set of another owner, whose uid is {uid:?}; choose another name, or let the set adopt what owners \
         leave that no longer exist (`Apply::adopts`)"
    )]
    OfAnotherOwner {
        /// The uid of that owner.
        uid: String,
    },
    /// It belongs to a set of another owner, which exists.
    #[error(
        "it belongs to a set of {owner}, which exists; choose another name, or delete one of them"
    )]
    OwnerExists {
        /// The kind and key of that owner.
        owner: String,
        /// Its uid.
        uid: String,
    },
    /// It belongs to a set of another owner, which its annotation `lariat.dev/owner` does not name.
    #[error(
        "it belongs to a set of another owner, whose uid is {uid:?} and whose name is not recorded; delete it, or remove \
         its label \"lariat.dev/owner-uid\" if that owner no longer exists"
    )]
    OwnerUnrecorded {
        /// The uid of that owner.
        uid: String,
    },
    /// It belongs to a set of another owner, and it is unknown whether that owner exists.
    ///
    /// The owner may not be read, its kind is not served, or the API server did not answer. None of these proves that
    /// the owner is gone.
    #[error(
        "it belongs to a set of {owner}, and it is unknown whether that owner exists; grant `get` of its kind, or remove \
         the label \"lariat.dev/owner-uid\" of the object if it no longer exists"
    )]
    OwnerUnknown {
        /// The kind and key of that owner.
        owner: String,
        /// Its uid.
        uid: String,
        /// The reason.
        source: Box<ObjectError>,
    },
    /// The kind is not served in any version.
    #[error("its kind is not served")]
    Unserved,
    /// It exists already, and does not belong to the owner.
    #[error(
        "it exists and does not belong to this owner; delete it, choose another name, or let the set adopt it (`Apply::adopts`)"
    )]
    NotAdopted,
    /// It is being deleted; a later call applies it once it is deleted.
    #[error("it is being deleted, and is applied again afterwards")]
    Deleting,
    /// It was changed between the read and the deletion, several times in a row.
    #[error("it changes faster than it can be deleted")]
    Changing,
    /// Other field managers own fields that would change.
    ///
    /// The set does not [force](super::Apply::force).
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
        /// The paths of the fields.
        fields: Vec<String>,
    },
    /// The API server finds it invalid.
    ///
    /// The message of the API server is left out for Secrets, because it can quote values.
    #[error("it is invalid: {reason}")]
    Invalid {
        /// What is invalid.
        reason: String,
    },
    /// It does not fit the schema of its kind: a field has a wrong name or a value of a wrong type.
    ///
    /// The values are left out for Secrets.
    #[error("it does not fit the schema of its kind: {reason}")]
    Mistyped {
        /// The fields, and what is wrong with them.
        reason: String,
    },
    /// Its namespace is being deleted, so nothing can be created there.
    #[error("its namespace is being deleted")]
    NamespaceTerminating,
    /// The owner does not exist any more; nothing was applied.
    ///
    /// Another object may have its name now.
    #[error("it no longer exists; nothing was applied")]
    OwnerNotFound,
    /// The owner is being deleted, before the cache shows it; nothing was applied.
    #[error("its owner is being deleted; nothing was applied")]
    OwnerDeleting,
    /// The API server of its group does not answer.
    ///
    /// So it is unknown whether the kind is served.
    #[error(
        "it is unknown whether the kind is served: the server of its API group does not answer; see its APIService"
    )]
    GroupUnanswered,
    /// The set was applied before in the same call, with other objects.
    ///
    /// Each apply would prune the objects of the other.
    #[error(
        "its set was applied before in this call, with other objects, and each would delete the other's; put them into \
         one `Desired`, or give each set a name (`Reconcile::apply_set`)"
    )]
    AppliedTwice,
    /// The request failed with another error, or got no answer.
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

/// A field that another field manager owns.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldConflict {
    /// The path of the field.
    pub field: String,
    /// The field manager, as the API server names it.
    pub manager: String,
}

fn conflicts_text(conflicts: &[FieldConflict]) -> String {
    let each = conflicts
        .iter()
        .map(|conflict| format!("{} ({})", conflict.field, conflict.manager));
    let fields = each.collect::<Vec<_>>().join(", ");
    format!(
        "other field managers own {fields}; leave the fields out, or take them over (`Apply::force`)"
    )
}

impl ObjectError {
    /// Returns whether a retry cannot help until the wanted object changes.
    ///
    /// An object that is invalid, too large or differs in immutable fields may be accepted later, because a CRD, a
    /// quota, a limit or the object itself may change.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(
            self,
            Self::Malformed { .. }
                | Self::Duplicate
                | Self::Steps { .. }
                | Self::NoNamespace
                | Self::CannotOwn { .. }
                | Self::AppliedTwice
                | Self::OwnerNotFound
                | Self::OwnerDeleting
        )
    }

    /// Returns whether nothing was applied because of a deletion of the owner.
    ///
    /// The cache does not show the deletion yet.
    fn is_of_deleted_owner(&self) -> bool {
        matches!(self, Self::OwnerNotFound | Self::OwnerDeleting)
    }

    /// Returns whether it is refused until a user acts: deletes an object, or changes a CRD, a limit or the owner.
    fn needs_user(&self) -> bool {
        match self {
            Self::Immutable { .. } | Self::Mistyped { .. } => true,
            Self::Refused { source, .. } => {
                matches!(&**source, kube::Error::Api(status) if is_too_large(status))
            }
            _ => false,
        }
    }

    /// Returns whether a retry can hardly help.
    fn is_patient(&self) -> bool {
        self.is_terminal() || self.needs_user()
    }

    /// Returns whether another object of this name exists that is not the set's.
    ///
    /// That object was not touched. A retry fails until the object is deleted, or added to the set by hand.
    #[must_use]
    pub fn is_name_taken(&self) -> bool {
        matches!(
            self,
            Self::Controlled { .. }
                | Self::OfSibling { .. }
                | Self::OfAnotherSet { .. }
                | Self::OfAnotherOwner { .. }
                | Self::OwnerExists { .. }
                | Self::OwnerUnrecorded { .. }
                | Self::OwnerUnknown { .. }
                | Self::NotAdopted
        )
    }

    /// Returns whether the API server refused the content, and would not refuse the marks alone.
    pub(super) fn is_of_content(&self) -> bool {
        matches!(
            self,
            Self::Immutable { .. }
                | Self::Invalid { .. }
                | Self::Mistyped { .. }
                | Self::Conflicts { .. }
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
    /// Returns whether the failure is that of an object.
    pub(super) fn is_of(&self, gvk: &Gvk, key: &ObjectKey) -> bool {
        self.gvk == *gvk && self.key.as_ref() == Some(key)
    }
}

impl fmt::Display for ObjectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = describe(&self.error);
        let is_unnamed = self.key.as_ref().is_some_and(|key| key.name().is_empty());
        // Such an error says what "it" lacks, so the kind stands in for the name.
        if let Some(rest) = error.strip_prefix("it ").filter(|_| is_unnamed) {
            return match self.gvk.kind() {
                "" => write!(f, "an object of the set {rest}"),
                _ => write!(f, "a {} of the set {rest}", self.gvk),
            };
        }
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

    /// Returns what was applied, and the failures.
    pub(super) fn into_parts(self) -> (Applied, Vec<ObjectFailure>) {
        (self.applied, self.failures)
    }

    /// Returns the failures.
    #[must_use]
    pub fn failures(&self) -> &[ObjectFailure] {
        &self.failures
    }

    /// Returns the objects that were applied and pruned without failure.
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
    let mut all = failures.iter().map(|failure| &failure.error);
    // The cache is behind: the deletion of the owner calls the reconciler next, and this call did no harm.
    if all.all(ObjectError::is_of_deleted_owner) {
        return Some(Ignore::because("its deletion is about to reach the cache").into());
    }
    if failures.iter().all(|failure| failure.error.is_terminal()) {
        return Some(Terminal::because("a retry cannot help").into());
    }
    // The longest delay wins: a retry before it would fail for the object that asked for it.
    let delays = failures.iter();
    let asked = delays.filter_map(|each| each.error.retry_after()).max();
    let mut errors = failures.iter().map(|failure| &failure.error);
    if let Some(delay) = asked {
        return Some(RetryAfter::new(delay).into());
    }
    errors
        .all(ObjectError::is_patient)
        .then(|| RetrySlowly::because("a user has to act").into())
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
        // The source decides on the retry, so the order of the cases matters. A write that a guard refused waits for
        // that guard, whatever the other failures are.
        let is_of_guard = |error: &&ObjectError| GuardError::find(*error).is_some();
        let mut errors = self.failures.iter().map(|failure| &failure.error);
        if let Some(error) = errors.clone().find(is_of_guard) {
            return Some(error);
        }
        if let Some(advice) = &self.advice {
            return Some(&**advice);
        }
        // A failure that a retry can hardly help would end or slow down the retries for all.
        let first = errors.find(|error| !error.is_patient())?;
        Some(first)
    }
}
