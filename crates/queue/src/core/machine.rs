//! The public operations of the state machine: add, get, done, and the metrics.

use std::fmt;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::clock::Clock;
use super::delays::Deadlines;
use super::entry::{Delayed, KeyEntry, Phase, Processing, ready_since};
use super::gate::{Gate, Gates};
use super::index::{Hashed, Hasher, Index};
use super::ready::{Ageing, Ready};
use crate::stats::Counters;
use crate::{Add, LaneId, Lanes, Payload, Priority, QueueMemory, QueueStats};

/// The state machine of a work queue, without a clock and without tasks.
///
/// Prefer [`WorkQueue`](crate::WorkQueue), unless you control time yourself, as a test or a simulation does.
///
/// Every key has at most one entry, which is in one of five phases: *ready* (queued), *processing* (dequeued by a
/// worker), *waiting* (for lanes that are closed or at their limit), *delayed* (nothing is due), or, during a drain,
/// *deferred* (due, but not before the drain ends).
///
/// Methods that take `now` expect times that do not go backwards. An operation costs amortised constant time, or
/// logarithmic time if it adds or ends a delay.
///
/// ```
/// use std::time::{Duration, Instant};
/// use lariat::queue::{Add, Ageing, QueueCore};
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
    /// Converts the times of the callers to stamps.
    pub(super) clock: Clock,
    /// The entry of every key in the queue.
    pub(super) entries: Index<K, KeyEntry<P>>,
    /// The ready queue: the ticket of every entry in `Ready`, and stale tickets.
    pub(super) ready: Ready,
    /// The deadline of every delayed lane.
    pub(super) deadlines: Deadlines,
    /// The entries in `Processing`.
    pub(super) processing: Processing,
    /// The slots in `Deferred`, in the order in which they became due.
    pub(super) deferred: Vec<u32>,
    /// The gates of lanes, with the keys that wait at them.
    pub(super) gates: Gates,
    /// The number of entries in `Waiting`.
    pub(super) waiting: usize,
    /// Returns the group of a key; `None` without fair queuing.
    pub(super) group: Option<Group<K>>,
    /// Whether only keys that were due when the drain began are dequeued.
    pub(super) draining: bool,
    /// Whether adds are refused.
    pub(super) shutting_down: bool,
    /// Whether keys that workers return are removed, whatever is due.
    ///
    /// Set by [`shut_down_now`](Self::shut_down_now); implies `shutting_down`.
    pub(super) dropping: bool,
    /// The totals for the metrics.
    pub(super) counters: Counters,
}

/// How many delays one call of `get`, `has_ready` or `stats` may end.
///
/// The bound keeps the lock short when many delays end at the same time. It does not apply at the start of a drain,
/// because all of them count there.
pub(super) const MOST_RELEASED: usize = 256;

/// A function that returns the group of a key.
pub(crate) type Group<K> = Box<dyn Fn(&K) -> u64 + Send + Sync>;

impl<K: Eq + Hash + Clone, P: Payload> QueueCore<K, P> {
    /// Creates an empty queue that is first in, first out within a priority.
    #[must_use]
    pub fn new(ageing: Ageing) -> Self {
        Self {
            clock: Clock::default(),
            entries: Index::new(),
            ready: Ready::new(ageing, false),
            deadlines: Deadlines::default(),
            processing: Processing::default(),
            deferred: Vec::new(),
            gates: Gates::default(),
            waiting: 0,
            group: None,
            draining: false,
            shutting_down: false,
            dropping: false,
            counters: Counters::default(),
        }
    }

    /// Creates an empty queue with fair queuing between groups of keys.
    ///
    /// Within a priority, groups are served round robin. With `g` groups in the queue and `k` keys of its own group
    /// ahead of it, a key is dequeued after at most `g × (k + 1)` keys of its priority, however many keys the other
    /// groups have. If `group` panics, the key belongs to group 0.
    ///
    /// ```
    /// use std::time::Instant;
    /// use lariat::queue::{Add, Ageing, QueueCore, group};
    ///
    /// let now = Instant::now();
    /// let by_first = |key: &(&str, u32)| group(&key.0);
    /// let mut queue: QueueCore<(&str, u32), ()> = QueueCore::fair(Ageing::default(), by_first);
    /// for key in [("busy", 1), ("busy", 2), ("quiet", 1)] {
    ///     queue.add(key, Add::now(), now);
    /// }
    /// queue.get(now);
    /// assert_eq!(queue.get(now).unwrap().key, ("quiet", 1));
    /// ```
    #[must_use]
    pub fn fair(ageing: Ageing, group: impl Fn(&K) -> u64 + Send + Sync + 'static) -> Self {
        Self {
            ready: Ready::new(ageing, true),
            group: Some(Box::new(group)),
            ..Self::new(ageing)
        }
    }

    /// Adds a key; does nothing after a shutdown.
    ///
    /// Delays are those of client-go: an add without delay makes its lanes due now, and their delays go on; of two
    /// delays of one lane, the earlier counts while it has not ended. Of two priorities, the higher counts; a key whose
    /// priority rises moves to the end of the higher level. A key in processing is queued again when its worker returns
    /// it.
    ///
    /// ```
    /// use std::time::Instant;
    /// use lariat::queue::{Add, Ageing, Priority, QueueCore};
    ///
    /// let now = Instant::now();
    /// let mut queue: QueueCore<&str, ()> = QueueCore::new(Ageing::default());
    /// queue.add("a", Add::now().priority(Priority::Low), now);
    /// queue.add("a", Add::now(), now);
    /// assert_eq!(queue.get(now).unwrap().priority, Priority::Normal);
    /// assert!(queue.get(now).is_none());
    /// ```
    pub fn add(&mut self, key: K, add: Add<P>, now: Instant) {
        let hash = self.hasher().hash(&key);
        self.add_lazily(key, hash, add, || now);
    }

    /// Returns the hasher of the keys, to hash them outside the lock.
    pub(crate) fn hasher(&self) -> &Hasher {
        self.entries.hasher()
    }

    /// Adds a key and reads the clock only if the add changes more than the payload.
    ///
    /// Returns that time if a worker may have to be woken.
    pub(crate) fn add_lazily(
        &mut self,
        key: K,
        hash: Hashed,
        add: Add<P>,
        now: impl FnOnce() -> Instant,
    ) -> Option<Instant> {
        // As in client-go, adds are ignored during a shutdown. Otherwise a queue whose work adds keys would never
        // finish.
        if self.shutting_down || add.lanes.is_empty() {
            return None;
        }
        let slot = self.entries.find_or_insert(key, hash, KeyEntry::default);
        let entry = &mut self.entries[slot].value;
        // The common case, an add that merges with an earlier one, skips the clock, which would cost more than the
        // merge.
        if add.after.is_zero() && entry.covers(&add) {
            entry.payload.merge(add.payload);
            return None;
        }
        let now = now();
        self.put(slot, add, now);
        Some(now)
    }

    /// Applies an add to the entry of its key.
    fn put(&mut self, slot: u32, add: Add<P>, now: Instant) {
        let now = self.clock.stamp(now);
        if add.after.is_zero() {
            // Counted before `mark_dirty` makes the lanes dirty: only the first dirty lane starts the waiting time.
            self.note_dirty(slot, now);
            let entry = &mut self.entries[slot].value;
            entry.mark_dirty(&add.lanes, add.priority, add.payload);
            return self.line_up(slot);
        }
        self.release_key(slot, now);
        // All lanes together are a single delay, of `LaneId::WHOLE`. Single lanes are delayed one by one, each with a
        // copy of the payload, because they may become due at different times.
        for lane in add.lanes.ids() {
            let delayed = Delayed {
                lane,
                deadline: self.deadlines.deadline(Clock::later(now, add.after), slot),
                priority: add.priority,
                payload: add.payload.clone(),
            };
            self.delay(delayed);
        }
    }

    /// Adds a key after a delay that grows with the number of such adds.
    ///
    /// `delay` receives the number of such adds in a row and returns the delay. The number is stored as the failures of
    /// [`LaneId::WHOLE`], separate from the failures of single lanes. It is reset by the next run in which no lane
    /// fails. If `add` has a delay of its own, the shorter of the two counts, as in controller-runtime. Does nothing
    /// after a shutdown.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use lariat::queue::{Add, Ageing, QueueCore};
    ///
    /// let now = Instant::now();
    /// let mut queue: QueueCore<&str, ()> = QueueCore::new(Ageing::default());
    /// let delay = |failures| Duration::from_secs(1) * failures;
    /// queue.add_failed("a", Add::now(), delay, now);
    /// assert_eq!(queue.next_deadline(), Some(now + Duration::from_secs(1)));
    /// ```
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
        // The failure is counted before the limiter is asked, so the first one is number 1.
        let delay = delay(entry.count_failure(LaneId::WHOLE));
        let after = if add.after.is_zero() {
            delay
        } else {
            delay.min(add.after)
        };
        // client-go counts every `AddRateLimited` as a retry.
        self.counters.retries += 1;
        self.put(slot, Add { after, ..add }, now);
    }

    /// Returns how many times in a row a lane of a key has failed.
    ///
    /// Zero if the queue does not contain the key.
    #[must_use]
    pub fn failures(&self, key: &K, lane: LaneId) -> u32 {
        let slot = self.entries.find(key);
        slot.map_or(0, |slot| self.entries[slot].value.failures_of(lane))
    }

    /// Resets the failures of a lane of a key.
    ///
    /// [`LaneId::WHOLE`] resets those of all lanes. Nothing is dequeued or removed.
    pub fn forget(&mut self, key: &K, lane: LaneId) {
        if let Some(slot) = self.entries.find(key) {
            self.entries[slot].value.forget(lane);
        }
    }

    /// Dequeues the next key; `None` if no key is ready.
    ///
    /// The order is by priority and [`Ageing`], then by time. During a drain, only keys that were due before it are
    /// returned. Return the key with [`done`](Self::done) or [`give_back`](Self::give_back).
    ///
    /// Delays that have ended are queued first, in the order of their deadlines, at most 256 per call. If more have
    /// ended at the same time, a key that is added meanwhile may be dequeued before the last of them; and if these 256
    /// are all of keys in processing, the result is `None`, and [`next_deadline`](Self::next_deadline) has passed.
    ///
    /// ```
    /// use std::time::Instant;
    /// use lariat::queue::{Add, Ageing, LaneId, QueueCore, Verdict};
    ///
    /// let now = Instant::now();
    /// let mut queue: QueueCore<&str, ()> = QueueCore::new(Ageing::default());
    /// queue.add("a", Add::now(), now);
    /// let item = queue.get(now).unwrap();
    /// queue.add("a", Add::now(), now);
    /// assert!(queue.get(now).is_none(), "the key is being processed");
    /// queue.done(item.slot, item.priority, [(LaneId::WHOLE, Verdict::Done)], now);
    /// assert!(queue.get(now).is_some(), "it was added again meanwhile");
    /// ```
    pub fn get(&mut self, now: Instant) -> Option<Item<K, P>> {
        let now = self.clock.stamp(now);
        self.release_at_most(MOST_RELEASED, now);
        // Expired delays were queued above, so they compete by priority with keys that were added without a delay.
        let slot = self.ready.pop(ready_since(&self.entries), now)?;
        let slotted = &mut self.entries[slot];
        let entry = &mut slotted.value;
        // This is the exclusion of workers: `line_up` gives no ticket to an entry in processing, so no other worker
        // gets the key until `release`.
        entry.phase = Phase::Processing(now);
        (entry.in_drain, entry.is_dropped) = (false, false);
        self.processing.begin(slot, now);
        let waited = now.since(entry.since);
        self.counters.dequeued(waited);
        Some(Item {
            slot,
            key: slotted.key.clone(),
            // Emptied, so that lanes added during the run are seen as dirty when the worker returns the key.
            lanes: std::mem::replace(&mut entry.dirty, Lanes::none()),
            payload: std::mem::take(&mut entry.payload),
            priority: entry.priority,
            waited,
            failures: entry.failures().into(),
        })
    }

    /// Returns a key from its worker, with a verdict on each lane.
    ///
    /// Lanes without a verdict count as [`Verdict::Done`] but keep their failures. If there are verdicts and none is a
    /// failure, the count of [`add_failed`](Self::add_failed) is reset. A key that became due during the run goes to
    /// the end of the queue. A key of which nothing is due, waits or is delayed is removed, with its failures.
    ///
    /// `slot` and `priority` are those of the [`Item`].
    ///
    /// # Panics
    ///
    /// If the key in `slot` is not being processed.
    pub fn done(
        &mut self,
        slot: u32,
        priority: Priority,
        verdicts: impl IntoIterator<Item = (LaneId, Verdict<P>)>,
        now: Instant,
    ) {
        let now = self.clock.stamp(now);
        self.release_key(slot, now);
        self.release(slot, now);
        if self.entries[slot].value.is_dropped {
            return self.settle(slot);
        }
        // The payloads of retries belong to the run that ends here, so they are older than those of adds during the run
        // and are merged first.
        let meanwhile = std::mem::take(&mut self.entries[slot].value.payload);
        // No verdict at all says nothing about success, so the count of rate-limited adds is then left alone.
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
        let unused = self.entries[slot].value.unused_places(self.draining);
        self.settle(slot);
        self.give_on(unused, now);
    }

    /// Returns a key that its worker did not process.
    ///
    /// Its lanes are due again with the same payload and priority, and no failure is counted. If there is a drain, they
    /// are part of it.
    ///
    /// # Panics
    ///
    /// If the key of the item is not being processed.
    pub fn give_back(&mut self, taken: Item<K, P>, now: Instant) {
        let (slot, now) = (taken.slot, self.clock.stamp(now));
        self.release(slot, now);
        // `shut_down_now` drops keys when they are returned, so there is nothing to queue.
        if self.entries[slot].value.is_dropped {
            return self.settle(slot);
        }
        self.note_dirty(slot, now);
        let entry = &mut self.entries[slot].value;
        // The payload of the run is older than what was added during it.
        let meanwhile = std::mem::replace(&mut entry.payload, taken.payload);
        entry.payload.merge(meanwhile);
        entry.priority = entry.urgency().max(taken.priority);
        entry.dirty.merge(&taken.lanes);
        // No worker processed the key. If it was dequeued during a drain, the drain must dequeue it again, or it would
        // end with the key deferred.
        entry.in_drain = true;
        self.settle(slot);
    }

    /// Returns the time at which [`get`](Self::get) should be called again.
    ///
    /// This is the earliest deadline of a delayed lane. `None` if no lane is delayed, and during a drain.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        let next = self.deadlines.next().filter(|_| !self.draining)?;
        self.clock.instant(next)
    }

    /// Returns whether [`get`](Self::get) would return a key now.
    pub fn has_ready(&mut self, now: Instant) -> bool {
        // Delays are released only if nothing is ready: the answer is the same, and the common case is cheap.
        if self.ready.is_empty() {
            let now = self.clock.stamp(now);
            self.release_at_most(MOST_RELEASED, now);
        }
        !self.ready.is_empty()
    }

    /// Returns the number of ready keys.
    ///
    /// Delayed keys and keys in processing do not count.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ready.len()
    }

    /// Returns whether no key is ready; keys may be delayed or in processing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Returns the ready keys in the order of the next dequeues, ignoring ageing.
    #[must_use]
    pub fn ready_keys(&self) -> Vec<K> {
        let slots = self.ready.in_order(ready_since(&self.entries), usize::MAX);
        slots.map(|slot| self.entries[slot].key.clone()).collect()
    }

    /// Returns the sizes of the queue's structures, at constant cost.
    #[must_use]
    pub fn memory(&self) -> [QueueMemory; 3] {
        let (ready, processing) = (&self.ready, &self.processing);
        // A key in none of the first four states is delayed, and every delayed key has a deadline.
        let keys = ready.len() + processing.count() + self.waiting + self.deferred.len();
        let keys = keys + self.deadlines.len();
        // Keys that wait although a call may begin would be a bug. A bound of zero reveals it. (Lanes that were opened
        // during a drain let them pass at its end.)
        let line = |gate: &Gate| gate.line.len();
        let in_line = self.gates.iter().map(line).sum();
        let closed = |gate: &&Gate| self.draining || gate.waits_for().is_some();
        let most_in_line = self.gates.iter().filter(closed).map(line).sum();
        [
            QueueMemory::new("queue keys", self.entries.len(), keys),
            QueueMemory::new("queue tickets", ready.tickets(), ready.most_tickets()),
            QueueMemory::new("keys in line", in_line, most_in_line),
        ]
    }

    /// Returns the metrics of the queue at this moment.
    ///
    /// Delays that have ended are queued first, so that they count as ready; at most 256 per call.
    #[must_use]
    pub fn stats(&mut self, now: Instant) -> QueueStats {
        let now = self.clock.stamp(now);
        self.release_at_most(MOST_RELEASED, now);
        let processing = self.processing.count();
        QueueStats {
            // Whatever is in none of these phases is delayed or deferred.
            delayed: self.entries.len() - self.ready.len() - processing - self.waiting,
            waiting: self.waiting,
            processing,
            unfinished: self.processing.unfinished(now),
            longest: self.processing.longest(now),
            depths: self.depths(),
            ..self.counters.snapshot()
        }
    }

    /// Returns the number of keys with dirty lanes, by priority.
    fn depths(&self) -> [usize; Priority::LEVELS] {
        let mut depths = self.ready.depths();
        // As in client-go, a key that was added while it is processed counts for the depth. It has no ticket yet.
        if self.counters.dirty > 0 {
            let processing = self.processing.slots();
            let entries = processing.map(|slot| &self.entries[slot].value);
            for entry in entries.filter(|entry| !entry.dirty.is_empty()) {
                depths[entry.priority.level()] += 1;
            }
        }
        depths
    }
}

/// A dequeued key.
///
/// Return it with [`QueueCore::done`] or [`QueueCore::give_back`]; until then no other worker gets the key.
#[derive(Debug)]
pub struct Item<K, P> {
    /// The number that identifies the key for [`QueueCore::done`].
    pub slot: u32,
    /// The key.
    pub key: K,
    /// The lanes that are due.
    pub lanes: Lanes,
    /// The merged payloads of the adds.
    pub payload: P,
    /// The priority with which the key was dequeued.
    pub priority: Priority,
    /// How long the key was due before it was dequeued.
    pub waited: Duration,
    /// The number of failures in a row, for the lanes that have any.
    pub failures: Box<[(LaneId, u32)]>,
}

/// The result of processing one lane of a key.
///
/// ```
/// use std::time::Duration;
/// use lariat::queue::{Add, LaneId, Verdict, WorkQueue};
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
    /// The lane succeeded; its failures are reset.
    Done,
    /// The lane succeeded and is scheduled again; its failures are reset.
    Again {
        /// The delay. Zero queues the key immediately, behind the keys that are ready.
        after: Duration,
        /// The payload of the next run.
        payload: P,
        /// The priority of the next run; `None` keeps that of this run.
        priority: Option<Priority>,
    },
    /// The lane failed and is retried; its failures are counted up.
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
/// The panic must not propagate. The caller may have more keys to queue, and a lane whose deadline was already removed
/// would be lost.
pub(super) fn group_of<K>(group: Option<&Group<K>>, key: &K) -> u64 {
    let ask = |group: &Group<K>| catch_unwind(AssertUnwindSafe(|| group(key))).unwrap_or(0);
    group.map_or(0, ask)
}
