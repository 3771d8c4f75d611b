//! The errors of a lease.

/// An election that cannot begin, or has ended.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// The configuration is invalid.
    #[error("the lease {lease} cannot be held: {reason}")]
    Invalid {
        /// The name of the lease.
        lease: String,
        /// What is wrong.
        reason: String,
    },
    /// The lease was held and was lost.
    #[error("the lease {lease} is lost: {reason}")]
    Lost {
        /// The namespace and the name of the lease.
        lease: String,
        /// Why: it was not renewed in time, or another process holds it.
        reason: String,
    },
}

impl std::fmt::Debug for LeaseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}
