//! The delays of the control plane.

use std::time::Duration;

/// The delays and periods of the API server and its controllers.
///
/// [`Time::fast`] is the default: it has no delays that can be avoided, so that a test sees results at once.
/// [`Time::real`] has the delays of a real cluster. Every delay is measured by tokio's clock, so
/// under paused time neither costs anything. Delays of simulated workloads are in
/// [`Workloads`](crate::Workloads).
///
/// ```
/// use std::time::Duration;
/// use lariat::cluster::{Cluster, Time};
///
/// let builder = Cluster::builder().time(Time::real().event_ttl(Duration::from_secs(60)));
/// # let _ = builder;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "delays have an effect on a cluster that is built with them"]
pub struct Time {
    pub(crate) garbage_collection: Duration,
    pub(crate) namespace_deletion: Duration,
    pub(crate) establishing: Duration,
    pub(crate) first_bookmark: Duration,
    pub(crate) bookmark_period: Duration,
    pub(crate) last_bookmark: Duration,
    pub(crate) watch_timeout: Duration,
    pub(crate) event_ttl: Duration,
    pub(crate) history_age: Duration,
    pub(crate) write_timeout: Duration,
    pub(crate) body_timeout: Duration,
}

/// A hundred years: longer than any cluster lives, and no clock overflows by it.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

impl Default for Time {
    fn default() -> Self {
        Self::fast()
    }
}

impl Time {
    /// Returns the delays of a real cluster.
    pub fn real() -> Self {
        Self {
            garbage_collection: Duration::ZERO,
            // namespaceDeletionGracePeriod in Go's namespace controller.
            namespace_deletion: Duration::from_secs(5),
            establishing: Duration::from_millis(50),
            first_bookmark: Duration::from_secs(1),
            // defaultBookmarkFrequency in storage/cacher.
            bookmark_period: Duration::from_secs(60),
            last_bookmark: Duration::from_secs(2),
            // The next three are the defaults of `--min-request-timeout`, `--event-ttl` and
            // `--etcd-compaction-interval`.
            watch_timeout: Duration::from_secs(30 * 60),
            event_ttl: Duration::from_secs(60 * 60),
            history_age: Duration::from_secs(5 * 60),
            write_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(60),
        }
    }

    /// Returns [`real`](Self::real) delays without those of namespaces and CRDs.
    pub fn fast() -> Self {
        Self {
            namespace_deletion: Duration::ZERO,
            establishing: Duration::ZERO,
            ..Self::real()
        }
    }

    /// Sets how long the garbage collector waits after a change (default 0).
    pub fn garbage_collection(mut self, delay: Duration) -> Self {
        self.garbage_collection = delay.min(LONGEST);
        self
    }

    /// Sets how long a deleted namespace keeps its contents (real 5 s, fast 0).
    pub fn namespace_deletion(mut self, delay: Duration) -> Self {
        self.namespace_deletion = delay.min(LONGEST);
        self
    }

    /// Sets the delay before a CRD is established (real 50 ms, fast 0).
    ///
    /// It begins when the names of the CRD are accepted. The kind is served once the CRD is established.
    pub fn establishing(mut self, delay: Duration) -> Self {
        self.establishing = delay.min(LONGEST);
        self
    }

    /// Sets the time between bookmarks of a watch (default 60 s, at least 1 ms).
    ///
    /// The first comes after 1 s.
    pub fn bookmark_period(mut self, period: Duration) -> Self {
        self.bookmark_period = period.clamp(Duration::from_millis(1), LONGEST);
        self
    }

    /// Sets the shortest duration of watches without a timeout (default 30 min).
    ///
    /// They last up to twice as long.
    pub fn watch_timeout(mut self, timeout: Duration) -> Self {
        self.watch_timeout = timeout.min(LONGEST);
        self
    }

    /// Sets how long an Event is kept after its last change (default 1 h).
    ///
    /// With 0 it is kept for ever.
    pub fn event_ttl(mut self, ttl: Duration) -> Self {
        self.event_ttl = ttl.min(LONGEST);
        self
    }

    /// Sets how long changes are kept for watches and old reads (default 5 min).
    ///
    /// They are dropped up to a quarter of the age later. With 0 changes are not dropped by age.
    pub fn history_age(mut self, age: Duration) -> Self {
        self.history_age = age.min(LONGEST);
        self
    }

    /// Sets when a client that reads nothing is cut off (default 30 s).
    ///
    /// With 0 it is never cut off. See [`ClusterBuilder::write_timeout`](crate::ClusterBuilder::write_timeout).
    pub fn write_timeout(mut self, timeout: Duration) -> Self {
        self.write_timeout = timeout.min(LONGEST);
        self
    }

    /// Sets how long the body of a request may take to arrive (default 60 s).
    ///
    /// With 0 it may take for ever. See [`ClusterBuilder::body_timeout`](crate::ClusterBuilder::body_timeout).
    pub fn body_timeout(mut self, timeout: Duration) -> Self {
        self.body_timeout = timeout.min(LONGEST);
        self
    }
}
