//! The options of a queue.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::core::{Ageing, Group, QueueCore};
use crate::{Payload, RateLimiter, Tap, WorkQueue, lasso_default};

/// Configures a [`WorkQueue`].
///
/// ```
/// use lariat_queue::{Ageing, Exponential, WorkQueue, group};
/// use std::time::Duration;
///
/// // Keys are "namespace/name"; no namespace can hold the others back.
/// let queue: WorkQueue<String> = WorkQueue::<String>::builder()
///     .ageing(Ageing::new(Duration::from_secs(5), 4))
///     .limiter(Exponential::new(Duration::from_millis(10), Duration::from_secs(60)))
///     .fair_by(|key| group(&key.split_once('/').map(|(namespace, _)| namespace)))
///     .build();
/// # drop(queue);
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct QueueBuilder<K> {
    ageing: Ageing,
    limiter: Box<dyn RateLimiter>,
    group: Option<Group<K>>,
}

impl<K: Eq + Hash + Clone> WorkQueue<K> {
    /// Begins to configure a queue.
    pub fn builder() -> QueueBuilder<K> {
        QueueBuilder::new()
    }
}

impl<K: Eq + Hash + Clone + 'static, P: Payload + Clone> Default for WorkQueue<K, P> {
    /// Makes a queue with default ageing, lasso's retry curve, and no groups.
    fn default() -> Self {
        QueueBuilder::new().build()
    }
}

impl<K> QueueBuilder<K> {
    pub(crate) fn new() -> Self {
        Self {
            ageing: Ageing::default(),
            limiter: Box::new(lasso_default()),
            group: None,
        }
    }

    /// Sets how waiting low priorities rise (default: [`Ageing::default`]).
    pub fn ageing(self, ageing: Ageing) -> Self {
        Self { ageing, ..self }
    }

    /// Sets the curve of retries (default: [`lasso_default`]). It is this queue's own.
    pub fn limiter(self, limiter: impl RateLimiter) -> Self {
        Self {
            limiter: Box::new(limiter),
            ..self
        }
    }

    /// Lets groups of keys take turns within a priority, so that one with many keys cannot hold back
    /// the others (default: first come first served). See [`group`].
    ///
    /// The function is called under the lock of the queue, once for every time a key gets in line, so it
    /// must be quick and must not use the queue. A key for which it panics counts as one of group 0.
    pub fn fair_by(self, group: impl Fn(&K) -> u64 + Send + Sync + 'static) -> Self {
        Self {
            group: Some(Box::new(group)),
            ..self
        }
    }

    /// Makes the queue.
    #[must_use]
    pub fn build<P: Payload + Clone>(self) -> WorkQueue<K, P>
    where
        K: Eq + Hash + Clone + 'static,
    {
        self.build_with(None)
    }

    /// Makes the queue, with someone who sees all its steps.
    #[must_use]
    pub fn build_tapped<P: Payload + Clone>(self, tap: impl Tap<K, P> + 'static) -> WorkQueue<K, P>
    where
        K: Eq + Hash + Clone + 'static,
    {
        self.build_with(Some(Box::new(tap)))
    }

    fn build_with<P: Payload + Clone>(self, tap: Option<Box<dyn Tap<K, P>>>) -> WorkQueue<K, P>
    where
        K: Eq + Hash + Clone + 'static,
    {
        let core = match self.group {
            Some(group) => QueueCore::fair(self.ageing, group),
            None => QueueCore::new(self.ageing),
        };
        WorkQueue::from_parts(core, self.limiter, tap)
    }
}

/// Returns a number for the group that something stands for. Two groups with the same number, which
/// happens once in billions, are treated as one.
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
