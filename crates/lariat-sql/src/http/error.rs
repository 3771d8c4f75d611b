//! What is not known about a request.

use crate::access::AccessError;

/// The access of a user could not be determined; nothing is shown then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the access of the user is unknown: {0}")]
pub struct VisibleError(String);

impl VisibleError {
    /// Creates an error that is sent to the client, as 503 with this reason.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// Converts the error of a review.
///
/// The message of the API server is logged, and is not sent to the client.
impl From<AccessError> for VisibleError {
    fn from(error: AccessError) -> Self {
        tracing::warn!(
            error = lariat_core::describe(&error),
            "access of a user is unknown"
        );
        Self::new("a review of access failed; the log of the program says why")
    }
}
