//! The configuration of a ring.

use std::sync::Arc;
use std::time::Duration;

use super::label::ShardLabel;
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
    /// The label by which objects are divided; `None` if they are divided by owner.
    pub(super) label: Option<ShardLabel>,
    /// Identifies the label and its values; empty without a label.
    pub(super) division: Arc<str>,
}

impl Sharding {
    /// Creates the configuration of a ring.
    ///
    /// Name, namespace, identity and times are those of the lease.
    pub fn new(lease: Lease) -> Self {
        Self {
            lease,
            drain: DRAIN,
            label: None,
            division: Arc::default(),
        }
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

    /// Divides objects by the value of a label (default: by owner).
    ///
    /// By owner, every member watches all objects and handles its part. By label, each value belongs to one member,
    /// with all objects that have it, and a member watches only its own values, so the API server sends each object to
    /// one member only. Choose many more values than replicas, such as 64 for three, because a value is never split.
    ///
    /// When members join or leave, a member lists the values it gains before it handles their objects. Objects of the
    /// values it loses leave its cache without a call of the handlers.
    ///
    /// The program sets the label when it creates an object. Objects without the label, or with another value, are
    /// handled by no member. An owner and the objects that it controls need the same value. Do not change the label of
    /// an object: the member of the old value sees a deletion, and the change is not coordinated between the two
    /// members.
    ///
    /// All members should have the same label and values. A member with different ones joins when the others have left.
    ///
    /// ```
    /// use lariat::{Lease, Sharding};
    ///
    /// let shards = (0..64).map(|shard| shard.to_string());
    /// let sharding = Sharding::new(Lease::new("shop-operator")).by_label("example.com/shard", shards);
    /// # let _ = sharding;
    /// ```
    pub fn by_label<V: Into<String>>(self, key: &str, values: impl IntoIterator<Item = V>) -> Self {
        let label = ShardLabel::new(key, values);
        Self {
            division: label.division().into(),
            label: Some(label),
            ..self
        }
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
