//! Errors about the access of a user.

use crate::access::AccessError;

/// The error of an access that could not be determined; nothing is shown then.
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
/// The API server's message is logged, and is not sent to the client.
impl From<AccessError> for VisibleError {
    fn from(error: AccessError) -> Self {
        tracing::warn!(
            error = lariat_core::describe(&error),
            "the access of a user cannot be reviewed"
        );
        // The error of the API server may name internal addresses, so only the log has it.
        Self::new("a review of access failed; the log of the program says why")
    }
}
