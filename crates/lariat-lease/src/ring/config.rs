//! How a ring is configured.

use std::time::Duration;

use crate::config::Lease;

/// How long a hand-over waits for the calls under way.
const DRAIN: Duration = Duration::from_secs(30);

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A ring of replicas that share the work: its name, and the times of its leases.
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
    /// Makes a ring with the name, namespace, identity and times of a lease.
    pub fn new(lease: Lease) -> Self {
        Self {
            lease,
            drain: DRAIN,
        }
    }

    /// Sets how long a key that moves waits for the call that is under way (default 30 seconds; zero drops it at once).
    ///
    /// A call that takes longer is dropped. Its key is handed over after the difference of lease duration and renew
    /// deadline, so that a write it had sent has arrived by then.
    pub fn drain_timeout(self, drain: Duration) -> Self {
        // A year is as good as for ever, and a time that no clock can hold is no trouble.
        let drain = drain.min(YEAR);
        Self { drain, ..self }
    }

    /// Returns how long a write may be on its way that was sent before its call was dropped.
    pub(crate) fn margin(&self) -> Duration {
        self.lease.duration - self.lease.renew_deadline
    }
}

impl From<Lease> for Sharding {
    fn from(lease: Lease) -> Self {
        Self::new(lease)
    }
}
