//! The error of writing a status.

use lariat_controller::Ignore;
use lariat_core::{Gvk, ObjectKey, debug_as_description};

use super::condition::ConditionError;
use crate::wire::ApiError;

/// A status was not written.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StatusError {
    /// The object does not exist, or another one has its name by now.
    ///
    /// Returned with `?` it ends the call and is [ignored](lariat_controller::HandlerError::ignore): the reconciler is
    /// called for the deletion anyway.
    #[error("{gvk} {key} has no status to write any more")]
    Gone {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
        /// Makes the handler error ignored.
        source: Ignore,
    },
    /// The object exists, but its kind has no status subresource.
    #[error(
        "{gvk} {key} has no status subresource; its CRD needs `subresources: {{status: {{}}}}` in this version"
    )]
    NoSubresource {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
    },
    /// The object changed since the call began, and only that state was to be written.
    #[error("{gvk} {key} has changed since this reconcile began")]
    Changed {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
    },
    /// The given status is not a JSON object, or the present status does not fit the type.
    #[error("the status of {gvk} {key} cannot be written: {detail}")]
    Unfit {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
        /// What is wrong, without values.
        detail: String,
    },
    /// The condition is invalid.
    #[error(transparent)]
    Condition(#[from] ConditionError),
    /// A request failed.
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

    /// Returns whether the object does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::Gone { .. } => true,
            Self::Api(error) => error.is_not_found(),
            _ => false,
        }
    }

    /// Returns whether the object changed meanwhile, or others manage the same fields.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        match self {
            Self::Changed { .. } => true,
            Self::Api(error) => error.is_conflict(),
            _ => false,
        }
    }
}
