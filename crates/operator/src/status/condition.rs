//! Conditions, by the rules of apimachinery.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use lariat_core::debug_as_description;

use crate::clock;
use crate::names::{is_domain, is_word};

/// The maximum length of a message in characters.
pub(super) const LONGEST_MESSAGE: usize = 32_768;
/// The maximum length of a type in bytes.
const LONGEST_TYPE: usize = 316;
/// The maximum length of a reason in bytes.
const LONGEST_REASON: usize = 1024;

/// The error of an invalid condition.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConditionError {
    /// The type is not a name such as `Ready` or `example.com/Ready`.
    #[error(
        "{kind:?} is not the type of a condition; write it like \"Ready\" or \"example.com/Ready\""
    )]
    Type {
        /// The type.
        kind: String,
    },
    /// The reason is not one CamelCase word.
    #[error("condition {kind} needs a reason in one CamelCase word, not {reason:?}")]
    Reason {
        /// The type of the condition.
        kind: String,
        /// The reason.
        reason: String,
    },
    /// The message is too long.
    #[error("the message of condition {kind} has {length} characters; the limit is 32768")]
    Message {
        /// The type of the condition.
        kind: String,
        /// The number of characters.
        length: usize,
    },
}

debug_as_description!(ConditionError);

/// The new value of a condition: status, reason, message and observed generation.
///
/// The [transition time](Conditions::set) is set when the update is applied to a list of conditions.
///
/// ```
/// use lariat::operator::{ConditionUpdate, Conditions};
///
/// let mut conditions = Vec::new();
/// let waiting = ConditionUpdate::is_false("Ready", "Waiting").message("2 of 3 pods").observed(7);
/// assert!(Conditions::set(&mut conditions, &waiting)?);
/// assert!(!Conditions::set(&mut conditions, &waiting)?);
/// assert!(!Conditions::is_true(&conditions, "Ready"));
/// # Ok::<(), lariat::operator::ConditionError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "an update does nothing until it is set"]
pub struct ConditionUpdate {
    kind: String,
    pub(super) status: &'static str,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) observed: Option<i64>,
}

impl ConditionUpdate {
    /// Creates an update to `True`; the reason is one CamelCase word.
    pub fn is_true(kind: &str, reason: &str) -> Self {
        Self::new(kind, "True", reason)
    }

    /// Creates an update to `False`; the reason is one CamelCase word.
    pub fn is_false(kind: &str, reason: &str) -> Self {
        Self::new(kind, "False", reason)
    }

    /// Creates an update to `Unknown`; the reason is one CamelCase word.
    pub fn is_unknown(kind: &str, reason: &str) -> Self {
        Self::new(kind, "Unknown", reason)
    }

    fn new(kind: &str, status: &'static str, reason: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            status,
            reason: reason.to_owned(),
            message: String::new(),
            observed: None,
        }
    }

    /// Sets the message (default: empty; at most 32,768 characters).
    pub fn message(self, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { message, ..self }
    }

    /// Sets the observed generation (default: none).
    ///
    /// Without one, that of the present condition is kept if nothing else of it changes.
    /// [`Reconcile::set_condition`](crate::Reconcile::set_condition) sets the generation of its object if there is
    /// none.
    pub fn observed(self, generation: impl Into<Option<i64>>) -> Self {
        let observed = generation.into();
        Self { observed, ..self }
    }

    /// Returns the type of the condition.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Checks the update by the schema of `metav1.Condition`.
    pub(super) fn check(&self) -> Result<(), ConditionError> {
        check_type(&self.kind)?;
        let kind = || self.kind.clone();
        let length = self.message.chars().count();
        match () {
            () if !is_reason(&self.reason) => Err(ConditionError::Reason {
                kind: kind(),
                reason: self.reason.clone(),
            }),
            () if length > LONGEST_MESSAGE => Err(ConditionError::Message {
                kind: kind(),
                length,
            }),
            () => Ok(()),
        }
    }
}

/// Functions on lists of conditions, by the rules of apimachinery.
///
/// ```
/// use lariat::operator::{ConditionUpdate, Conditions};
///
/// let mut conditions = Vec::new();
/// Conditions::set(&mut conditions, &ConditionUpdate::is_true("Ready", "Deployed"))?;
/// assert!(Conditions::is_true(&conditions, "Ready"));
/// assert!(Conditions::find(&conditions, "Available").is_none());
/// # Ok::<(), lariat::operator::ConditionError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Conditions;

impl Conditions {
    /// Sets a condition with the present time; returns whether the list changed.
    ///
    /// A list has one condition of each type; a new one is appended. The last transition time changes only if the
    /// status does, not with the reason, the message or the observed generation. Without an
    /// [observed generation](ConditionUpdate::observed) the present one is kept if nothing else changes.
    ///
    /// # Errors
    ///
    /// The update is invalid. The list is not changed.
    pub fn set(
        conditions: &mut Vec<Condition>,
        update: &ConditionUpdate,
    ) -> Result<bool, ConditionError> {
        Self::set_at(conditions, update, clock::now())
    }

    /// Sets a condition like [`set`](Self::set), at a given time.
    ///
    /// The time is stored in whole seconds.
    ///
    /// ```
    /// use k8s_openapi::jiff::Timestamp;
    /// use lariat::operator::{ConditionUpdate, Conditions};
    ///
    /// let mut conditions = Vec::new();
    /// let ready = ConditionUpdate::is_true("Ready", "Deployed");
    /// Conditions::set_at(&mut conditions, &ready, Timestamp::UNIX_EPOCH)?;
    /// assert_eq!(conditions[0].last_transition_time.0, Timestamp::UNIX_EPOCH);
    /// # Ok::<(), lariat::operator::ConditionError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`set`](Self::set).
    pub fn set_at(
        conditions: &mut Vec<Condition>,
        update: &ConditionUpdate,
        now: Timestamp,
    ) -> Result<bool, ConditionError> {
        update.check()?;
        let mut next = Condition {
            last_transition_time: Time(whole_seconds(now)),
            message: update.message.clone(),
            observed_generation: update.observed,
            reason: update.reason.clone(),
            status: update.status.to_owned(),
            type_: update.kind.clone(),
        };
        let Some(known) = conditions.iter_mut().find(|each| each.type_ == next.type_) else {
            conditions.push(next);
            return Ok(true);
        };
        // An update without a generation says nothing about it. Two writers of one condition, of which one gives the
        // generation, would otherwise take turns.
        if (&known.status, &known.reason, &known.message)
            == (&next.status, &next.reason, &next.message)
        {
            next.observed_generation = next.observed_generation.or(known.observed_generation);
        }
        // As apimachinery's SetStatusCondition: a new reason or message is no transition.
        if known.status == next.status {
            next.last_transition_time = known.last_transition_time.clone();
        }
        let changed = *known != next;
        *known = next;
        Ok(changed)
    }

    /// Returns the condition of a type, if there is one.
    #[must_use]
    pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
        conditions.iter().find(|each| each.type_ == kind)
    }

    /// Returns whether the condition of a type exists and is `True`.
    #[must_use]
    pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
        Self::find(conditions, kind).is_some_and(|found| found.status == "True")
    }

    /// Removes the condition of a type; returns whether there was one.
    pub fn remove(conditions: &mut Vec<Condition>, kind: &str) -> bool {
        let before = conditions.len();
        conditions.retain(|each| each.type_ != kind);
        conditions.len() < before
    }
}

/// Truncates a time to whole seconds, as Kubernetes stores it.
pub(super) fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// Returns whether a text matches `[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?`.
fn is_reason(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    text.len() <= LONGEST_REASON
        && bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(is_word)
        && bytes
            .iter()
            .all(|byte| is_word(byte) || b",:".contains(byte))
}

/// Checks the type of a condition: a word, perhaps after a domain and a slash.
pub(super) fn check_type(kind: &str) -> Result<(), ConditionError> {
    // Without a domain, a valid one is checked in its place.
    let (domain, word) = kind.split_once('/').unwrap_or(("a", kind));
    if kind.len() <= LONGEST_TYPE && is_domain(domain) && is_word(word) {
        Ok(())
    } else {
        Err(ConditionError::Type {
            kind: kind.to_owned(),
        })
    }
}

#[cfg(test)]
#[path = "condition_tests.rs"]
mod tests;
