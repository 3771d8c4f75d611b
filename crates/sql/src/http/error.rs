//! Errors about the access of a user.

use std::time::Duration;

use crate::access::AccessError;

/// The error of an access that could not be determined; nothing is shown then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the access of the user is unknown: {reason}")]
pub struct VisibleError {
    reason: String,
    /// The time until the user has enough reviews again, if too many were needed.
    spent: Option<Duration>,
}

impl VisibleError {
    /// Creates an error that is sent to the client, as 503 with this reason.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            spent: None,
        }
    }

    pub(super) fn spent(&self) -> Option<Duration> {
        self.spent
    }
}

/// Converts the error of a review.
///
/// A spent budget is answered with 429. The API server's message is logged, and is not sent to the client.
impl From<AccessError> for VisibleError {
    fn from(error: AccessError) -> Self {
        if let AccessError::Budget {
            reviews,
            per,
            after,
            ..
        } = error
        {
            let reason = format!(
                "your budget of {reviews} reviews in {per:?} is spent; name fewer namespaces, or try again later"
            );
            return Self {
                reason,
                spent: Some(after),
            };
        }
        tracing::warn!(
            error = lariat_core::describe(&error),
            "the access of a user cannot be reviewed"
        );
        // The error of the API server may name internal addresses, so only the log has it.
        Self::new("a review of access failed; the log of the program says why")
    }
}
