//! Keys that wait for a handler outside the queue: for caches, for the end of a pause, or at its limit.
//!
//! A waiting key occupies no worker, and other handlers of the kind are called for it meanwhile. [`Limit`] bounds the
//! concurrent calls of a handler; [`Hold`] keeps keys while it is paused or its caches are not ready. When the wait is
//! over, the keys are added to the queue again, for this lane only.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use lariat_core::ObjectKey;
use lariat_queue::{Add, LaneId, Payload as _, Priority};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::line::Line;
use crate::payload::Payload;
use crate::snapshot::WaitsFor;

/// A key that waits for a lane, with the state for its next call.
pub(crate) struct Waiting {
    pub(crate) key: ObjectKey,
    pub(crate) payload: Payload,
    pub(crate) priority: Priority,
    /// The number of failures in a row of the handler for the key.
    pub(crate) failures: u32,
}

impl Waiting {
    /// Converts the key into an add for its lane.
    pub(crate) fn into_add(self, lane: LaneId) -> (ObjectKey, Add<Payload>) {
        let add = Add::now().lanes(lane).priority(self.priority);
        // The queue drops the state of a key that has nothing due, its failures included. So they are kept here.
        let add = add.failures(self.failures).payload(self.payload);
        (self.key, add)
    }
}

/// The line of waiting keys; see [`Line`].
struct WaitingLine(Line<ObjectKey, Rest>);

/// The value of a key in line.
struct Rest {
    payload: Payload,
    failures: u32,
}

impl WaitingLine {
    fn join(&mut self, waiting: Waiting) {
        let Waiting {
            key,
            payload,
            priority,
            failures,
        } = waiting;
        let rest = Rest { payload, failures };
        self.0.join(key, priority, rest, |mine, later| {
            mine.payload.merge(later.payload);
            // Both counts are of the same lane; the higher one has the longer backoff.
            mine.failures = mine.failures.max(later.failures);
        });
    }

    fn next(&mut self) -> Option<Waiting> {
        let (key, priority, rest) = self.0.next()?;
        Some(waiting(key, priority, rest))
    }

    fn take_all(&mut self) -> Vec<Waiting> {
        let all = self.0.take_all().into_iter();
        all.map(|(key, priority, rest)| waiting(key, priority, rest))
            .collect()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the first keys in line, by priority and then by age.
    fn first(&self, limit: usize, waits_for: WaitsFor) -> Vec<WaitingKey> {
        let first = self.0.iter().take(limit);
        let seen = first.map(|(key, priority, rest)| WaitingKey {
            key: key.clone(),
            priority,
            failures: rest.failures,
            waits_for,
        });
        seen.collect()
    }

    fn find(&self, key: &ObjectKey, waits_for: WaitsFor) -> Option<WaitingKey> {
        let (priority, rest) = self.0.get(key)?;
        Some(WaitingKey {
            key: key.clone(),
            priority,
            failures: rest.failures,
            waits_for,
        })
    }
}

/// A waiting key, for status pages.
pub(crate) struct WaitingKey {
    pub(crate) key: ObjectKey,
    pub(crate) priority: Priority,
    /// The number of failures in a row of the handler for the key.
    pub(crate) failures: u32,
    pub(crate) waits_for: WaitsFor,
}

/// Limits the number of concurrent calls of a handler.
///
/// Further keys wait in line. When a call ends, the next key gets a reserved place and is queued again. The place keeps
/// keys that are dequeued in between from overtaking it.
pub(crate) struct Limit {
    most: usize,
    places: Mutex<Places>,
    /// Notified when a call has ended or a place has become free.
    left: Notify,
}

/// The places of a limit.
///
/// While keys wait, `inside + called.len()` is `most`. During a drain, `called` and `waiting` are empty.
#[derive(Default)]
struct Places {
    /// The number of running calls.
    inside: usize,
    /// Keys that were queued again and have a reserved place.
    called: HashSet<ObjectKey>,
    waiting: WaitingLine,
    /// Whether a drain is running. Then no places are reserved.
    is_draining: bool,
}

/// Whether a call may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The call may begin.
    Entered,
    /// The key is in line now, and is queued again when it is next.
    InLine,
    /// A drain is running, so the worker has to wait with the key. A key that is queued again would not be dequeued
    /// before the next start.
    Wait,
}

impl Limit {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            places: Mutex::default(),
            left: Notify::new(),
        }
    }

    /// Admits a call for a key, or puts the key in line.
    pub(crate) fn admit(&self, key: &ObjectKey, waiting: impl FnOnce() -> Waiting) -> Admission {
        let mut places = self.places.lock();
        if places.enter(key, self.most) {
            return Admission::Entered;
        }
        if places.is_draining {
            return Admission::Wait;
        }
        // Called only here: most calls are admitted, and need no copy of the payload.
        places.waiting.join(waiting());
        Admission::InLine
    }

    /// Waits until a call for a key is admitted.
    pub(crate) async fn enter(&self, key: &ObjectKey) {
        loop {
            // Created before the places are checked, so that a release in between is not missed.
            let left = self.left.notified();
            if self.places.lock().enter(key, self.most) {
                return;
            }
            left.await;
        }
    }

    /// Ends a call, and queues the next key with `queue`.
    ///
    /// `queue` is called under the lock of the places, so that a drain finds every key either in line or in the queue.
    /// A drain covers only keys that are in the queue when it begins.
    pub(crate) fn leave(&self, queue: impl FnOnce(Waiting)) {
        let mut places = self.places.lock();
        places.inside -= 1;
        self.left.notify_waiters();
        if let Some(next) = places.call_next(self.most) {
            queue(next);
        }
    }

    /// Releases the place that is reserved for a key, if any, and queues the next key with `queue`.
    ///
    /// Call it for a key that does not come to its call: it is postponed, kept elsewhere, or belongs to another member.
    /// As in [`leave`](Self::leave), `queue` is called under the lock.
    pub(crate) fn pass(&self, key: &ObjectKey, queue: impl FnOnce(Waiting)) {
        let mut places = self.places.lock();
        if !places.called.remove(key) {
            return;
        }
        self.left.notify_waiters();
        if let Some(next) = places.call_next(self.most) {
            queue(next);
        }
    }

    /// Takes all keys out of the line, for a drain of the queue.
    ///
    /// Until [`open`](Self::open), no places are reserved. Otherwise a worker that waits with its key could wait for a
    /// place that is reserved for a key behind it in the queue, and the drain would not end.
    pub(crate) fn drain(&self) -> Vec<Waiting> {
        let mut places = self.places.lock();
        places.is_draining = true;
        // Keys that are in the queue with a reserved place compete with all others from now on.
        places.called.clear();
        self.left.notify_waiters();
        places.waiting.take_all()
    }

    /// Returns how many keys are in line, and their bound: zero while a call may begin.
    pub(super) fn in_line(&self) -> (usize, usize) {
        let places = self.places.lock();
        let waiting = places.waiting.len();
        // Keys that wait although a call may begin would be a bug. A bound of zero reveals it.
        let is_full = places.inside + places.called.len() >= self.most;
        (waiting, if is_full { waiting } else { 0 })
    }

    /// Returns how many places are reserved for keys, and their bound.
    pub(super) fn kept(&self) -> (usize, usize) {
        (self.places.lock().called.len(), self.most)
    }

    /// Returns how many keys are in line.
    pub(super) fn waiting(&self) -> usize {
        self.places.lock().waiting.len()
    }

    /// Returns the first keys in line.
    pub(super) fn first(&self, limit: usize) -> Vec<WaitingKey> {
        self.places.lock().waiting.first(limit, WaitsFor::Limit)
    }

    /// Returns a key in line.
    pub(super) fn find(&self, key: &ObjectKey) -> Option<WaitingKey> {
        self.places.lock().waiting.find(key, WaitsFor::Limit)
    }

    /// Ends a drain.
    pub(crate) fn open(&self) {
        self.places.lock().is_draining = false;
    }
}

impl Places {
    /// Takes a place for a call; returns whether there is one.
    fn enter(&mut self, key: &ObjectKey, most: usize) -> bool {
        // A key with a reserved place uses it. Any other key needs a place that is neither used nor reserved, so that
        // it does not overtake the keys that have waited.
        if !self.called.remove(key) && self.inside + self.called.len() >= most {
            return false;
        }
        self.inside += 1;
        true
    }

    /// Reserves a free place for the next key in line; returns the key.
    fn call_next(&mut self, most: usize) -> Option<Waiting> {
        if self.is_draining || self.inside + self.called.len() >= most {
            return None;
        }
        let next = self.waiting.next()?;
        // Reserved until the key is dequeued again and called, or `pass` releases it.
        self.called.insert(next.key.clone());
        Some(next)
    }
}

/// Keeps the keys for which a handler cannot be called yet.
///
/// All keys wait while the caches of related kinds sync, and while the handler is paused. Single keys wait while their
/// content is loaded.
#[derive(Default)]
pub(crate) struct Hold {
    /// Whether all keys wait: a copy of `held.keeps_all()`, so that usual calls take no lock.
    keeps_all: AtomicBool,
    held: Mutex<Held>,
}

/// The keys of a [`Hold`], and why all of them wait, if they do.
#[derive(Default)]
struct Held {
    /// The relations that the handler waits for, if it does.
    closed: Option<Closed>,
    /// Whether the handler is paused. It may wait for relations at the same time.
    is_paused: bool,
    waiting: WaitingLine,
}

/// The relations that a handler waits for.
#[derive(Clone)]
pub(crate) struct Closed {
    /// The relations whose caches were not synced.
    pub(crate) relations: Vec<u64>,
    pub(crate) since: Instant,
    /// Whether a warning about the wait was logged.
    pub(crate) is_warned: bool,
}

impl Hold {
    /// Makes all keys wait for these relations; no key if there are none.
    ///
    /// Call it before the handler can be called.
    pub(crate) fn close(&self, relations: Vec<u64>) {
        let closed = (!relations.is_empty()).then(|| Closed {
            relations,
            since: Instant::now(),
            is_warned: false,
        });
        self.change(|held| held.closed = closed);
    }

    /// Makes all keys wait until [`resume`](Self::resume).
    ///
    /// Returns whether the handler was not paused before. A call that has passed
    /// [`keep_if_closed`](Self::keep_if_closed) is not affected.
    pub(crate) fn pause(&self) -> bool {
        self.change(|held| !std::mem::replace(&mut held.is_paused, true))
    }

    /// Ends a pause; returns the keys to queue again.
    ///
    /// None means that the handler was not paused. The keys stay if the handler waits for caches too.
    pub(crate) fn resume(&self) -> Option<Vec<Waiting>> {
        self.change(|held| {
            let was_paused = std::mem::take(&mut held.is_paused);
            was_paused.then(|| held.release())
        })
    }

    /// Returns whether the handler is paused.
    pub(super) fn is_paused(&self) -> bool {
        self.held.lock().is_paused
    }

    /// Changes the state under the lock, and updates the flag with it.
    fn change<T>(&self, change: impl FnOnce(&mut Held) -> T) -> T {
        let mut held = self.held.lock();
        let result = change(&mut held);
        // Stored under the lock, so that the flag follows the state in the same order. Relaxed is enough. A stale
        // `true` is corrected under the lock. A stale `false` means that a pause takes effect a moment later. `close`
        // comes before the registration, whose lock makes the flag visible to every worker that sees the lane.
        self.keeps_all.store(held.keeps_all(), Ordering::Relaxed);
        result
    }

    /// Returns the relations that the handler waits for, if it does.
    pub(crate) fn closed(&self) -> Option<Closed> {
        self.held.lock().closed.clone()
    }

    /// Records that a warning about the wait was logged.
    pub(crate) fn set_warned(&self) {
        if let Some(closed) = &mut self.held.lock().closed {
            closed.is_warned = true;
        }
    }

    /// Keeps a key if all keys wait, for related caches or for the end of a pause.
    ///
    /// Returns none if the key was not kept, and otherwise whether it is the first.
    pub(crate) fn keep_if_closed(&self, waiting: impl FnOnce() -> Waiting) -> Option<bool> {
        if !self.keeps_all.load(Ordering::Relaxed) {
            return None;
        }
        let mut held = self.held.lock();
        // The wait may have ended since the flag was read. A key that was kept now would wait forever.
        held.keeps_all().then(|| held.keep(waiting()))
    }

    /// Keeps a key; returns whether it is the first.
    pub(crate) fn keep(&self, waiting: Waiting) -> bool {
        self.held.lock().keep(waiting)
    }

    /// Returns whether the handler or some key waits for caches.
    pub(crate) fn is_waiting(&self) -> bool {
        let held = self.held.lock();
        // The keys of a paused handler wait for the end of the pause first, also those that waited for content before.
        held.closed.is_some() || (held.waiting.len() > 0 && !held.is_paused)
    }

    /// Returns how many keys wait.
    pub(super) fn waiting(&self) -> usize {
        self.held.lock().waiting.len()
    }

    /// Returns the first keys that wait.
    pub(super) fn first(&self, limit: usize) -> Vec<WaitingKey> {
        let held = self.held.lock();
        held.waiting.first(limit, held.waits_for())
    }

    /// Returns a key that waits.
    pub(super) fn find(&self, key: &ObjectKey) -> Option<WaitingKey> {
        let held = self.held.lock();
        held.waiting.find(key, held.waits_for())
    }

    /// Ends the wait for caches; returns the keys to queue again.
    pub(crate) fn open(&self) -> Vec<Waiting> {
        self.change(|held| {
            held.closed = None;
            held.release()
        })
    }
}

impl Held {
    /// Returns whether all keys wait.
    fn keeps_all(&self) -> bool {
        self.closed.is_some() || self.is_paused
    }

    fn waits_for(&self) -> WaitsFor {
        if self.is_paused {
            WaitsFor::Resume
        } else {
            WaitsFor::Caches
        }
    }

    /// Takes the waiting keys, unless they wait for something else as well.
    fn release(&mut self) -> Vec<Waiting> {
        if self.keeps_all() {
            return Vec::new();
        }
        self.waiting.take_all()
    }

    fn keep(&mut self, waiting: Waiting) -> bool {
        let is_first = self.waiting.len() == 0;
        self.waiting.join(waiting);
        is_first
    }
}

fn waiting(key: ObjectKey, priority: Priority, rest: Rest) -> Waiting {
    Waiting {
        key,
        payload: rest.payload,
        priority,
        failures: rest.failures,
    }
}

impl Default for WaitingLine {
    fn default() -> Self {
        Self(Line::new())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use lariat_queue::Priority;

    use super::*;
    use crate::payload::{Payload, Queue};

    fn comes(limit: &Limit, name: &str) -> bool {
        comes_with(limit, name, Priority::Normal)
    }

    fn comes_with(limit: &Limit, name: &str, priority: Priority) -> bool {
        let key = ObjectKey::cluster(name);
        let waiting = || Waiting {
            key: ObjectKey::cluster(name),
            payload: Payload::default(),
            priority,
            failures: 0,
        };
        limit.admit(&key, waiting) == Admission::Entered
    }

    fn name(waiting: Option<Waiting>) -> Option<String> {
        waiting.map(|waiting| waiting.key.to_string())
    }

    fn leave(limit: &Limit) -> Option<Waiting> {
        let mut next = None;
        limit.leave(|waiting| next = Some(waiting));
        next
    }

    fn pass(limit: &Limit, name: &str) -> Option<Waiting> {
        let mut next = None;
        limit.pass(&ObjectKey::cluster(name), |waiting| next = Some(waiting));
        next
    }

    #[test]
    fn those_who_wait_come_before_those_who_arrive() {
        let limit = Limit::new(1);
        assert!(comes(&limit, "a"));
        assert!(!comes(&limit, "b"));
        assert!(!comes(&limit, "c"));
        assert!(!comes(&limit, "b"), "once in line is enough");
        assert_eq!(name(leave(&limit)).as_deref(), Some("b"));
        assert!(!comes(&limit, "d"), "the place is kept for b");
        assert!(comes(&limit, "b"));
        assert_eq!(name(leave(&limit)).as_deref(), Some("c"));
        assert!(comes(&limit, "c"));
        assert_eq!(name(leave(&limit)).as_deref(), Some("d"));
        assert!(comes(&limit, "d"));
        assert!(name(leave(&limit)).is_none());
        assert!(comes(&limit, "e"), "there is room again");
    }

    #[test]
    fn what_is_urgent_comes_before_the_initial_list() {
        let limit = Limit::new(1);
        assert!(comes(&limit, "first"));
        for number in 0..1000 {
            assert!(!comes_with(
                &limit,
                &format!("listed-{number}"),
                Priority::Low
            ));
        }
        assert!(!comes_with(&limit, "fresh", Priority::High));
        assert!(!comes_with(&limit, "listed-999", Priority::Normal));
        let next = leave(&limit).expect("keys wait");
        assert_eq!((next.key.name(), next.priority), ("fresh", Priority::High));
        assert!(comes(&limit, "fresh"));
        let next = leave(&limit).expect("keys wait");
        assert_eq!(next.key.name(), "listed-999");
        assert_eq!(limit.waiting(), 999);
    }

    #[test]
    fn a_drain_keeps_no_places() {
        let limit = Limit::new(1);
        assert!(comes(&limit, "a"));
        assert!(!comes(&limit, "b"));
        assert!(!comes(&limit, "c"));
        assert_eq!(name(leave(&limit)).as_deref(), Some("b"));
        assert_eq!(limit.drain().len(), 1, "c");
        assert!(comes(&limit, "d"), "b may be behind it in the queue");
        assert!(!comes(&limit, "b"));
        assert!(name(leave(&limit)).is_none(), "it waits on the spot");
        limit.open();
        assert!(comes(&limit, "e"));
        assert!(!comes(&limit, "f"));
        assert_eq!(name(leave(&limit)).as_deref(), Some("f"));
    }

    fn key(name: &str) -> Waiting {
        Waiting {
            key: ObjectKey::cluster(name),
            payload: Payload::default(),
            priority: Priority::Normal,
            failures: 0,
        }
    }

    fn names(waiting: Vec<Waiting>) -> Vec<String> {
        let names = waiting.into_iter().map(|each| each.key.to_string());
        names.collect()
    }

    #[test]
    fn a_pause_and_a_wait_for_caches_end_separately() {
        let hold = Hold::default();
        assert_eq!(hold.keep_if_closed(|| key("a")), None);
        hold.close(vec![1]);
        assert_eq!(hold.keep_if_closed(|| key("a")), Some(true));
        assert!(hold.pause() && !hold.pause());
        assert!(hold.open().is_empty(), "it is paused");
        assert!(hold.closed().is_none() && !hold.is_waiting());
        assert_eq!(hold.keep_if_closed(|| key("b")), Some(false));
        assert_eq!(hold.resume().map(names), Some(vec!["a".into(), "b".into()]));
        assert_eq!(hold.keep_if_closed(|| key("a")), None);
        assert!(hold.resume().is_none());

        assert!(hold.pause());
        hold.close(vec![1]);
        assert_eq!(hold.keep_if_closed(|| key("c")), Some(true));
        assert_eq!(hold.resume().map(names), Some(vec![]), "caches are awaited");
        assert!(hold.is_waiting());
        assert_eq!(names(hold.open()), ["c"]);
    }

    #[test]
    fn a_paused_handler_is_not_released_by_content() {
        let hold = Hold::default();
        assert!(hold.keep(key("a")) && hold.is_waiting());
        hold.pause();
        assert!(!hold.is_waiting() && hold.open().is_empty());
        assert_eq!(hold.first(9)[0].waits_for, WaitsFor::Resume);
        assert!(hold.find(&ObjectKey::cluster("b")).is_none());
        assert_eq!(hold.resume().map(names), Some(vec!["a".into()]));
    }

    #[test]
    fn a_place_can_be_left() {
        let limit = Limit::new(1);
        assert!(comes(&limit, "a"));
        assert!(!comes(&limit, "b"));
        assert!(!comes(&limit, "c"));
        assert_eq!(name(leave(&limit)).as_deref(), Some("b"));
        assert_eq!(name(pass(&limit, "b")).as_deref(), Some("c"));
        assert!(name(pass(&limit, "x")).is_none());
        assert!(comes(&limit, "c"));
    }

    #[test]
    fn a_drain_finds_every_key_in_line_or_in_the_queue() {
        for round in 0..2000 {
            let (limit, queue) = (Limit::new(1), Queue::default());
            let add = |waiting: Waiting| {
                let (key, add) = waiting.into_add(LaneId::new(0));
                queue.add(key, add);
            };
            assert!(comes(&limit, "a") && !comes(&limit, "b"));
            let barrier = Barrier::new(2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    barrier.wait();
                    limit.leave(add);
                });
                barrier.wait();
                limit.drain().into_iter().for_each(add);
                queue.drain();
            });
            let work = queue.try_get().expect("b is due, and not deferred");
            assert_eq!(work.key().name(), "b", "round {round}");
            work.done();
        }
    }
}
