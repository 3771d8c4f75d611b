//! What callers do with a queue: add, get, done, and the metrics.

use std::fmt;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::clock::Clock;
use super::delays::Waiting;
use super::entry::{Delayed, KeyEntry, Phase, Processing};
use super::index::{Hashed, Hasher, Index};
use super::ready::{Ageing, Ready};
use crate::stats::Counters;
use crate::{Add, LaneId, Lanes, Payload, Priority, QueueMemory, QueueStats};

/// The state machine of a work queue.
///
/// Each key has at most one entry, which is in one of four phases: *ready* (in line), *processing* (with a worker),
/// *delayed* (nothing is due), or, during a drain, *deferred* (due, but kept for after the drain). Every call takes the
/// present time, which must not run backwards, and costs amortised constant time, or logarithmic time for a delay.
///
/// Prefer [`WorkQueue`](crate::WorkQueue), unless you drive time yourself.
///
/// ```
/// use std::time::{Duration, Instant};
/// use lariat_queue::{Add, Ageing, QueueCore};
///
/// let start = Instant::now();
/// let mut queue: QueueCore<&str, ()> = QueueCore::new(Ageing::default());
/// queue.add("a", Add::after(Duration::from_secs(5)), start);
/// assert!(queue.get(start).is_none());
/// let later = queue.next_deadline().unwrap();
/// assert_eq!(later, start + Duration::from_secs(5));
/// assert_eq!(queue.get(later).unwrap().key, "a");
/// ```
pub struct QueueCore<K, P> {
    pub(super) clock: Clock,
    pub(super) entries: Index<K, KeyEntry<P>>,
    /// The tickets of all entries in phase `Ready`; there may be stale ones.
    pub(super) ready: Ready,
    /// The deadlines of all delayed lanes; there may be stale ones.
    pub(super) waiting: Waiting,
    /// The entries in phase `Processing`.
    pub(super) processing: Processing,
    /// The entries in phase `Deferred`, in the order in which they became due.
    pub(super) deferred: Vec<u32>,
    /// Returns the group of a key; without it, all keys belong to one group.
    pub(super) group: Option<Group<K>>,
    pub(super) draining: bool,
    pub(super) shutting_down: bool,
    /// Shut down without a drain: keys that workers give back are removed too.
    pub(super) dropping: bool,
    /// How many further dequeues have been prefetched.
    is_read_ahead: usize,
    pub(super) counters: Counters,
    /// How many delays have ended since the queue was created.
    pub(super) released: u64,
}

/// How many delays may end in one call of a worker.
///
/// Bounded, so that many delays that end together do not keep the lock from all others.
const MOST_RELEASED: usize = 256;

/// How many dequeues are prefetched together.
const READ_AHEAD: usize = 8;

/// With fewer keys than this, all of them are in the processor's caches.
const READ_AHEAD_FROM: usize = 16 * 1024;

/// Returns the group of a key.
pub(crate) type Group<K> = Box<dyn Fn(&K) -> u64 + Send + Sync>;

impl<K: Eq + Hash + Clone, P: Payload + Clone> QueueCore<K, P> {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(ageing: Ageing) -> Self {
        Self {
            clock: Clock::default(),
            entries: Index::new(),
            ready: Ready::new(ageing, false),
            waiting: Waiting::new(),
            processing: Processing::default(),
            deferred: Vec::new(),
            group: None,
            draining: false,
            shutting_down: false,
            dropping: false,
            is_read_ahead: 0,
            counters: Counters::default(),
            released: 0,
        }
    }

    /// Creates an empty queue with fair queuing between groups of keys.
    ///
    /// Within a priority, groups are served round robin. With `g` groups in line, a key is dequeued after at most `g ×
    /// (k + 1)` keys of its priority, where `k` keys of its own group are ahead of it, however many keys the other
    /// groups have. A key for which `group` panics counts as one of group 0.
    #[must_use]
    pub fn fair(ageing: Ageing, group: impl Fn(&K) -> u64 + Send + Sync + 'static) -> Self {
        Self {
            ready: Ready::new(ageing, true),
            group: Some(Box::new(group)),
            ..Self::new(ageing)
        }
    }

    /// Adds a key. A queue that is shutting down ignores it.
    ///
    /// Lanes that are due stay due (ready keys beat waiting ones, unless the delay is [`kept`](Add::kept)). Of two
    /// delays of one lane the earlier wins. Of two priorities the higher wins, and the key moves to the end of its new
    /// level.
    pub fn add(&mut self, key: K, add: Add<P>, now: Instant) {
        let hash = self.hasher().hash(&key);
        self.add_lazily(key, hash, add, || now);
    }

    pub(crate) fn hasher(&self) -> &Hasher {
        self.entries.hasher()
    }

    /// Adds a key and takes the time only if it matters.
    ///
    /// Returns that time if a worker may have to be woken.
    pub(crate) fn add_lazily(
        &mut self,
        key: K,
        hash: Hashed,
        add: Add<P>,
        now: impl FnOnce() -> Instant,
    ) -> Option<Instant> {
        // As in client-go, adds during a shutdown are ignored, so that a drain ends.
        if self.shutting_down || add.lanes.is_empty() {
            return None;
        }
        let slot = self.entries.find_or_insert(key, hash, KeyEntry::default);
        let entry = &mut self.entries[slot].value;
        // The common case, an add that merges with an earlier one, costs no look at the clock.
        if add.after.is_zero() && add.failures == 0 && entry.covers(&add) {
            entry.payload.merge(add.payload);
            return None;
        }
        let now = now();
        self.put(slot, add, now);
        Some(now)
    }

    fn put(&mut self, slot: u32, add: Add<P>, now: Instant) {
        let now = self.clock.stamp(now);
        if add.failures > 0 {
            let entry = &mut self.entries[slot].value;
            let lanes = add.lanes.ids();
            lanes.for_each(|lane| entry.count_at_least(lane, add.failures));
        }
        if add.after.is_zero() {
            self.note_dirty(slot, now);
            let entry = &mut self.entries[slot].value;
            let early = entry.mark_dirty(&add.lanes, add.priority, add.payload);
            self.note_early(early);
            return self.line_up(slot);
        }
        // While all workers are busy, expired delays stay in the heap. A delay that has ended is due; it must not count
        // as the earlier one of two delays, or the later one would end with it.
        self.release_expired(now);
        for lane in add.lanes.ids() {
            let delayed = Delayed {
                lane,
                kept: add.kept,
                deadline: self.waiting.deadline(Clock::later(now, add.after)),
                priority: add.priority,
                payload: add.payload.clone(),
            };
            self.delay(slot, delayed);
        }
    }

    /// Adds a key after a delay that grows with the number of such adds.
    ///
    /// They are counted for the key as a whole ([`LaneId::WHOLE`]), apart from the failures of its lanes, and reset by
    /// the next run in which no lane fails. `delay` returns the delay after that many adds. If the add has a delay of
    /// its own, the shorter of the two counts (controller-runtime's rule). A queue that is shutting down ignores the
    /// add.
    pub fn add_failed(
        &mut self,
        key: K,
        add: Add<P>,
        delay: impl FnOnce(u32) -> Duration,
        now: Instant,
    ) {
        if self.shutting_down || add.lanes.is_empty() {
            return;
        }
        let hash = self.hasher().hash(&key);
        let slot = self.entries.find_or_insert(key, hash, KeyEntry::default);
        let entry = &mut self.entries[slot].value;
        // Counted before the limiter is asked: the first failure is number 1.
        let delay = delay(entry.count_failure(LaneId::WHOLE));
        let after = if add.after.is_zero() {
            delay
        } else {
            delay.min(add.after)
        };
        self.counters.retries += 1;
        self.put(slot, Add { after, ..add }, now);
    }

    /// Returns how many times in a row a lane of a key has failed.
    #[must_use]
    pub fn failures(&self, key: &K, lane: LaneId) -> u32 {
        let slot = self.entries.find(key);
        slot.map_or(0, |slot| self.entries[slot].value.failures_of(lane))
    }

    /// Resets the failures of a lane of a key.
    ///
    /// [`LaneId::WHOLE`] stands for all lanes of the key.
    pub fn forget(&mut self, key: &K, lane: LaneId) {
        if let Some(slot) = self.entries.find(key) {
            self.entries[slot].value.forget(lane);
        }
    }

    /// Dequeues the next ready key; during a drain, the next that was due before it.
    ///
    /// At most 256 ended delays are queued per call, and more with later calls. Each is queued in the order of its
    /// time, but a key that is added meanwhile may be dequeued before the last of them.
    pub fn get(&mut self, now: Instant) -> Option<Item<K, P>> {
        let now = self.clock.stamp(now);
        self.release_at_most(MOST_RELEASED, now);
        // Expired delays are in line by now, so that they compete by priority with what was added for now.
        let slot = self.ready.pop(&self.entries, now)?;
        self.read_ahead();
        let slotted = &mut self.entries[slot];
        let entry = &mut slotted.value;
        // From here on `line_up` leaves the entry alone, so no other worker can get the key.
        entry.phase = Phase::Processing(now);
        entry.promised = false;
        self.processing.begin(slot, now);
        let waited = now.since(entry.since);
        self.counters.dequeued(waited);
        Some(Item {
            slot,
            key: slotted.key.clone(),
            lanes: std::mem::replace(&mut entry.dirty, Lanes::none()),
            payload: std::mem::take(&mut entry.payload),
            priority: entry.priority,
            waited,
            failures: entry.failures().into(),
        })
    }

    /// Prefetches the memory of the next dequeues and of the returns of their keys.
    ///
    /// Several at a time, so that the processor waits once for all of them.
    fn read_ahead(&mut self) {
        if self.entries.len() < READ_AHEAD_FROM {
            return;
        }
        if self.is_read_ahead > 0 {
            self.is_read_ahead -= 1;
            return;
        }
        let slots = self.ready.upcoming().take(READ_AHEAD);
        self.is_read_ahead = slots.map(|slot| self.entries.prefetch(slot)).count();
    }

    /// Takes a key back from its worker, with a verdict on each of its lanes.
    ///
    /// Lanes without a verdict count as [`Verdict::Done`] but keep their failures. If there are verdicts and none is a
    /// failure, the count of [`add_failed`](Self::add_failed) for the key as a whole is reset. A key that became due
    /// meanwhile goes to the end of the line.
    ///
    /// # Panics
    ///
    /// If `slot` is not with a worker.
    pub fn done(
        &mut self,
        slot: u32,
        priority: Priority,
        verdicts: impl IntoIterator<Item = (LaneId, Verdict<P>)>,
        now: Instant,
    ) {
        let now = self.clock.stamp(now);
        self.release(slot, now);
        // Payloads of retries count as older than those of adds during the run, so they are merged first.
        let meanwhile = std::mem::take(&mut self.entries[slot].value.payload);
        // Without any verdict the count of rate-limited adds stays as it is.
        let (mut judged, mut failed) = (false, false);
        for (lane, verdict) in verdicts {
            judged = true;
            failed |= matches!(verdict, Verdict::Failed { .. } | Verdict::Postponed { .. });
            self.judge(slot, lane, verdict, priority, now);
        }
        if judged && !failed {
            self.entries[slot].value.forget_exactly(LaneId::WHOLE);
        }
        self.entries[slot].value.payload.merge(meanwhile);
        self.settle(slot);
    }

    /// Takes a key back from a worker that did not process it.
    ///
    /// All of it is due again, as part of the drain if there is one.
    ///
    /// # Panics
    ///
    /// If the slot is not with a worker.
    pub fn give_back(&mut self, taken: Item<K, P>, now: Instant) {
        let (slot, now) = (taken.slot, self.clock.stamp(now));
        self.release(slot, now);
        // After `shut_down_now` there is nothing to be due again.
        if self.dropping {
            return self.settle(slot);
        }
        self.note_dirty(slot, now);
        let entry = &mut self.entries[slot].value;
        let meanwhile = std::mem::replace(&mut entry.payload, taken.payload);
        entry.payload.merge(meanwhile);
        entry.priority = entry.urgency().max(taken.priority);
        entry.dirty.merge(&taken.lanes);
        entry.promised = true;
        self.settle(slot);
    }

    /// Returns the time at which [`get`](Self::get) should be called again.
    ///
    /// It is the next deadline of a delayed lane, or an earlier one whose lane has run meanwhile; `None` if no lane is
    /// delayed, and during a drain.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let next = self.waiting.next().filter(|_| !self.draining)?;
        self.clock.instant(next)
    }

    /// Returns whether [`get`](Self::get) would return a key now.
    pub fn has_ready(&mut self, now: Instant) -> bool {
        // Delays are looked at only if nothing is ready: the answer is the same, and the common case is cheap.
        if self.ready.is_empty() {
            let now = self.clock.stamp(now);
            self.release_expired(now);
        }
        !self.ready.is_empty()
    }

    /// Returns how many keys are in line.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ready.len()
    }

    /// Returns whether no key is in line; keys may be delayed or being processed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Returns how many delays have ended so far.
    pub(crate) fn released(&self) -> u64 {
        self.released
    }

    /// Returns whether nothing is left in the queue, so that it behaves like a new one.
    pub(crate) fn is_like_new(&self) -> bool {
        let is_clear = || self.group.is_none() || self.ready.is_clear();
        let is_ending = self.draining || self.shutting_down;
        self.entries.len() == 0 && !is_ending && is_clear()
    }

    /// Returns the group of a key, in a queue with fair queuing.
    pub(crate) fn group_of(&self, key: &K) -> Option<u64> {
        let group = self.group.as_ref()?;
        Some(group_of(Some(group), key))
    }

    /// Returns the keys that are ready.
    ///
    /// Their order has no meaning; the same calls lead to the same order.
    #[must_use]
    pub fn ready_keys(&self) -> Vec<K> {
        let slotted = self.entries.slots().map(|slot| &self.entries[slot]);
        let ready = slotted.filter(|slotted| matches!(slotted.value.phase, Phase::Ready(_)));
        ready.map(|slotted| slotted.key.clone()).collect()
    }

    /// Returns the sizes of the queue's structures, at constant cost.
    #[must_use]
    pub fn memory(&self) -> [QueueMemory; 4] {
        let (ready, processing, waiting) = (&self.ready, &self.processing, &self.waiting);
        // Every key that is only delayed has a deadline.
        let keys = ready.len() + processing.count() + self.deferred.len() + waiting.len();
        let of = QueueMemory::new;
        [
            of("queue keys", self.entries.len(), keys),
            of("queue tickets", ready.tickets(), ready.most_tickets()),
            of("queue deadlines", waiting.len(), waiting.most()),
            of(
                "queue processing",
                processing.places(),
                processing.most_places(),
            ),
        ]
    }

    /// Returns the metrics of the queue at this moment, at the cost of copying them.
    #[must_use]
    pub fn stats(&mut self, now: Instant) -> QueueStats {
        let now = self.clock.stamp(now);
        self.release_expired(now);
        let processing = self.processing.count();
        QueueStats {
            delayed: self.entries.len() - self.ready.len() - processing,
            processing,
            unfinished: self.processing.unfinished(now),
            longest: self.processing.longest(now),
            depths: self.depths(),
            ..self.counters.snapshot()
        }
    }

    /// Returns, by level, how many keys have something due that no worker has.
    fn depths(&self) -> [usize; Priority::LEVELS] {
        let mut depths = self.ready.depths();
        if self.counters.dirty > 0 {
            let processing = self.processing.slots(&self.entries);
            let entries = processing.iter().map(|slot| &self.entries[*slot].value);
            for entry in entries.filter(|entry| !entry.dirty.is_empty()) {
                depths[entry.priority.level()] += 1;
            }
        }
        depths
    }
}

/// A dequeued key.
#[derive(Debug)]
pub struct Item<K, P> {
    /// Identifies the key for [`QueueCore::done`].
    pub slot: u32,
    /// The key.
    pub key: K,
    /// The lanes that are due.
    pub lanes: Lanes,
    /// The merged payloads.
    pub payload: P,
    /// The highest priority of the adds.
    pub priority: Priority,
    /// How long the key was ready before it was dequeued.
    pub waited: Duration,
    /// Failures in a row, for the lanes that have any.
    pub failures: Box<[(LaneId, u32)]>,
}

/// The result of processing one lane.
///
/// ```
/// use std::time::Duration;
/// use lariat_queue::{Add, LaneId, Verdict, WorkQueue};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let queue: WorkQueue<&str> = WorkQueue::default();
/// queue.add("pod-a", Add::now());
/// let work = queue.try_get().expect("the key is due");
/// let again = Verdict::Again { after: Duration::ZERO, payload: (), priority: None };
/// work.done_with([(LaneId::new(1), again)]);
/// assert!(queue.try_get().is_some());
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict<P> {
    /// The lane is done; its failures are reset.
    Done,
    /// The lane asks for another run; its failures are reset.
    Again {
        /// The delay; zero queues the key immediately, behind the ready ones.
        after: Duration,
        /// The payload of the next run.
        payload: P,
        /// The priority of the next run; `None` keeps that of this run.
        priority: Option<Priority>,
    },
    /// The lane failed and is retried; its failures count up.
    Failed {
        /// The delay; zero queues the key immediately.
        after: Duration,
        /// The payload of the retry.
        payload: P,
        /// The priority of the retry; `None` keeps that of this run.
        priority: Option<Priority>,
    },
    /// The lane is retried, and its failures stay as they are.
    Postponed {
        /// The delay; zero queues the key immediately.
        after: Duration,
        /// The payload of the retry.
        payload: P,
        /// The priority of the retry; `None` keeps that of this run.
        priority: Option<Priority>,
    },
}

impl<K, P> fmt::Debug for QueueCore<K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueCore")
            .field("ready", &self.ready.len())
            .field("processing", &self.processing.count())
            .field("draining", &self.draining)
            .field("shutting_down", &self.shutting_down)
            .finish_non_exhaustive()
    }
}

/// Returns the group of a key; 0 if the user's function panics.
///
/// A panic must not get out: the caller may have further keys to put in line, and delayed lanes whose deadline has been
/// taken out would be lost.
pub(super) fn group_of<K>(group: Option<&Group<K>>, key: &K) -> u64 {
    let ask = |group: &Group<K>| catch_unwind(AssertUnwindSafe(|| group(key))).unwrap_or(0);
    group.map_or(0, ask)
}
