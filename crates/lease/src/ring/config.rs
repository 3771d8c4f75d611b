//! The configuration of a ring.

use std::time::Duration;

use crate::config::Lease;

/// How long a hand-over waits for running calls by default.
const DRAIN: Duration = Duration::from_secs(30);

/// The longest drain timeout.
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The configuration of a ring of replicas that share the work.
///
/// All replicas use the same name and the same times. Each has its own lease, `NAME-xxxxxxxx`, with the label
/// `lariat.dev/ring=NAME`; all leases are in one namespace.
///
/// ```
/// use std::time::Duration;
/// use lariat::{Lease, Sharding};
///
/// let sharding = Sharding::new(Lease::new("shop-operator")).drain_timeout(Duration::from_secs(60));
/// # let _ = sharding;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a ring does nothing until a factory has it"]
pub struct Sharding {
    /// Name, namespace, identity and times.
    pub(crate) lease: Lease,
    /// The drain timeout.
    pub(crate) drain: Duration,
}

impl Sharding {
    /// Creates the configuration of a ring.
    ///
    /// Name, namespace, identity and times are those of the lease.
    pub fn new(lease: Lease) -> Self {
        let drain = DRAIN;
        Self { lease, drain }
    }

    /// Sets how long the hand-over of a key waits for its running call (default: 30 s).
    ///
    /// A call that takes longer is dropped; zero drops it immediately. The key of a dropped call is handed over later
    /// by the difference of lease duration and renew deadline, so that a write which the call had sent has arrived by
    /// then. More than a year counts as a year.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::{Lease, Sharding};
    ///
    /// let at_most_a_minute = Sharding::new(Lease::new("shop")).drain_timeout(Duration::from_secs(60));
    /// # let _ = at_most_a_minute;
    /// ```
    pub fn drain_timeout(self, drain: Duration) -> Self {
        // Adding a longer time to a clock might overflow.
        let drain = drain.min(YEAR);
        Self { drain, ..self }
    }

    /// Returns how long a write of a dropped call may take to arrive.
    pub(crate) fn margin(&self) -> Duration {
        self.lease.duration - self.lease.renew_deadline
    }
}

impl From<Lease> for Sharding {
    fn from(lease: Lease) -> Self {
        Self::new(lease)
    }
}
