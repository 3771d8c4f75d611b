//! The configuration of a ring.

use std::time::Duration;

use crate::config::Lease;

/// How long a hand-over waits for running calls.
const DRAIN: Duration = Duration::from_secs(30);

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The configuration of a ring of replicas that share the work.
///
/// All replicas use the same name and the same times. Each has a lease of its own, `NAME-xxxxxxxx`, with the label
/// `lariat.dev/ring=NAME`, in one namespace.
///
/// ```
/// use std::time::Duration;
/// use lariat_lease::{Lease, Sharding};
///
/// let sharding = Sharding::new(Lease::new("shop-operator")).drain_timeout(Duration::from_secs(60));
/// # let _ = sharding;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a ring does nothing until a factory has it"]
pub struct Sharding {
    pub(crate) lease: Lease,
    pub(crate) drain: Duration,
}

impl Sharding {
    /// Creates the configuration of a ring.
    ///
    /// Name, namespace, identity and times are those of a lease.
    pub fn new(lease: Lease) -> Self {
        Self {
            lease,
            drain: DRAIN,
        }
    }

    /// Sets how long a key that moves waits for its running call (default 30 seconds).
    ///
    /// A call that takes longer is dropped; zero drops it immediately. Its key is then handed over after the difference
    /// of lease duration and renew deadline, so that a write it had sent has arrived by then.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat_lease::{Lease, Sharding};
    ///
    /// let at_most_a_minute = Sharding::new(Lease::new("shop")).drain_timeout(Duration::from_secs(60));
    /// # let _ = at_most_a_minute;
    /// ```
    pub fn drain_timeout(self, drain: Duration) -> Self {
        // A year is as good as for ever, and no clock overflows by it.
        let drain = drain.min(YEAR);
        Self { drain, ..self }
    }

    /// Returns how long a write of a dropped call may be on its way.
    pub(crate) fn margin(&self) -> Duration {
        self.lease.duration - self.lease.renew_deadline
    }
}

impl From<Lease> for Sharding {
    fn from(lease: Lease) -> Self {
        Self::new(lease)
    }
}
