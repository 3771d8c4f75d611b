//! What producers and workers call: the queue's handle, and a key in processing.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::{task, time};

use crate::core::{Item, QueueCore, Verdict};
use crate::shared::{SharedQueue, Verdicts, Waiting, now, wake_one};
use crate::{
    Add, LaneId, Lanes, Payload, Priority, QueueMemory, QueueSnapshot, QueueStats, QueueStep,
    QueuedKey, RateLimiter, Tap,
};

/// A work queue shared by producers and workers; a clone is the same queue.
///
/// Adding never waits. Time is tokio's clock.
///
/// ```
/// use lariat_queue::{Add, WorkQueue};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let queue: WorkQueue<&str> = WorkQueue::default();
/// let workers = queue.clone();
/// queue.add("pod-a", Add::now());
///
/// let work = workers.get().await.expect("the queue is open");
/// // The key is being processed: adding it again queues it for afterwards.
/// queue.add("pod-a", Add::now());
/// assert!(workers.try_get().is_none());
/// work.done();
/// assert!(workers.try_get().is_some());
/// # }
/// ```
pub struct WorkQueue<K: Eq + Hash + Clone, P: Payload + Clone = ()> {
    shared: Arc<SharedQueue<K, P>>,
}

impl<K: Eq + Hash + Clone, P: Payload + Clone> WorkQueue<K, P> {
    pub(crate) fn from_parts(
        core: QueueCore<K, P>,
        limiter: Box<dyn RateLimiter>,
        tap: Option<Box<dyn Tap<K, P>>>,
    ) -> Self {
        Self {
            shared: Arc::new(SharedQueue::new(core, limiter, tap)),
        }
    }

    /// Adds a key. A queue that is shutting down ignores it.
    pub fn add(&self, key: K, add: Add<P>) {
        let hash = self.shared.hasher.hash(&key);
        let mut state = self.shared.lock_as_producer();
        // Without a tap the clock is read only if the add changes something.
        let at = state.tap.is_some().then(now);
        if let Some(at) = at {
            state.show_add(at, &key, &add, None);
        }
        let now = || at.unwrap_or_else(now);
        if let Some(now) = state.core.add_lazily(key, hash, add, now) {
            wake_one(state, now);
        }
    }

    /// Adds many keys under one lock.
    ///
    /// ```
    /// use lariat_queue::{Add, WorkQueue};
    ///
    /// let queue: WorkQueue<u32> = WorkQueue::default();
    /// queue.add_all((0..3).map(|key| (key, Add::now())));
    /// assert_eq!(queue.len(), 3);
    /// ```
    pub fn add_all(&self, adds: impl IntoIterator<Item = (K, Add<P>)>) {
        // Collected before the lock, because the iterator may use the queue. The keys are hashed here too: hashing
        // takes as long as the rest of an add.
        let hasher = &self.shared.hasher;
        let hashed = |(key, add): (K, Add<P>)| ((hasher.hash(&key), key), add);
        let adds: Vec<_> = adds.into_iter().map(hashed).collect();
        self.shared.change(|state, now| {
            for ((hash, key), add) in adds {
                state.show_add(now, &key, &add, None);
                state.core.add_lazily(key, hash, add, || now);
            }
        });
    }

    /// Adds a key after the delay of the limiter: client-go's `AddRateLimited`.
    ///
    /// Each such add counts as a failure of the key, so the delay grows, until a run in which no lane fails. If `add`
    /// has a delay of its own, the shorter of the two counts.
    ///
    /// ```
    /// use lariat_queue::{Add, LaneId, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let queue: WorkQueue<&str> = WorkQueue::default();
    /// queue.add_rate_limited("pod-a", Add::now());
    /// assert!(queue.try_get().is_none(), "it is delayed");
    /// assert_eq!(queue.failures(&"pod-a", LaneId::WHOLE), 1);
    /// # }
    /// ```
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
    ///
    /// Zero for a key that the queue does not contain.
    #[must_use]
    pub fn failures(&self, key: &K, lane: LaneId) -> u32 {
        self.shared.state.lock().core.failures(key, lane)
    }

    /// Resets the failures of a lane of a key: client-go's `Forget`.
    ///
    /// [`LaneId::WHOLE`] stands for all lanes of the key. Nothing is removed from the queue.
    ///
    /// ```
    /// use lariat_queue::{Add, LaneId, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let queue: WorkQueue<&str> = WorkQueue::default();
    /// queue.add_rate_limited("pod-a", Add::now());
    /// queue.forget(&"pod-a", LaneId::WHOLE);
    /// assert_eq!(queue.failures(&"pod-a", LaneId::WHOLE), 0);
    /// # }
    /// ```
    pub fn forget(&self, key: &K, lane: LaneId) {
        let mut state = self.shared.state.lock();
        state.core.forget(key, lane);
        state.show(now, || QueueStep::Forget { key, lane });
    }

    /// Waits for the next key; `None` once the queue has ended.
    ///
    /// A queue has ended when it is draining or shutting down, no key is ready and no key is being processed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: a key is dequeued and returned in the same step.
    pub async fn get(&self) -> Option<Work<K, P>> {
        // A worker that never has to wait would otherwise starve the other tasks of its thread.
        task::consume_budget().await;
        let mut waiting = None;
        loop {
            let (number, deadline) = match self.get_or_join(waiting.take()) {
                Attempt::Got(item) => return Some(self.work(item)),
                Attempt::Finished => return None,
                Attempt::Wait { number, deadline } => (number, deadline),
            };
            let waiting = waiting.insert(Waiting::new(&self.shared, number));
            match deadline {
                None => waiting.woken().await,
                Some(at) => tokio::select! {
                    biased;
                    () = waiting.woken() => {}
                    () = time::sleep_until(at.into()) => {}
                },
            }
        }
    }

    /// Gets a key, or registers the caller as a waiter.
    ///
    /// A waiter that was woken unregisters in the same step.
    fn get_or_join(&self, woken: Option<Waiting<'_, K, P>>) -> Attempt<K, P> {
        let now = now();
        let mut state = self.shared.lock_as_worker();
        // Leaving and looking happen under one lock: a wake-up between them would be lost.
        if let Some(waiting) = woken {
            waiting.leave(&mut state);
        }
        if let Some(item) = state.get(now) {
            // Wake-ups merge, so a worker that gets a key wakes the next one if there are more keys or the timer has no
            // owner.
            wake_one(state, now);
            return Attempt::Got(item);
        }
        if state.core.is_finished() {
            return Attempt::Finished;
        }
        let (number, deadline) = state.join();
        Attempt::Wait { number, deadline }
    }

    /// Gets the next key if one is ready; never waits.
    #[must_use]
    pub fn try_get(&self) -> Option<Work<K, P>> {
        let now = now();
        let item = self.shared.lock_as_worker().get(now)?;
        Some(self.work(item))
    }

    fn work(&self, item: Item<K, P>) -> Work<K, P> {
        Work {
            queue: self.clone(),
            item: Some(item),
        }
    }

    /// Limits the queue to the keys that are due now, until [`resume`](Self::resume).
    ///
    /// Keys that become due later are accepted and kept for after the drain. [`get`](Self::get) returns `None` once the
    /// keys that were due have been processed.
    ///
    /// ```
    /// use lariat_queue::{Add, WorkQueue};
    ///
    /// let queue: WorkQueue<&str> = WorkQueue::default();
    /// queue.add("pod-a", Add::now());
    /// queue.drain();
    /// queue.add("pod-b", Add::now());
    /// queue.try_get().expect("it was due before the drain").done();
    /// assert!(queue.try_get().is_none());
    ///
    /// queue.resume();
    /// assert_eq!(*queue.try_get().expect("the drain has ended").key(), "pod-b");
    /// ```
    pub fn drain(&self) {
        self.shared.change(|state, now| {
            state.core.drain(now);
            state.show(|| now, || QueueStep::Drain);
        });
    }

    /// Ends a drain; keys that became due meanwhile are queued in that order.
    pub fn resume(&self) {
        self.shared.change(|state, now| {
            state.core.resume();
            state.show(|| now, || QueueStep::Resume);
        });
    }

    /// Refuses further adds and drops delayed keys: client-go's `ShutDown`.
    ///
    /// Workers process the keys that are ready, and then end.
    ///
    /// ```
    /// use lariat_queue::{Add, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let queue: WorkQueue<&str> = WorkQueue::default();
    /// queue.add("pod-a", Add::now());
    /// queue.shut_down();
    /// queue.add("pod-b", Add::now());
    /// queue.get().await.expect("it was ready before").done();
    /// assert!(queue.get().await.is_none());
    /// # }
    /// ```
    pub fn shut_down(&self) {
        self.end(QueueStep::ShutDown { now: false }, QueueCore::shut_down);
    }

    /// Refuses further adds and drops delayed and ready keys.
    ///
    /// Keys in processing are forgotten when their workers return them; then the workers end. This is
    /// controller-runtime's `ShutDown`.
    pub fn shut_down_now(&self) {
        self.end(QueueStep::ShutDown { now: true }, QueueCore::shut_down_now);
    }

    /// Shuts down and waits until all ready keys have been processed.
    ///
    /// A later shutdown, or [`reopen`](Self::reopen), ends the wait immediately. This is client-go's
    /// `ShutDownWithDrain`.
    ///
    /// ```
    /// use lariat_queue::{Add, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let queue: WorkQueue<&str> = WorkQueue::default();
    /// queue.add("pod-a", Add::now());
    /// let worker = async {
    ///     while let Some(work) = queue.get().await {
    ///         work.done();
    ///     }
    /// };
    /// tokio::join!(worker, queue.shut_down_with_drain());
    /// assert!(queue.is_empty());
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends only the wait; the queue remains shut down.
    pub async fn shut_down_with_drain(&self) {
        let own = self.end(QueueStep::ShutDown { now: false }, QueueCore::shut_down);
        self.shared.wait_for(own).await;
    }

    /// Accepts adds again after a shutdown, and ends the waits for its drain.
    pub fn reopen(&self) {
        self.end(QueueStep::Reopen, QueueCore::reopen);
    }

    /// Shuts down in some way, or reopens; returns the number of this step.
    fn end(&self, step: QueueStep<'_, K, P>, how: fn(&mut QueueCore<K, P>)) -> u64 {
        let number = self.shared.change(|state, now| {
            how(&mut state.core);
            state.show(|| now, || step);
            state.show_empty(now);
            state.shutdowns += 1;
            state.shutdowns
        });
        self.shared.ended.notify_waiters();
        number
    }

    /// Returns how many keys are in line.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.state.lock().core.len()
    }

    /// Returns whether no key is in line; keys may be delayed or being processed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the keys that are ready.
    ///
    /// Their order has no meaning; the same calls lead to the same order.
    #[must_use]
    pub fn ready_keys(&self) -> Vec<K> {
        self.shared.state.lock().core.ready_keys()
    }

    /// Returns the first keys of the queue with their states.
    ///
    /// Keys in line come first, in the order of the next dequeues if nothing ages meanwhile; then those in processing,
    /// those deferred until the end of a drain, and those that are delayed, by time. At most `limit` keys are copied.
    ///
    /// Nothing changes in the queue. Its lock is held for a time that grows with `limit` and the keys in processing (with
    /// fair queuing with the groups too), and not with the keys in the queue: at most 16,384 places in line and as many
    /// deadlines are looked at. What is behind them may be missing even if `limit` is not reached.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat_queue::{Add, KeyState, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let queue: WorkQueue<&str> = WorkQueue::default();
    /// queue.add("later", Add::after(Duration::from_secs(5)));
    /// queue.add("now", Add::now());
    /// let snapshot = queue.snapshot(1);
    /// assert_eq!((snapshot.keys[0].key, snapshot.keys[0].state), ("now", KeyState::Ready));
    /// assert_eq!(snapshot.total, 2);
    /// # }
    /// ```
    #[must_use]
    pub fn snapshot(&self, limit: usize) -> QueueSnapshot<K> {
        let now = now();
        self.shared.state.lock().core.snapshot(limit, now)
    }

    /// Returns the state of a key at constant cost; `None` if the queue does not contain it.
    #[must_use]
    pub fn queued(&self, key: &K) -> Option<QueuedKey<K>> {
        let now = now();
        self.shared.state.lock().core.queued(key, now)
    }

    /// Returns the sizes of the queue's internal structures, at constant cost.
    ///
    /// For checks, and for gauges of long-running programs.
    #[must_use]
    pub fn memory(&self) -> [QueueMemory; 4] {
        self.shared.state.lock().core.memory()
    }

    /// Returns the metrics of the queue at this moment.
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

/// The result of asking for a key.
enum Attempt<K, P> {
    Got(Item<K, P>),
    Finished,
    /// The caller is a waiter; with a deadline, it owns the timer.
    Wait {
        number: u32,
        deadline: Option<Instant>,
    },
}

/// A key that a worker is processing; no other worker gets it until then.
///
/// Finish it with [`done`](Self::done), [`done_with`](Self::done_with) or [`retry`](Self::retry). Dropping it without a
/// result, as when a worker panics or is cancelled, gives the key back: the same lanes are due again, and no failure is
/// counted.
///
/// ```
/// use lariat_queue::{Add, WorkQueue};
///
/// let queue: WorkQueue<&str> = WorkQueue::default();
/// queue.add("pod-a", Add::now());
/// drop(queue.try_get().expect("the key is due"));
/// assert!(queue.try_get().is_some(), "the dropped key is due again");
/// ```
#[must_use = "dropping it puts the key back into the queue"]
pub struct Work<K: Eq + Hash + Clone, P: Payload + Clone = ()> {
    queue: WorkQueue<K, P>,
    /// `None` only once the work is done.
    item: Option<Item<K, P>>,
}

impl<K: Eq + Hash + Clone, P: Payload + Clone> Work<K, P> {
    fn item(&self) -> &Item<K, P> {
        self.item.as_ref().expect("`done` consumes the work")
    }

    /// Returns the key.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.item().key
    }

    /// Returns the lanes that are due.
    #[must_use]
    pub fn lanes(&self) -> &Lanes {
        &self.item().lanes
    }

    /// Returns the merged payload of the adds.
    #[must_use]
    pub fn payload(&self) -> &P {
        &self.item().payload
    }

    /// Returns the priority with which the key was dequeued.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.item().priority
    }

    /// Returns how long the key was ready before it was dequeued.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.item().waited
    }

    /// Returns how many times in a row a lane has failed.
    #[must_use]
    pub fn failures(&self, lane: LaneId) -> u32 {
        let mut failures = self.item().failures.iter();
        failures
            .find(|(known, _)| *known == lane)
            .map_or(0, |(_, count)| *count)
    }

    /// Returns the limiter's delay after one more failure of a lane.
    ///
    /// Each call asks the limiter, so a [`TokenBucket`](crate::TokenBucket) loses a token.
    #[must_use]
    pub fn backoff(&self, lane: LaneId) -> Duration {
        let failures = self.failures(lane).saturating_add(1);
        let mut state = self.queue.shared.state.lock();
        state.limiter.delay(failures, now())
    }

    /// Finishes the whole key and resets its failures.
    pub fn done(self) {
        self.done_with([(LaneId::WHOLE, Verdict::Done)]);
    }

    /// Finishes the key with a verdict on each lane.
    ///
    /// Lanes without a verdict are done and keep their failures, as long as the queue still contains the key: a key of
    /// which nothing is due or delayed is removed with its failures.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat_queue::{Add, LaneId, Verdict, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let queue: WorkQueue<&str> = WorkQueue::default();
    /// let (first, second) = (LaneId::new(1), LaneId::new(2));
    /// queue.add("pod-a", Add::now());
    /// let work = queue.try_get().expect("the key is due");
    /// let again = Verdict::Failed { after: Duration::ZERO, payload: (), priority: None };
    /// work.done_with([(first, Verdict::Done), (second, again)]);
    ///
    /// // Only the lane that failed is due again.
    /// let work = queue.try_get().expect("one lane failed");
    /// assert!(work.lanes().contains(second) && !work.lanes().contains(first));
    /// assert_eq!(work.failures(second), 1);
    /// # }
    /// ```
    pub fn done_with(mut self, verdicts: impl IntoIterator<Item = (LaneId, Verdict<P>)>) {
        // Collected while this still owns the key, and before the lock: the iterator may panic, or use the queue.
        let verdicts: Verdicts<P> = verdicts.into_iter().collect();
        let Some(item) = self.item.take() else {
            return;
        };
        let now = now();
        let mut state = self.queue.shared.lock_as_worker();
        state.done(&item, verdicts, now);
        self.queue.shared.wake(state, now);
    }

    /// Finishes the key as [`done_with`](Self::done_with) does, and gets the next one.
    ///
    /// Returns `None` if no key is ready. Both happen under one lock of the queue, so a busy worker pays for one lock
    /// where `done_with` and [`WorkQueue::get`] take two.
    ///
    /// ```
    /// use lariat_queue::{Add, LaneId, Verdict, WorkQueue};
    ///
    /// let queue: WorkQueue<u32> = WorkQueue::default();
    /// queue.add_all((0..3).map(|key| (key, Add::now())));
    /// let (mut next, mut processed) = (queue.try_get(), 0);
    /// while let Some(work) = next {
    ///     processed += 1;
    ///     next = work.done_and_try_get([(LaneId::WHOLE, Verdict::Done)]);
    /// }
    /// assert_eq!(processed, 3);
    /// ```
    #[must_use = "dropping the next work puts its key back into the queue"]
    pub fn done_and_try_get(
        mut self,
        verdicts: impl IntoIterator<Item = (LaneId, Verdict<P>)>,
    ) -> Option<Self> {
        let verdicts: Verdicts<P> = verdicts.into_iter().collect();
        let item = self.item.take()?;
        let now = now();
        let mut state = self.queue.shared.lock_as_worker();
        state.done(&item, verdicts, now);
        self.item = state.get(now);
        self.queue.shared.wake(state, now);
        self.item.is_some().then_some(self)
    }

    /// Counts a failure of the whole key and retries it after the limiter's delay.
    ///
    /// ```
    /// use lariat_queue::{Add, LaneId, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let queue: WorkQueue<&str> = WorkQueue::default();
    /// queue.add("pod-a", Add::now());
    /// queue.get().await.expect("the queue is open").retry();
    ///
    /// let work = queue.get().await.expect("it is retried after 5 ms");
    /// assert_eq!(work.failures(LaneId::WHOLE), 1);
    /// work.done();
    /// # }
    /// ```
    pub fn retry(mut self) {
        let after = self.backoff(LaneId::WHOLE);
        let payload = self
            .item
            .as_mut()
            .map(|item| std::mem::take(&mut item.payload))
            .unwrap_or_default();
        self.done_with([(
            LaneId::WHOLE,
            Verdict::Failed {
                after,
                payload,
                priority: None,
            },
        )]);
    }
}

impl<K: Eq + Hash + Clone, P: Payload + Clone> Drop for Work<K, P> {
    fn drop(&mut self) {
        if let Some(item) = self.item.take() {
            self.queue.shared.change(|state, now| {
                state.show(|| now, || QueueStep::GiveBack { key: &item.key });
                state.core.give_back(item, now);
                state.show_empty(now);
            });
        }
    }
}

impl<K: Eq + Hash + Clone + fmt::Debug, P: Payload + Clone> fmt::Debug for Work<K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work")
            .field("key", self.key())
            .field("lanes", self.lanes())
            .finish_non_exhaustive()
    }
}
