//! The queue's handle for producers and workers, and a key in processing.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::{task, time};

use crate::core::{Item, QueueCore, Verdict};
use crate::limiter::delay_of;
use crate::shared::{SharedQueue, Verdicts, Waiting, now, wake_one};
use crate::{
    Add, LaneId, LaneWaits, Lanes, Payload, Priority, QueueMemory, QueueSnapshot, QueueStats,
    QueuedKey, RateLimiter, WaitsFor,
};

/// A work queue that producers and workers share; clones share one queue.
///
/// Adding a key does not wait for workers. Until a shutdown, a key is delivered at least once after each add, and adds
/// before the delivery merge into it. Create a queue with [`Default`] or a [`builder`](WorkQueue::builder). Delays are
/// measured on tokio's clock, so paused tests control them.
///
/// ```
/// use lariat::queue::{Add, WorkQueue};
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
pub struct WorkQueue<K: Eq + Hash + Clone, P: Payload = ()> {
    /// The queue itself.
    shared: Arc<SharedQueue<K, P>>,
}

impl<K: Eq + Hash + Clone, P: Payload> WorkQueue<K, P> {
    /// Creates a queue around a core.
    pub(crate) fn from_parts(core: QueueCore<K, P>, limiter: Box<dyn RateLimiter>) -> Self {
        Self {
            shared: Arc::new(SharedQueue::new(core, limiter)),
        }
    }

    /// Adds a key; does nothing after a shutdown.
    ///
    /// If the key is already queued, the add merges with it. If it is being processed, it is queued again when its
    /// worker is done. See [`QueueCore::add`] for how delays and priorities combine.
    ///
    /// ```
    /// use lariat::queue::{Add, WorkQueue};
    ///
    /// let queue: WorkQueue<&str> = WorkQueue::default();
    /// queue.add("pod-a", Add::now());
    /// queue.add("pod-a", Add::now());
    /// assert_eq!(queue.len(), 1);
    /// ```
    pub fn add(&self, key: K, add: Add<P>) {
        let hash = self.shared.hasher.hash(&key);
        let mut state = self.shared.state.lock();
        // The clock is read only if the add changes more than the payload.
        if let Some(now) = state.core.add_lazily(key, hash, add, now) {
            wake_one(state, now);
        }
    }

    /// Adds many keys under one lock, in order.
    ///
    /// ```
    /// use lariat::queue::{Add, WorkQueue};
    ///
    /// let queue: WorkQueue<u32> = WorkQueue::default();
    /// queue.add_all((0..3).map(|key| (key, Add::now())));
    /// assert_eq!(queue.len(), 3);
    /// ```
    pub fn add_all(&self, adds: impl IntoIterator<Item = (K, Add<P>)>) {
        // Collected before the lock is taken, because the iterator is user code and may use the queue. The keys are
        // hashed here too: hashing takes as long as the rest of an add.
        let hasher = &self.shared.hasher;
        let hashed = |(key, add): (K, Add<P>)| ((hasher.hash(&key), key), add);
        let adds: Vec<_> = adds.into_iter().map(hashed).collect();
        self.shared.change(|state, now| {
            for ((hash, key), add) in adds {
                state.core.add_lazily(key, hash, add, || now);
            }
        });
    }

    /// Adds a key after the limiter's delay: client-go's `AddRateLimited`.
    ///
    /// Each such add counts as a failure of the key ([`LaneId::WHOLE`]), so the delays grow until a run in which no
    /// lane fails. If `add` has a delay of its own, the shorter of the two counts.
    ///
    /// ```
    /// use lariat::queue::{Add, LaneId, WorkQueue};
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
            let limiter = &mut state.limiter;
            let delay = |failures| delay_of(&mut **limiter, failures, now);
            state.core.add_failed(key, add, delay, now);
        });
    }

    /// Returns how many times in a row a lane of a key has failed.
    ///
    /// Zero if the queue does not contain the key.
    #[must_use]
    pub fn failures(&self, key: &K, lane: LaneId) -> u32 {
        self.shared.state.lock().core.failures(key, lane)
    }

    /// Resets the failures of a lane of a key: client-go's `Forget`.
    ///
    /// [`LaneId::WHOLE`] resets those of all lanes. Nothing is removed from the queue.
    ///
    /// ```
    /// use lariat::queue::{Add, LaneId, WorkQueue};
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
    }

    /// Waits for the next key; returns `None` once the queue has ended.
    ///
    /// The queue has ended when it is draining or shut down and no key is ready or in processing. Until the [`Work`] is
    /// finished or dropped, no other worker gets the same key.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: a key is dequeued and returned in the same poll.
    ///
    /// # Examples
    ///
    /// ```
    /// use lariat::queue::{Add, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let queue: WorkQueue<u32> = WorkQueue::default();
    /// queue.add_all([(1, Add::now()), (2, Add::now())]);
    /// queue.shut_down();
    /// let mut processed = Vec::new();
    /// while let Some(work) = queue.get().await {
    ///     processed.push(*work.key());
    ///     work.done();
    /// }
    /// assert_eq!(processed, [1, 2]);
    /// # }
    /// ```
    pub async fn get(&self) -> Option<Work<K, P>> {
        // A worker that never has to wait would otherwise starve the other tasks of its thread: nothing below yields
        // while keys are ready.
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

    /// Gets a key, or registers the caller as a waiting worker.
    ///
    /// A worker that was woken is unregistered in the same step.
    fn get_or_join(&self, woken: Option<Waiting<'_, K, P>>) -> Attempt<K, P> {
        let now = now();
        let mut state = self.shared.state.lock();
        // Unregistering, looking for a key and registering again happen under one lock. With a gap between them, a key
        // that is added in the gap would wake no worker.
        if let Some(waiting) = woken {
            waiting.leave(&mut state);
        }
        if let Some(item) = state.core.get(now) {
            // `wake_one` wakes one worker, however many keys were added. So each worker that gets a key wakes the next
            // one if there are more, or if the timer has no owner now.
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
        loop {
            let mut state = self.shared.state.lock();
            if let Some(item) = state.core.get(now) {
                return Some(self.work(item));
            }
            // Many delays have ended, and those that one call releases are all of keys in processing. The lock is
            // released before the next of them.
            state.core.next_deadline().filter(|next| *next <= now)?;
        }
    }

    /// Wraps a dequeued key, so that dropping it returns it.
    fn work(&self, item: Item<K, P>) -> Work<K, P> {
        Work {
            queue: self.clone(),
            item: Some(item),
        }
    }

    /// Limits the queue to the keys that are due now, until [`resume`](Self::resume).
    ///
    /// Keys that become due later are accepted and deferred until the drain ends. [`get`](Self::get) returns `None`
    /// once the keys that were due have been processed.
    ///
    /// ```
    /// use lariat::queue::{Add, WorkQueue};
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
        self.shared.change(|state, now| state.core.drain(now));
    }

    /// Ends a drain and queues the keys that became due during it, in that order.
    pub fn resume(&self) {
        self.shared.change(|state, now| state.core.resume(now));
    }

    /// Sets how many calls of a lane may run at once; zero means one.
    ///
    /// Workers ask with [`Work::admit`]. Further keys wait in the queue, in its order: by priority, and groups in turn.
    /// Low priorities have the share of [`Ageing`](crate::Ageing) from the first turn on, so a key that joins `n` others
    /// has its turn after at most `share × (n + 1)`. Call it before the first call of the lane.
    ///
    /// ```
    /// use lariat::queue::{Add, LaneId, WaitsFor, WorkQueue};
    ///
    /// let (queue, lane) = (WorkQueue::<&str>::default(), LaneId::new(1));
    /// queue.limit(lane, 1);
    /// queue.add("pod-a", Add::now());
    /// queue.add("pod-b", Add::now());
    /// let (one, other) = (queue.try_get().expect("due"), queue.try_get().expect("due"));
    /// assert_eq!(one.admit(lane, || ()), None);
    /// assert_eq!(other.admit(lane, || ()), Some(WaitsFor::Limit));
    /// other.done();
    /// assert_eq!(queue.waits(lane).keys, 1);
    ///
    /// queue.leave(lane);
    /// assert_eq!(*queue.try_get().expect("its turn has come").key(), "pod-b");
    /// ```
    pub fn limit(&self, lane: LaneId, most: usize) {
        self.shared.state.lock().core.limit(lane, most);
    }

    /// Lets no call of a lane begin until [`open`](Self::open); returns whether that is new.
    ///
    /// The keys wait in the queue, without a worker. An admitted call goes on. A lane may be closed for two reasons at
    /// once; it opens when both have ended.
    #[allow(
        clippy::must_use_candidate,
        reason = "it is called for what it does; the result is for logs"
    )]
    pub fn close(&self, lane: LaneId, why: WaitsFor) -> bool {
        self.shared.state.lock().core.close(lane, why)
    }

    /// Ends what [`close`](Self::close) began, and makes the waiting keys due.
    ///
    /// Returns how many there were, or `None` if the lane was not closed for this reason. During a drain they become due
    /// at its end.
    #[allow(
        clippy::must_use_candidate,
        reason = "it is called for what it does; the result is for logs"
    )]
    pub fn open(&self, lane: LaneId, why: WaitsFor) -> Option<usize> {
        self.shared
            .change(|state, now| state.core.open(lane, why, now))
    }

    /// Ends an admitted call of a lane that has a [`limit`](Self::limit).
    ///
    /// The next key in line becomes due.
    pub fn leave(&self, lane: LaneId) {
        self.shared.change(|state, now| state.core.leave(lane, now));
    }

    /// Forgets the limit of a lane, and whether it is closed.
    ///
    /// The keys that wait for it become due.
    pub fn forget_lane(&self, lane: LaneId) {
        self.shared
            .change(|state, now| state.core.forget_lane(lane, now));
    }

    /// Returns how many keys wait for a lane, and whether it is closed.
    #[must_use]
    pub fn waits(&self, lane: LaneId) -> LaneWaits {
        self.shared.state.lock().core.waits(lane)
    }

    /// Refuses further adds and drops delayed and waiting keys: client-go's `ShutDown`.
    ///
    /// Workers process the keys that are ready; after that, [`get`](Self::get) returns `None`.
    ///
    /// ```
    /// use lariat::queue::{Add, WorkQueue};
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
        self.end(QueueCore::shut_down);
    }

    /// Refuses further adds and drops all keys: controller-runtime's `ShutDown`.
    ///
    /// Keys in processing are dropped when their workers return them, also after [`reopen`](Self::reopen); what is
    /// added to them then stays. Once all have been returned, [`get`](Self::get) returns `None`.
    pub fn shut_down_now(&self) {
        self.end(QueueCore::shut_down_now);
    }

    /// Shuts down and waits until all ready keys have been processed.
    ///
    /// This is client-go's `ShutDownWithDrain`. A later shutdown, or [`reopen`](Self::reopen), ends the wait
    /// immediately.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends only the wait; the queue remains shut down.
    ///
    /// # Examples
    ///
    /// ```
    /// use lariat::queue::{Add, WorkQueue};
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
    pub async fn shut_down_with_drain(&self) {
        let own = self.end(QueueCore::shut_down);
        self.shared.wait_for(own).await;
    }

    /// Accepts adds again after a shutdown.
    ///
    /// A call of [`shut_down_with_drain`](Self::shut_down_with_drain) that still waits returns.
    pub fn reopen(&self) {
        self.end(QueueCore::reopen);
    }

    /// Shuts down or reopens the queue; returns the number of this change.
    fn end(&self, how: fn(&mut QueueCore<K, P>)) -> u64 {
        let number = self.shared.change(|state, _| {
            how(&mut state.core);
            state.shutdowns += 1;
            state.shutdowns
        });
        // Also without an end of the queue: a caller that waits for an earlier shutdown is to return now.
        self.shared.ended.notify_waiters();
        number
    }

    /// Returns the number of ready keys.
    ///
    /// Delayed keys and keys in processing do not count.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.state.lock().core.len()
    }

    /// Returns whether no key is ready; keys may be delayed or in processing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the ready keys, and those that wait at a limit.
    ///
    /// The ready ones come first, in the order of the next dequeues, ignoring ageing.
    #[must_use]
    pub fn due_keys(&self) -> Vec<K> {
        self.shared.state.lock().core.due_keys()
    }

    /// Returns the number of [`due_keys`](Self::due_keys).
    #[must_use]
    pub fn due(&self) -> usize {
        self.shared.state.lock().core.due()
    }

    /// Returns a copy of up to `limit` keys with their states, for diagnostics.
    ///
    /// Ready keys come first, in the order in which they will be dequeued if no key ages meanwhile. Keys in processing
    /// follow, then deferred and waiting keys, then delayed keys by time.
    ///
    /// The queue is not changed. The time under its lock depends on `limit`, on the number of keys in processing and,
    /// with fair queuing, on the number of groups. It does not depend on the length of the queue: at most 16,384 ready
    /// positions and as many deadlines are read. Keys beyond that may be missing even if `limit` is not reached.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::queue::{Add, KeyState, WorkQueue};
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

    /// Returns the state of a key; `None` if the queue does not contain it.
    ///
    /// The cost is constant.
    #[must_use]
    pub fn queued(&self, key: &K) -> Option<QueuedKey<K>> {
        let now = now();
        self.shared.state.lock().core.queued(key, now)
    }

    /// Returns the sizes of the queue's internal structures, at constant cost.
    ///
    /// For leak checks and gauges: each size has an upper bound.
    ///
    /// ```
    /// use lariat::queue::{Add, WorkQueue};
    ///
    /// let queue: WorkQueue<&str> = WorkQueue::default();
    /// queue.add("pod-a", Add::now());
    /// assert!(queue.memory().iter().all(|structure| structure.entries <= structure.bound));
    /// ```
    #[must_use]
    pub fn memory(&self) -> [QueueMemory; 3] {
        self.shared.state.lock().core.memory()
    }

    /// Returns the metrics of the queue at this moment.
    #[must_use]
    pub fn stats(&self) -> QueueStats {
        let now = now();
        let mut state = self.shared.state.lock();
        state.core.stats(now)
    }
}

impl<K: Eq + Hash + Clone, P: Payload> Clone for WorkQueue<K, P> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<K: Eq + Hash + Clone, P: Payload> fmt::Debug for WorkQueue<K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkQueue")
            .field("stats", &self.stats())
            .finish()
    }
}

/// The result of [`WorkQueue::get_or_join`].
enum Attempt<K, P> {
    /// A key was ready.
    Got(Item<K, P>),
    /// The queue has ended.
    Finished,
    /// The caller is registered; with a deadline, it owns the timer.
    Wait {
        /// The number of the waiting worker.
        number: u32,
        /// When the caller must look again, even if it is not woken.
        deadline: Option<Instant>,
    },
}

/// A key that a worker is processing; no other worker gets it meanwhile.
///
/// Finish it with [`done`](Self::done), [`done_with`](Self::done_with) or [`retry`](Self::retry). If it is dropped
/// instead, as when a worker panics or is cancelled, the key is returned to the queue: the same lanes are due again,
/// and no failure is counted.
///
/// ```
/// use lariat::queue::{Add, WorkQueue};
///
/// let queue: WorkQueue<&str> = WorkQueue::default();
/// queue.add("pod-a", Add::now());
/// drop(queue.try_get().expect("the key is due"));
/// assert!(queue.try_get().is_some(), "the dropped key is due again");
/// ```
#[must_use = "dropping it puts the key back into the queue"]
pub struct Work<K: Eq + Hash + Clone, P: Payload = ()> {
    /// The queue that the key is returned to.
    queue: WorkQueue<K, P>,
    /// The dequeued key; `None` only once the work is finished.
    item: Option<Item<K, P>>,
}

impl<K: Eq + Hash + Clone, P: Payload> Work<K, P> {
    /// Returns the dequeued key.
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

    /// Returns the merged payloads of the adds.
    #[must_use]
    pub fn payload(&self) -> &P {
        &self.item().payload
    }

    /// Returns the priority with which the key was dequeued.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.item().priority
    }

    /// Returns how long the key was due before it was dequeued.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.item().waited
    }

    /// Returns how many times in a row a lane had failed before this run.
    #[must_use]
    pub fn failures(&self, lane: LaneId) -> u32 {
        let mut failures = self.item().failures.iter();
        failures
            .find(|(known, _)| *known == lane)
            .map_or(0, |(_, count)| *count)
    }

    /// Returns the limiter's delay after one more failure of a lane.
    ///
    /// Each call asks the limiter, so a [`TokenBucket`](crate::TokenBucket) loses a token. Use it for the delay of
    /// [`Verdict::Failed`].
    ///
    /// # Panics
    ///
    /// If the limiter does.
    ///
    /// ```
    /// use lariat::queue::{Add, LaneId, Verdict, WorkQueue};
    ///
    /// let queue: WorkQueue<&str> = WorkQueue::default();
    /// queue.add("pod-a", Add::now());
    /// let (work, lane) = (queue.try_get().expect("the key is due"), LaneId::new(1));
    /// let after = work.backoff(lane);
    /// work.done_with([(lane, Verdict::Failed { after, payload: (), priority: None })]);
    /// assert_eq!(queue.failures(&"pod-a", lane), 1);
    /// ```
    #[must_use]
    pub fn backoff(&self, lane: LaneId) -> Duration {
        let failures = self.failures(lane).saturating_add(1);
        let mut state = self.queue.shared.state.lock();
        state.limiter.delay(failures, now())
    }

    /// Admits a call of a lane, or lets the lane wait in the queue.
    ///
    /// Returns the reason for which it waits.
    ///
    /// If it waits, do not call it: the lane becomes due again, with `payload`, which is called under the lock of the
    /// queue and must not use it. Otherwise, and if the lane has a [`limit`](WorkQueue::limit), end the call with
    /// [`WorkQueue::leave`].
    #[must_use]
    pub fn admit(&self, lane: LaneId, payload: impl FnOnce() -> P) -> Option<WaitsFor> {
        let (item, now) = (self.item(), now());
        let later = || (item.priority, payload());
        let mut state = self.queue.shared.state.lock();
        state.core.admit(item.slot, lane, later, now)
    }

    /// Closes a lane, and lets it wait; returns whether it was open for this reason.
    ///
    /// For a call that was admitted, and finds that it cannot go on before [`WorkQueue::open`].
    pub fn wait(&self, lane: LaneId, why: WaitsFor, payload: P) -> bool {
        let (item, now) = (self.item(), now());
        let mut state = self.queue.shared.state.lock();
        let is_new = state.core.close(lane, why);
        let later = (item.priority, payload);
        state.core.wait(item.slot, lane, later, now);
        is_new
    }

    /// Finishes all lanes of the key and resets their failures.
    pub fn done(self) {
        self.done_with([(LaneId::WHOLE, Verdict::Done)]);
    }

    /// Finishes the key with a verdict on each lane.
    ///
    /// Lanes without a verdict count as done and keep their failures as long as the queue contains the key. A key of
    /// which nothing is due or delayed is removed with its failures.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::queue::{Add, LaneId, Verdict, WorkQueue};
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
        // The iterator is user code: it may panic, and then the drop of `self` must still return the key; and it may
        // use the queue, which is locked below.
        let verdicts: Verdicts<P> = verdicts.into_iter().collect();
        let Some(item) = self.item.take() else {
            return;
        };
        let now = now();
        let mut state = self.queue.shared.state.lock();
        state.core.done(item.slot, item.priority, verdicts, now);
        self.queue.shared.wake(state, now);
    }

    /// Finishes the key as [`done_with`](Self::done_with) does, and gets the next key.
    ///
    /// Returns `None` if no key is ready. Both happen under one lock, so a busy worker takes one lock per key rather
    /// than two.
    ///
    /// ```
    /// use lariat::queue::{Add, LaneId, Verdict, WorkQueue};
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
        let mut state = self.queue.shared.state.lock();
        state.core.done(item.slot, item.priority, verdicts, now);
        self.item = state.core.get(now);
        self.queue.shared.wake(state, now);
        self.item.is_some().then_some(self)
    }

    /// Counts a failure of the whole key and retries it after the limiter's delay.
    ///
    /// The payload is kept for the retry.
    ///
    /// ```
    /// use lariat::queue::{Add, LaneId, WorkQueue};
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

impl<K: Eq + Hash + Clone, P: Payload> Drop for Work<K, P> {
    fn drop(&mut self) {
        if let Some(item) = self.item.take() {
            self.queue.shared.change(|state, now| {
                state.core.give_back(item, now);
            });
        }
    }
}

impl<K: Eq + Hash + Clone + fmt::Debug, P: Payload> fmt::Debug for Work<K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work")
            .field("key", self.key())
            .field("lanes", self.lanes())
            .finish_non_exhaustive()
    }
}
