//! What is not known about a request.

/// The error of a request whose user is unknown. It does not contain the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// The request has no token, or the token was refused.
    ///
    /// The response is 401 with this reason.
    #[error("{0}")]
    Unauthenticated(String),
    /// The user of the token, or what the user may do, cannot be determined now.
    ///
    /// The response is 503 with this reason.
    #[error("{0}")]
    Unavailable(String),
}

impl AuthError {
    /// Creates an [`Unauthenticated`](Self::Unauthenticated) error.
    #[must_use]
    pub fn unauthenticated(reason: &str) -> Self {
        Self::Unauthenticated(reason.to_owned())
    }
}
