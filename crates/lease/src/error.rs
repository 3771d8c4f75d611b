//! The errors of an election, and of writes without its lease.

use std::error::Error;
use std::fmt;

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

impl fmt::Debug for LeaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The error of a write that was refused or aborted without the leadership.
///
/// kube wraps it in [`kube::Error::Service`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fenced {
    /// Namespace and name of the lease.
    lease: String,
    /// The write, for the message.
    what: String,
    /// Whether the request had been sent.
    was_sent: bool,
}

impl Fenced {
    pub(crate) fn new(lease: &str, write: &dyn fmt::Display, was_sent: bool) -> Self {
        Self {
            lease: lease.to_owned(),
            what: write.to_string(),
            was_sent,
        }
    }

    /// Returns whether the request had been sent when the leadership ended.
    ///
    /// If so, it may have taken effect.
    #[must_use]
    pub fn was_sent(&self) -> bool {
        self.was_sent
    }
}

impl fmt::Display for Fenced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            lease,
            what,
            was_sent,
        } = self;
        if *was_sent {
            write!(
                f,
                "{what} was aborted: this process no longer holds the lease {lease}"
            )
        } else {
            write!(
                f,
                "{what} was not sent: this process does not hold the lease {lease}"
            )
        }
    }
}

impl Error for Fenced {}
