//! What producers and workers call: the handle of a queue, and a key that is with a worker.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::{task, time};

use crate::core::{Item, QueueCore, Verdict};
use crate::shared::{SharedQueue, Verdicts, Waiting, now, wake_one};
use crate::{
    Add, LaneId, Lanes, Payload, Priority, QueueMemory, QueueStats, RateLimiter, QueueStep, Tap,
};

/// A work queue shared by producers and workers; a clone is the same queue.
///
/// Adding never waits. Time is tokio's clock.
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

    /// Adds a key; a queue that is shutting down ignores it.
    pub fn add(&self, key: K, add: Add<P>) {
        let hash = self.shared.hasher.hash(&key);
        let mut state = self.shared.lock_as_producer();
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
    pub fn add_all(&self, adds: impl IntoIterator<Item = (K, Add<P>)>) {
        // Collected before the lock, because what makes them may use the queue; so are the hashes, which take as
        // long as the rest of an add.
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
        state.show(now, || QueueStep::Forget { key, lane });
    }

    /// Waits for the next key; `None` once the queue is drained or has shut down, nothing is ready and
    /// no key is with a worker.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: a key is dequeued and returned in the same step.
    pub async fn get(&self) -> Option<Work<K, P>> {
        // Workers that never wait would otherwise keep the thread from all other tasks.
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

    /// Gets a key, or becomes a waiter for one.
    ///
    /// A waiter that was woken leaves in the same step.
    fn get_or_join(&self, woken: Option<Waiting<'_, K, P>>) -> Attempt<K, P> {
        let now = now();
        let mut state = self.shared.lock_as_worker();
        if let Some(waiting) = woken {
            waiting.leave(&mut state);
        }
        if let Some(item) = state.get(now) {
            // Wake-ups merge, so a worker that gets one key wakes the next, if there are more keys or no worker has
            // the timer.
            wake_one(state, now);
            return Attempt::Got(item);
        }
        if state.core.is_finished() {
            return Attempt::Finished;
        }
        let (number, deadline) = state.join();
        Attempt::Wait { number, deadline }
    }

    /// Gets the next key if there is one now.
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

    /// Keeps what comes due from now on for later: until [`resume`](Self::resume), only what is due at
    /// this moment is dequeued, and [`get`](Self::get) returns `None` once that is done.
    pub fn drain(&self) {
        self.shared.change(|state, now| {
            state.core.drain(now);
            state.show(|| now, || QueueStep::Drain);
        });
    }

    /// Ends a drain; what came due meanwhile goes in line, in the order in which it came.
    pub fn resume(&self) {
        self.shared.change(|state, now| {
            state.core.resume();
            state.show(|| now, || QueueStep::Resume);
        });
    }

    /// Refuses further adds and drops what is delayed; workers drain what is ready, then end.
    pub fn shut_down(&self) {
        self.end(QueueStep::ShutDown { now: false }, QueueCore::shut_down);
    }

    /// Refuses further adds and drops what is delayed or ready; what is with workers is forgotten when
    /// it comes back, and then they end.
    pub fn shut_down_now(&self) {
        self.end(QueueStep::ShutDown { now: true }, QueueCore::shut_down_now);
    }

    /// Shuts down, and waits until everything that was ready has been dequeued and every key is back
    /// from its worker; a later shutdown ends the wait at once.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the shutdown back; only the wait is lost.
    pub async fn shut_down_with_drain(&self) {
        let own = self.end(QueueStep::ShutDown { now: false }, QueueCore::shut_down);
        self.shared.wait_for(own).await;
    }

    /// Accepts adds again after a shutdown; whoever waits for its drain waits no longer.
    pub fn reopen(&self) {
        self.end(QueueStep::Reopen, QueueCore::reopen);
    }

    /// Shuts down in some way, or takes that back; returns the number of this step.
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

/// What came of asking for a key.
enum Attempt<K, P> {
    Got(Item<K, P>),
    Finished,
    /// The caller is a waiter, and has the timer if it is given a deadline.
    Wait {
        number: u32,
        deadline: Option<Instant>,
    },
}

/// A key that a worker processes; no other worker gets it until this is done or dropped.
///
/// Dropping it without an outcome (a worker that panicked or was cancelled) gives the key back, with
/// the same lanes due and without counting a failure.
#[must_use = "dropping it puts the key back into the queue"]
pub struct Work<K: Eq + Hash + Clone, P: Payload + Clone = ()> {
    queue: WorkQueue<K, P>,
    /// None only after it was done.
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

    /// Returns what travelled with the key.
    #[must_use]
    pub fn payload(&self) -> &P {
        &self.item().payload
    }

    /// Returns the priority under which the key was dequeued.
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

    /// Returns the delay the queue's limiter asks for after one more failure of a lane.
    #[must_use]
    pub fn backoff(&self, lane: LaneId) -> Duration {
        let failures = self.failures(lane).saturating_add(1);
        let mut state = self.queue.shared.state.lock();
        state.limiter.delay(failures, now())
    }

    /// Gives the key back as done; all its failures are forgotten.
    pub fn done(self) {
        self.done_with([(LaneId::WHOLE, Verdict::Done)]);
    }

    /// Gives the key back with a verdict on each lane.
    ///
    /// Lanes without a verdict are done, with their failures left as they are, as long as something of
    /// the key is left in the queue: a key of which nothing is has no memory.
    pub fn done_with(mut self, verdicts: impl IntoIterator<Item = (LaneId, Verdict<P>)>) {
        // Collected while this still has the key, and before the lock: what makes them may panic, or use the queue.
        let verdicts: Verdicts<P> = verdicts.into_iter().collect();
        let Some(item) = self.item.take() else {
            return;
        };
        let now = now();
        let mut state = self.queue.shared.lock_as_worker();
        state.done(&item, verdicts, now);
        self.queue.shared.wake(state, now);
    }

    /// Gives the key back as [`done_with`](Self::done_with) does, and gets the next one if there is one now.
    ///
    /// Both happen under one lock of the queue, so a busy worker pays for one where `done_with` and
    /// [`WorkQueue::get`] take two.
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

    /// Gives the key back to be tried again as a whole after the limiter's delay.
    pub fn retry(mut self) {
        let after = self.backoff(LaneId::WHOLE);
        let payload = self
            .item
            .as_mut()
            .map(|item| std::mem::take(&mut item.payload));
        let payload = payload.unwrap_or_default();
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
