//! The handle of a queue: what producers and workers call.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use tokio::task;

use crate::core::QueueCore;
use crate::shared::{Ending, Shared, now, wake_one};
use crate::stats::QueueStats;
use crate::{Add, LaneId, Payload, QueueBuilder, QueueMemory, RateLimiter, Step, Tap, Work};

/// A work queue shared by producers and workers; a clone is the same queue.
///
/// Adding never waits. Time is tokio's clock.
pub struct WorkQueue<K: Eq + Hash + Clone, P: Payload + Clone = ()> {
    shared: Arc<Shared<K, P>>,
}

impl<K: Eq + Hash + Clone> WorkQueue<K> {
    /// Begins to configure a queue.
    pub fn builder() -> QueueBuilder<K> {
        QueueBuilder::new()
    }
}

impl<K: Eq + Hash + Clone, P: Payload + Clone> WorkQueue<K, P> {
    pub(crate) fn from_parts(
        core: QueueCore<K, P>,
        limiter: Box<dyn RateLimiter>,
        tap: Option<Box<dyn Tap<K, P>>>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared::new(core, limiter, tap)),
        }
    }

    /// Adds a key; a queue that is shutting down ignores it.
    pub fn add(&self, key: K, add: Add<P>) {
        let hash = self.shared.hasher.hash(&key);
        let mut state = self.shared.lock_as_producer();
        let at = state.tap.is_some().then(now);
        if let Some(at) = at {
            state.show_add(at, &key, &add, None);
        }
        let now = || at.unwrap_or_else(now);
        if let Some(now) = state.core.add_lazily((key, hash), add, now) {
            wake_one(state, now);
        }
    }

    /// Adds many keys under one lock.
    pub fn add_all(&self, adds: impl IntoIterator<Item = (K, Add<P>)>) {
        // Collected before the lock, because what makes them may use the queue; so are the hashes, which take as
        // long as the rest of an add.
        let hasher = &self.shared.hasher;
        let hashed = |(key, add): (K, Add<P>)| ((hasher.hash(&key), key), add);
        let adds: Vec<_> = adds.into_iter().map(hashed).collect();
        self.shared.change(|state, now| {
            for ((hash, key), add) in adds {
                state.show_add(now, &key, &add, None);
                state.core.add_lazily((key, hash), add, || now);
            }
        });
    }

    /// Adds a key after the delay its limiter asks for, longer with each such add until a run in which no lane
    /// fails: client-go's `AddRateLimited`. If `add` has a delay of its own, the shorter of the two counts.
    pub fn add_rate_limited(&self, key: K, add: Add<P>) {
        self.shared.change(|state, now| {
            let shown = state.tap.is_some().then(|| (key.clone(), add.clone()));
            let (limiter, mut limited) = (&mut state.limiter, None);
            let delay = |failures| *limited.insert(limiter.delay(failures, now));
            state.core.add_failed(key, add, delay, now);
            if let Some((key, add)) = shown {
                state.show_add(now, &key, &add, limited);
            }
        });
    }

    /// Returns how many times in a row a lane of a key has failed.
    #[must_use]
    pub fn failures(&self, key: &K, lane: LaneId) -> u32 {
        self.shared.state.lock().core.failures(key, lane)
    }

    /// Forgets the failures of a lane of a key, or of all its lanes for [`LaneId::WHOLE`]; what is
    /// queued stays so.
    pub fn forget(&self, key: &K, lane: LaneId) {
        let mut state = self.shared.state.lock();
        state.core.forget(key, lane);
        state.show(now, || Step::Forget { key, lane });
    }

    /// Waits for the next key; `None` once the queue is drained or has shut down, nothing is ready and
    /// no key is with a worker.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: a key is handed out and returned in the same step.
    pub async fn get(&self) -> Option<Work<K, P>> {
        // Workers that never wait would otherwise keep the thread from all other tasks.
        task::consume_budget().await;
        let item = self.shared.get().await?;
        Some(Work::new(Arc::clone(&self.shared), item))
    }

    /// Gets the next key if there is one now.
    #[must_use]
    pub fn try_get(&self) -> Option<Work<K, P>> {
        let item = self.shared.try_get()?;
        Some(Work::new(Arc::clone(&self.shared), item))
    }

    /// Keeps what comes due from now on for later: until [`resume`](Self::resume), only what is due at
    /// this moment is handed out, and [`get`](Self::get) returns `None` once that is done.
    pub fn drain(&self) {
        self.shared.change(|state, now| {
            state.core.drain(now);
            state.show(|| now, || Step::Drain);
        });
    }

    /// Ends a drain; what came due meanwhile goes in line, in the order in which it came.
    pub fn resume(&self) {
        self.shared.change(|state, now| {
            state.core.resume();
            state.show(|| now, || Step::Resume);
        });
    }

    /// Refuses further adds and drops what is delayed; workers drain what is ready, then end.
    pub fn shut_down(&self) {
        self.shared.shut_down(Ending::ShutDown);
    }

    /// Refuses further adds and drops what is delayed or ready; what is with workers is forgotten when
    /// it comes back, and then they end.
    pub fn shut_down_now(&self) {
        self.shared.shut_down(Ending::ShutDownNow);
    }

    /// Shuts down, and waits until everything that was ready has been handed out and every key is back
    /// from its worker; a later shutdown ends the wait at once.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the shutdown back; only the wait is lost.
    pub async fn shut_down_with_drain(&self) {
        let own = self.shared.shut_down(Ending::ShutDown);
        self.shared.wait_for(own).await;
    }

    /// Accepts adds again after a shutdown; whoever waits for its drain waits no longer.
    pub fn reopen(&self) {
        self.shared.shut_down(Ending::Reopen);
    }

    /// Returns how many keys are in line.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.state.lock().core.len()
    }

    /// Returns whether no key is in line; delayed ones may be, and some may be with workers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the keys that are ready. Their order says nothing, and is the same after the same calls.
    #[must_use]
    pub fn ready_keys(&self) -> Vec<K> {
        self.shared.state.lock().core.ready_keys()
    }

    /// Returns how much the queue remembers, at constant cost: for checks, and for gauges of programs that run for long.
    #[must_use]
    pub fn memory(&self) -> [QueueMemory; 4] {
        self.shared.state.lock().core.memory()
    }

    /// Returns the figures of this moment.
    #[must_use]
    pub fn stats(&self) -> QueueStats {
        let now = now();
        let mut state = self.shared.state.lock();
        let before = state.core.released();
        let stats = state.core.stats(now);
        state.show_release(before, now);
        stats
    }
}

impl<K: Eq + Hash + Clone + 'static, P: Payload + Clone> Default for WorkQueue<K, P> {
    /// Makes a queue with default ageing, lasso's retry curve, and no groups.
    fn default() -> Self {
        QueueBuilder::new().build()
    }
}

impl<K: Eq + Hash + Clone, P: Payload + Clone> Clone for WorkQueue<K, P> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K: Eq + Hash + Clone, P: Payload + Clone> fmt::Debug for WorkQueue<K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue")
            .field("stats", &self.stats())
            .finish()
    }
}
