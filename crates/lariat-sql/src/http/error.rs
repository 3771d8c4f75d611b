//! What is not known about a request.

use crate::access::AccessError;

/// A request whose user is not known. It has no token in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The request has no token, or one that is refused.
    ///
    /// It is answered 401, with this reason.
    #[error("{0}")]
    Unauthenticated(String),
    /// The user of the token cannot be found out now.
    ///
    /// It is answered 503, with this reason.
    #[error("{0}")]
    Unavailable(String),
}

impl AuthError {
    pub(crate) fn unauthenticated(why: &str) -> Self {
        Self::Unauthenticated(why.to_owned())
    }
}

/// It is not known what a user may see; nothing is shown then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("what the user may see is not known: {0}")]
pub struct VisibleError(String);

impl VisibleError {
    /// Makes an error that a client reads: it answers 503 with this reason.
    #[must_use]
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// Converts the error of a review.
///
/// The message of the API server is logged, and is not sent to the client.
impl From<AccessError> for VisibleError {
    fn from(error: AccessError) -> Self {
        tracing::warn!(
            error = lariat_core::describe(&error),
            "what a user may see is not known"
        );
        Self::new("a review of access failed; the log of the program says why")
    }
}
