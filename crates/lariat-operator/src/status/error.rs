//! What writing a status can fail with.

use lariat_controller::Ignore;
use lariat_core::{Gvk, ObjectKey, debug_as_description};

use super::condition::ConditionError;
use crate::wire::ApiError;

/// A status that was not written.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StatusError {
    /// The object is gone, or another one has its name by now. Passed on with `?` it ends the call, and is
    /// [ignored](lariat_controller::HandlerError::ignore): the reconciler is notified of the end of the object by itself.
    #[error("{gvk} {key} has no status to write any more")]
    Gone {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
        /// Makes it be ignored.
        source: Ignore,
    },
    /// The object is there, but its kind has no status subresource.
    #[error(
        "{gvk} {key} has no status subresource; its definition needs `subresources: {{status: {{}}}}` in this version"
    )]
    NoSubresource {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
    },
    /// The object has changed since the reconcile saw it, and that was not to be.
    #[error("{gvk} {key} has changed since this reconcile began")]
    Changed {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
    },
    /// What was given is not a JSON object, or what is there is not what the type expects.
    #[error("the status of {gvk} {key} cannot be written: {detail}")]
    Unfit {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
        /// What is wrong; no values.
        detail: String,
    },
    /// The condition is not a valid one.
    #[error(transparent)]
    Condition(#[from] ConditionError),
    /// The API server refused, or did not answer.
    #[error(transparent)]
    Api(#[from] ApiError),
}

debug_as_description!(StatusError);

impl StatusError {
    pub(super) fn gone(gvk: &Gvk, key: &ObjectKey) -> Self {
        Self::Gone {
            gvk: gvk.clone(),
            key: key.clone(),
            source: Ignore::because("it is gone"),
        }
    }

    pub(super) fn changed(gvk: &Gvk, key: &ObjectKey) -> Self {
        let (gvk, key) = (gvk.clone(), key.clone());
        Self::Changed { gvk, key }
    }

    /// Returns whether the object is gone.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::Gone { .. } => true,
            Self::Api(error) => error.is_not_found(),
            _ => false,
        }
    }

    /// Returns whether the object was in another state than it was to be, or others apply the same fields.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        match self {
            Self::Changed { .. } => true,
            Self::Api(error) => error.is_conflict(),
            _ => false,
        }
    }
}
