//! The errors of writing an Event.

use kube::core::Status;
use lariat_core::{debug_as_description, describe};

use crate::wire::SendError;

/// The cause in a Status of a namespace that is being deleted.
// `NamespaceTerminatingCause` of `k8s.io/api/core/v1`.
const TERMINATING: &str = "NamespaceTerminating";

/// An Event was not written.
#[derive(thiserror::Error)]
pub(super) enum WriteError {
    /// The API server refused it.
    #[error("the API server answered {} {}", .0.code, .0.reason)]
    Status(Box<Status>),
    /// There was no answer in time.
    #[error("the API server does not answer")]
    Silence,
    /// The answer is not that of an API server.
    #[error("the answer is not JSON")]
    NotJson,
    /// The connection failed.
    #[error("{0}")]
    Connection(String),
    /// The request could not be built.
    #[error("the request is invalid: {0}")]
    Invalid(String),
    /// The object's namespace is invalid.
    #[error("the namespace of the object is not a valid name")]
    Namespace,
}

debug_as_description!(WriteError);

impl From<SendError> for WriteError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::NoAnswer(_) => Self::Silence,
            SendError::Kube(kube::Error::Api(status)) => Self::Status(status),
            SendError::Kube(kube::Error::SerdeError(_)) => Self::NotJson,
            SendError::Kube(error @ (kube::Error::BuildRequest(_) | kube::Error::HttpError(_))) => {
                Self::Invalid(describe(&error))
            }
            SendError::Kube(error) => Self::Connection(describe(&error)),
        }
    }
}

impl WriteError {
    #[allow(clippy::needless_pass_by_value, reason = "it maps errors")]
    pub(super) fn encoding(error: serde_json::Error) -> Self {
        Self::Invalid(describe(&error))
    }

    /// Returns whether the error is transient.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Status(status) => {
                // Also 401: a token may have expired, and is read again.
                matches!(status.code, 401 | 408 | 429 | 500..) || status.reason == "Conflict"
            }
            // `NotJson` is the page of a proxy in between.
            Self::Silence | Self::NotJson | Self::Connection(_) => true,
            Self::Invalid(_) | Self::Namespace => false,
        }
    }

    pub(super) fn is_not_found(&self) -> bool {
        self.status().is_some_and(|status| status.code == 404)
    }

    pub(super) fn is_already_exists(&self) -> bool {
        self.status()
            .is_some_and(|status| status.reason == "AlreadyExists")
    }

    pub(super) fn is_forbidden(&self) -> bool {
        self.status().is_some_and(|status| status.code == 403)
    }

    /// Returns whether the namespace is being deleted, or does not exist.
    pub(super) fn is_namespace_ending(&self) -> bool {
        let details = self.status().and_then(|status| status.details.as_ref());
        let mut causes = details.into_iter().flat_map(|details| &details.causes);
        self.is_not_found() || causes.any(|cause| cause.reason == TERMINATING)
    }

    fn status(&self) -> Option<&Status> {
        match self {
            Self::Status(status) => Some(status),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16, reason: &str) -> WriteError {
        WriteError::Status(Box::new(Status {
            code,
            reason: reason.to_owned(),
            message: "secret".to_owned(),
            ..Status::default()
        }))
    }

    #[test]
    fn what_may_pass_is_tried_again() {
        let check =
            |error: WriteError, passes: bool| assert_eq!(error.is_transient(), passes, "{error}");
        check(status(429, "TooManyRequests"), true);
        check(status(503, ""), true);
        // A token that has just been rotated.
        check(status(401, "Unauthorized"), true);
        check(status(409, "Conflict"), true);
        check(status(409, "AlreadyExists"), false);
        check(status(403, "Forbidden"), false);
        check(status(422, "Invalid"), false);
        check(WriteError::Silence, true);
        check(WriteError::Namespace, false);
    }

    #[test]
    fn a_namespace_that_ends_is_not_a_missing_permission() {
        let mut error = status(403, "Forbidden");
        assert!(error.is_forbidden() && !error.is_namespace_ending());
        if let WriteError::Status(status) = &mut error {
            let details = serde_json::json!({"causes": [{"reason": "NamespaceTerminating"}]});
            status.details = serde_json::from_value(details).unwrap();
        }
        assert!(error.is_namespace_ending());
        assert!(status(404, "NotFound").is_namespace_ending());
    }

    #[test]
    fn what_the_server_writes_stays_out_of_logs() {
        assert_eq!(
            status(422, "Invalid").to_string(),
            "the API server answered 422 Invalid"
        );
    }
}
