//! The configuration of a ring.

use std::sync::Arc;
use std::time::Duration;

use super::label::ShardLabel;
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
    pub(super) label: Option<ShardLabel>,
    /// Identifies label and values; empty without a label.
    pub(super) division: Arc<str>,
}

impl Sharding {
    /// Creates the configuration of a ring.
    ///
    /// Name, namespace, identity and times are those of a lease.
    pub fn new(lease: Lease) -> Self {
        Self {
            lease,
            drain: DRAIN,
            label: None,
            division: Arc::default(),
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

    /// Divides objects by the value of a label, and watches only the own part (default: by owner, watching all).
    ///
    /// Each of the values belongs to one member, with all objects that have it. The kinds that members handle are watched
    /// with a selector of the member's values, so the API server sends each object to one member only. Choose many more
    /// values than replicas (64 for three), because a value is never split. When the members change, values that a
    /// member gains are listed before their objects are handled, and objects of values that it loses leave its cache
    /// without a call of the handlers.
    ///
    /// The program sets the label when it creates an object. Objects without it, or with another value, are handled by
    /// no member. A change of the label looks like a deletion to the member of the old value, and is not coordinated
    /// between the two members: do not change it. An owner and the objects it controls need the same value. All members
    /// should have the same label and values: a member with others joins when no member with different ones is left.
    ///
    /// ```
    /// use lariat_lease::{Lease, Sharding};
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
