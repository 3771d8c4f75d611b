//! Configures and creates a queue.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::core::{Ageing, Group, QueueCore};
use crate::{Payload, RateLimiter, WorkQueue, lasso_default};

/// Configures a [`WorkQueue`].
///
/// ```
/// use lariat::queue::{Ageing, Exponential, WorkQueue, group};
/// use std::time::Duration;
///
/// // Keys are "namespace/name"; a namespace with many keys cannot block the others.
/// let queue: WorkQueue<String> = WorkQueue::<String>::builder()
///     .ageing(Ageing::new(Duration::from_secs(5), 4))
///     .limiter(Exponential::new(Duration::from_millis(10), Duration::from_secs(60)))
///     .fair_by(|key| group(&key.split_once('/').map(|(namespace, _)| namespace)))
///     .build();
/// # drop(queue);
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct QueueBuilder<K> {
    /// How low priorities age.
    ageing: Ageing,
    /// The backoff of retries.
    limiter: Box<dyn RateLimiter>,
    /// The group of a key; `None` without fair queuing.
    group: Option<Group<K>>,
}

impl<K: Eq + Hash + Clone> WorkQueue<K> {
    /// Returns a builder with the default options.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::queue::{Exponential, WorkQueue};
    ///
    /// let limiter = Exponential::new(Duration::from_millis(10), Duration::from_secs(60));
    /// let queue: WorkQueue<String> = WorkQueue::builder().limiter(limiter).build();
    /// assert!(queue.is_empty());
    /// ```
    pub fn builder() -> QueueBuilder<K> {
        QueueBuilder::new()
    }
}

impl<K: Eq + Hash + Clone + 'static, P: Payload> Default for WorkQueue<K, P> {
    /// Creates a queue with default ageing, lasso's backoff, and no fair queuing.
    fn default() -> Self {
        QueueBuilder::new().build()
    }
}

impl<K> QueueBuilder<K> {
    /// Creates a builder with the default options.
    pub(crate) fn new() -> Self {
        Self {
            ageing: Ageing::default(),
            limiter: Box::new(lasso_default()),
            group: None,
        }
    }

    /// Sets how low priorities age (default: [`Ageing::default`]).
    pub fn ageing(self, ageing: Ageing) -> Self {
        Self { ageing, ..self }
    }

    /// Sets the backoff of retries (default: [`lasso_default`]).
    ///
    /// The limiter belongs to this queue alone.
    pub fn limiter(self, limiter: impl RateLimiter) -> Self {
        Self {
            limiter: Box::new(limiter),
            ..self
        }
    }

    /// Enables fair queuing between groups of keys (default: none).
    ///
    /// Within a priority, groups are served round robin, so that a group with many keys does not delay the others.
    /// [`group`] computes a group number from any value, such as a namespace.
    ///
    /// The function is called under the lock of the queue, each time a key becomes ready. It must be quick and must not
    /// use the queue. If it panics, the key belongs to group 0.
    ///
    /// ```
    /// use lariat::queue::{Add, WorkQueue, group};
    ///
    /// let queue: WorkQueue<(&str, u32)> = WorkQueue::builder()
    ///     .fair_by(|key: &(&str, u32)| group(&key.0))
    ///     .build();
    /// for key in [("busy", 1), ("busy", 2), ("quiet", 1)] {
    ///     queue.add(key, Add::now());
    /// }
    /// let mut order = Vec::new();
    /// while let Some(work) = queue.try_get() {
    ///     order.push(*work.key());
    ///     work.done();
    /// }
    /// assert_eq!(order, [("busy", 1), ("quiet", 1), ("busy", 2)]);
    /// ```
    pub fn fair_by(self, group: impl Fn(&K) -> u64 + Send + Sync + 'static) -> Self {
        Self {
            group: Some(Box::new(group)),
            ..self
        }
    }

    /// Creates the queue.
    #[must_use]
    pub fn build<P: Payload>(self) -> WorkQueue<K, P>
    where
        K: Eq + Hash + Clone + 'static,
    {
        let core = match self.group {
            Some(group) => QueueCore::fair(self.ageing, group),
            None => QueueCore::new(self.ageing),
        };
        WorkQueue::from_parts(core, self.limiter)
    }
}

/// Returns a group number for [`QueueBuilder::fair_by`]: a hash of the value.
///
/// Values with the same hash form one group. The hash is the same in every process that is built with the same Rust
/// version.
///
/// ```
/// use lariat::queue::group;
///
/// assert_eq!(group(&"kube-system"), group(&"kube-system"));
/// assert_ne!(group(&"kube-system"), group(&"default"));
/// ```
#[must_use]
pub fn group(of: &impl Hash) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

impl<K> fmt::Debug for QueueBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueBuilder")
            .field("ageing", &self.ageing)
            .field("fair", &self.group.is_some())
            .finish_non_exhaustive()
    }
}
