//! The errors of an election.

/// An election that cannot begin, or that has ended.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// The configuration is invalid.
    #[error("invalid configuration of the lease {lease}: {reason}")]
    Invalid {
        /// The name of the lease.
        lease: String,
        /// The violated rule.
        reason: String,
    },
    /// The lease was held and has been lost.
    #[error("lost the lease {lease}: {reason}")]
    Lost {
        /// Namespace and name of the lease.
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
