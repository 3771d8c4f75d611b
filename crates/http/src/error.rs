//! The errors of authentication and authorization.

use std::time::Duration;

/// The error of a request whose user or permission is unknown.
///
/// It never contains the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The request has no token, or the token was refused: respond with 401.
    #[error("{0}")]
    Unauthenticated(String),
    /// The review of the token or of the access failed: respond with 503.
    #[error("{0}")]
    Unavailable(String),
    /// Too many unknown tokens are being reviewed: respond with 429.
    #[error("too many unknown tokens were sent; try again in {} s", after.as_secs() + 1)]
    Busy {
        /// When to try again.
        after: Duration,
    },
}

impl AuthError {
    /// Creates an [`Unauthenticated`](Self::Unauthenticated) error.
    #[must_use]
    pub fn unauthenticated(reason: &str) -> Self {
        Self::Unauthenticated(reason.to_owned())
    }
}
