//! The state that the handles of a queue share.
//!
//! It consists of the core behind a lock, the waiting workers, and the one timer. A change of the state ends with
//! [`wake_one`], which releases the lock and wakes at most one worker.

use std::future::poll_fn;
use std::hash::Hash;
use std::hint;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use tokio::sync::Notify;
use tokio::time;

use crate::core::{Hasher, Item, QueueCore, Verdict};
use crate::{Add, LaneId, Payload, QueueStep, RateLimiter, Tap};

/// How often a worker tries the lock before it waits: some microseconds.
const WORKER_SPINS: u32 = 256;

/// How often a producer checks for waiting workers: a microsecond or two at most.
const PRODUCER_SPINS: u32 = 32;

/// The shared part of a queue's handles and of the work in progress.
pub(crate) struct SharedQueue<K, P> {
    /// The core's own hasher, to hash outside the core's lock.
    pub(crate) hasher: Hasher,
    pub(crate) state: Mutex<QueueState<K, P>>,
    /// How many workers wait for the lock.
    starved: AtomicUsize,
    /// Notifies callers that wait for the end of a shutdown.
    pub(crate) ended: Notify,
}

/// What the lock guards.
pub(crate) struct QueueState<K, P> {
    pub(crate) core: QueueCore<K, P>,
    pub(crate) limiter: Box<dyn RateLimiter>,
    waiters: Waiters,
    /// The deadline that one waiter sleeps until, and the waiter's number.
    ///
    /// All others sleep without a timer.
    timer: Option<(Instant, u32)>,
    /// Counts shutdowns and reopenings; a later one ends the wait for an earlier one.
    pub(crate) shutdowns: u64,
    pub(crate) tap: Option<Box<dyn Tap<K, P>>>,
}

impl<K: Eq + Hash + Clone, P: Payload + Clone> SharedQueue<K, P> {
    pub(crate) fn new(
        core: QueueCore<K, P>,
        limiter: Box<dyn RateLimiter>,
        tap: Option<Box<dyn Tap<K, P>>>,
    ) -> Self {
        let hasher = core.hasher().clone();
        let state = QueueState {
            core,
            limiter,
            waiters: Waiters::default(),
            timer: None,
            shutdowns: 0,
            tap,
        };
        Self {
            hasher,
            state: Mutex::new(state),
            starved: AtomicUsize::new(0),
            ended: Notify::new(),
        }
    }

    /// Takes the lock ahead of producers, which give way for a moment.
    ///
    /// A producer that releases the lock and takes it again immediately nearly always gets it: waking a waiting thread
    /// takes many times as long as an add. So workers spin, and producers check `starved` first.
    pub(crate) fn lock_as_worker(&self) -> MutexGuard<'_, QueueState<K, P>> {
        if let Some(state) = self.state.try_lock() {
            return state;
        }
        self.starved.fetch_add(1, Ordering::Relaxed);
        let spun = (0..WORKER_SPINS).find_map(|_| {
            hint::spin_loop();
            self.state.try_lock()
        });
        let state = spun.unwrap_or_else(|| self.state.lock());
        self.starved.fetch_sub(1, Ordering::Relaxed);
        state
    }

    /// Takes the lock to add keys; gives way to waiting workers.
    pub(crate) fn lock_as_producer(&self) -> MutexGuard<'_, QueueState<K, P>> {
        for _ in 0..PRODUCER_SPINS {
            if self.starved.load(Ordering::Relaxed) == 0 {
                break;
            }
            hint::spin_loop();
        }
        self.state.lock()
    }

    /// Waits until a shutdown has completed or was followed by another.
    pub(crate) async fn wait_for(&self, shutdown: u64) {
        loop {
            // Created before the check, so that a notification between the check and the wait is not lost.
            let ended = self.ended.notified();
            if self.is_over(shutdown) {
                return;
            }
            ended.await;
        }
    }

    /// Returns whether a shutdown has completed or was followed by another.
    fn is_over(&self, shutdown: u64) -> bool {
        let state = self.state.lock();
        state.core.is_finished() || state.shutdowns != shutdown
    }

    /// Changes the state and wakes the workers that the change concerns.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut QueueState<K, P>, Instant) -> T) -> T {
        let now = now();
        let mut state = self.lock_as_producer();
        let result = change(&mut state, now);
        self.wake(state, now);
        result
    }

    /// Releases the lock and wakes the workers that a change concerns.
    pub(crate) fn wake(&self, mut state: MutexGuard<'_, QueueState<K, P>>, now: Instant) {
        if state.core.is_finished() {
            let wakers = state.waiters.wake_all();
            // Wakers run arbitrary code, so they are called outside the lock.
            drop(state);
            wakers.into_iter().for_each(Waker::wake);
            self.ended.notify_waiters();
        } else {
            wake_one(state, now);
        }
    }
}

/// The verdicts on the lanes of a key, as a rule one or two.
pub(crate) type Verdicts<P> = SmallVec<[(LaneId, Verdict<P>); 2]>;

impl<K: Eq + Hash + Clone, P: Payload + Clone> QueueState<K, P> {
    /// Gets a key and reports it to the tap; delays may end even if no key is ready.
    pub(crate) fn get(&mut self, now: Instant) -> Option<Item<K, P>> {
        let before = self.core.released();
        let item = self.core.get(now);
        match &item {
            Some(item) => self.show(|| now, || QueueStep::Get(item)),
            None => self.show_release(before, now),
        }
        item
    }

    /// Takes a key back and reports it to the tap.
    pub(crate) fn done(&mut self, item: &Item<K, P>, verdicts: Verdicts<P>, now: Instant) {
        let done = || QueueStep::Done {
            key: &item.key,
            verdicts: &verdicts,
        };
        self.show(|| now, done);
        self.core.done(item.slot, item.priority, verdicts, now);
        self.show_empty(now);
    }

    /// Registers a waiter, with the timer if no other waiter watches the next deadline.
    pub(crate) fn join(&mut self) -> (u32, Option<Instant>) {
        let number = self.waiters.join();
        let deadline = self.unwatched_deadline();
        // Set under the same lock as the registration, so that no second waiter takes the timer.
        if let Some(at) = deadline {
            self.timer = Some((at, number));
        }
        (number, deadline)
    }

    /// Reports a step to the tap, if there is one.
    pub(crate) fn show<'a>(
        &self,
        at: impl FnOnce() -> Instant,
        step: impl FnOnce() -> QueueStep<'a, K, P>,
    ) where
        K: 'a,
        P: 'a,
    {
        if let Some(tap) = &self.tap {
            tap.step(at(), &step());
        }
    }

    pub(crate) fn show_add(&self, at: Instant, key: &K, add: &Add<P>, limited: Option<Duration>) {
        self.show(
            || at,
            || QueueStep::Add {
                key,
                request: add.into(),
                limited,
                group: self.core.group_of(key),
            },
        );
    }

    /// Reports ended delays to the tap, if any ended.
    pub(crate) fn show_release(&self, before: u64, at: Instant) {
        if self.core.released() != before {
            self.show(|| at, || QueueStep::Release);
        }
    }

    pub(crate) fn show_empty(&self, at: Instant) {
        if self.tap.is_some() && self.core.is_like_new() {
            self.show(|| at, || QueueStep::Emptied);
        }
    }

    /// Removes a waiter and its timer; returns whether it was woken or owned the timer.
    fn leave(&mut self, waiter: u32) -> bool {
        let was_woken = self.waiters.leave(waiter);
        let had_timer = self.timer.is_some_and(|(_, watcher)| watcher == waiter);
        if had_timer {
            self.timer = None;
        }
        was_woken || had_timer
    }

    /// Returns the next deadline if no worker would wake up for it.
    fn unwatched_deadline(&self) -> Option<Instant> {
        let next = self.core.next_deadline()?;
        let is_watched = |(at, _): &(Instant, u32)| *at <= next;
        (!self.timer.as_ref().is_some_and(is_watched)).then_some(next)
    }
}

/// Releases the lock and wakes a worker if a key is ready or a deadline unwatched.
pub(crate) fn wake_one<K: Eq + Hash + Clone, P: Payload + Clone>(
    mut state: MutexGuard<'_, QueueState<K, P>>,
    now: Instant,
) {
    let watcher = state.timer.map(|(_, waiter)| waiter);
    let released = state.core.released();
    let has_ready = state.core.has_ready(now);
    state.show_release(released, now);
    // At most one worker is woken here; it wakes the next one if there is more to do.
    let waker = if has_ready {
        let keys = state.core.len();
        state.waiters.wake_for(keys, watcher)
    } else if state.unwatched_deadline().is_some() {
        match watcher {
            // The timer's owner sleeps until a later time; once woken, it registers again for this one.
            Some(watcher) => state.waiters.wake(watcher),
            None => state.waiters.wake_for(1, None),
        }
    } else {
        None
    };
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// A waiting worker, until it leaves or is dropped.
pub(crate) struct Waiting<'a, K: Eq + Hash + Clone, P: Payload + Clone> {
    shared: &'a SharedQueue<K, P>,
    number: u32,
    has_left: bool,
}

impl<'a, K: Eq + Hash + Clone, P: Payload + Clone> Waiting<'a, K, P> {
    pub(crate) fn new(shared: &'a SharedQueue<K, P>, number: u32) -> Self {
        Self {
            shared,
            number,
            has_left: false,
        }
    }

    pub(crate) async fn woken(&self) {
        poll_fn(|cx| {
            let mut state = self.shared.lock_as_worker();
            if state.waiters.poll(self.number, cx.waker()) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Unregisters, in order to look at the queue.
    pub(crate) fn leave(mut self, state: &mut QueueState<K, P>) {
        // The drop below must not pass the wake-up on: this worker uses it.
        self.has_left = true;
        state.leave(self.number);
    }
}

impl<K: Eq + Hash + Clone, P: Payload + Clone> Drop for Waiting<'_, K, P> {
    /// Passes the wake-up of a cancelled worker on to another one.
    fn drop(&mut self) {
        if self.has_left {
            return;
        }
        let mut state = self.shared.lock_as_worker();
        // The wake-up or the timer of this worker would be lost with it.
        if state.leave(self.number) {
            wake_one(state, now());
        }
    }
}

/// The waiting workers.
///
/// As a rule, the one that joined last is woken first: its caches are warm. All of this happens under the lock of the
/// queue, so there is no race: a worker registers and looks at the queue in one step, and a change of the queue wakes a
/// worker in the same step.
#[derive(Debug, Default)]
struct Waiters {
    /// By number; the numbers in `vacant` are free.
    all: Vec<Waiter>,
    vacant: Vec<u32>,
    /// The numbers of the waiters that were not woken; the last to join is last.
    idle: Vec<u32>,
    /// How many were woken and have not left.
    woken: usize,
}

#[derive(Debug)]
struct Waiter {
    /// The waiter's position in `idle`; `None` once it was woken.
    place: Option<u32>,
    waker: Option<Waker>,
}

impl Waiters {
    /// Adds a waiter, and returns its number.
    fn join(&mut self) -> u32 {
        let waiter = Waiter {
            place: Some(self.idle.len() as u32),
            waker: None,
        };
        let number = match self.vacant.pop() {
            Some(number) => {
                self.all[number as usize] = waiter;
                number
            }
            None => {
                self.all.push(waiter);
                self.all.len() as u32 - 1
            }
        };
        self.idle.push(number);
        number
    }

    /// Returns whether a waiter was woken; otherwise stores the waker.
    fn poll(&mut self, number: u32, waker: &Waker) -> bool {
        let waiter = &mut self.all[number as usize];
        if waiter.place.is_none() {
            return true;
        }
        match &mut waiter.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        false
    }

    /// Removes a waiter; returns whether it was woken.
    fn leave(&mut self, number: u32) -> bool {
        self.vacant.push(number);
        let waiter = &mut self.all[number as usize];
        waiter.waker = None;
        let Some(place) = waiter.place else {
            self.woken -= 1;
            return true;
        };
        self.remove_idle(place);
        false
    }

    /// Wakes a waiter unless enough for `keys` keys are awake, preferably not `last`.
    ///
    /// The woken worker looks at the queue and wakes the next one if there is more to do. It may run late, if the task
    /// that polls it is busy, so no waiter is relied on for more than one key.
    fn wake_for(&mut self, keys: usize, last: Option<u32>) -> Option<Waker> {
        if self.woken >= keys {
            return None;
        }
        let mut number = *self.idle.last()?;
        if Some(number) == last
            && let [.., other, _] = self.idle[..]
        {
            number = other;
        }
        self.wake(number)
    }

    /// Wakes a waiter, unless it was woken already.
    fn wake(&mut self, number: u32) -> Option<Waker> {
        let waiter = &mut self.all[number as usize];
        let place = waiter.place.take()?;
        let waker = waiter.waker.take();
        self.woken += 1;
        self.remove_idle(place);
        waker
    }

    fn wake_all(&mut self) -> Vec<Waker> {
        let idle = std::mem::take(&mut self.idle);
        self.woken += idle.len();
        let wakers = idle.into_iter().filter_map(|number| {
            let waiter = &mut self.all[number as usize];
            waiter.place = None;
            waiter.waker.take()
        });
        wakers.collect()
    }

    fn remove_idle(&mut self, place: u32) {
        self.idle.swap_remove(place as usize);
        if let Some(moved) = self.idle.get(place as usize) {
            self.all[*moved as usize].place = Some(place);
        }
    }
}

/// Returns the time of tokio's clock.
pub(crate) fn now() -> Instant {
    time::Instant::now().into_std()
}
