//! The error of writing a status.

use lariat_controller::Ignore;
use lariat_core::{Gvk, ObjectKey, debug_as_description};

use super::condition::ConditionError;
use crate::wire::ApiError;

/// A status could not be written.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StatusError {
    /// The object does not exist, or another one has its name now.
    ///
    /// A reconciler that returns this error with `?` ends the call, and the error is
    /// [ignored](lariat_controller::HandlerError::ignore): the deletion calls the reconciler anyway.
    #[error("cannot write the status of {gvk} {key}")]
    Gone {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
        /// Marks the error as ignored for the handler.
        source: Ignore,
    },
    /// The object exists, but its kind has no status subresource.
    #[error(
        "{gvk} {key} has no status subresource; its CRD needs `subresources: {{status: {{}}}}` in this version (with \
         kube's derive: `#[kube(status = \"…\")]`)"
    )]
    NoSubresource {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
    },
    /// This program may not read the object or write its status.
    #[error(
        "no permission to write the status of {gvk} {key}; declare it by `writes_status()` of the reconciler, and add \
         it to the role of the program"
    )]
    Forbidden {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
        /// The answer of the API server.
        source: Box<ApiError>,
    },
    /// The object has changed since the call began.
    ///
    /// Only that state was to be written ([`StatusWriter::unchanged_only`](crate::StatusWriter::unchanged_only)).
    #[error("{gvk} {key} has changed since this reconcile began")]
    Changed {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
    },
    /// The given status is not a JSON object, or the present one does not decode.
    #[error("the status of {gvk} {key} cannot be written: {detail}")]
    Unfit {
        /// The kind.
        gvk: Gvk,
        /// The key.
        key: ObjectKey,
        /// The reason, without values.
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
            source: Ignore::because("the object no longer exists"),
        }
    }

    pub(super) fn no_subresource(gvk: &Gvk, key: &ObjectKey) -> Self {
        Self::NoSubresource {
            gvk: gvk.clone(),
            key: key.clone(),
        }
    }

    /// Returns the error with advice if RBAC refused the request.
    pub(super) fn with_advice(self, gvk: &Gvk, key: &ObjectKey) -> Self {
        match self {
            Self::Api(error) if error.is_forbidden_by_rbac() => Self::Forbidden {
                gvk: gvk.clone(),
                key: key.clone(),
                source: Box::new(error),
            },
            other => other,
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

    /// Returns whether the object has changed, or others manage the same fields.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        match self {
            Self::Changed { .. } => true,
            Self::Api(error) => error.is_conflict(),
            _ => false,
        }
    }
}
