//! The state that all handles of a queue share.
//!
//! [`SharedQueue`] is the core behind a lock. Workers that find no key register in [`Waiters`] and sleep. Every change
//! of the state ends with [`SharedQueue::wake`] or [`wake_one`], which releases the lock and wakes at most one worker;
//! a worker that finds a key wakes the next one if there is more to do. There is one timer for all delays: one waiting
//! worker owns it and sleeps until the next deadline, all others sleep until they are woken.

use std::future::poll_fn;
use std::hash::Hash;
use std::task::{Poll, Waker};
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use tokio::sync::Notify;
use tokio::time;

use crate::core::{Hasher, QueueCore, Verdict};
use crate::{LaneId, Payload, RateLimiter};

/// The shared part of a queue's handles.
pub(crate) struct SharedQueue<K, P> {
    /// The core's hasher, to hash keys outside the lock.
    pub(crate) hasher: Hasher,
    /// The core and the waiting workers.
    pub(crate) state: Mutex<QueueState<K, P>>,
    /// Notifies callers that wait for a shutdown to complete.
    pub(crate) ended: Notify,
}

/// The state that the lock guards.
pub(crate) struct QueueState<K, P> {
    /// The state machine.
    pub(crate) core: QueueCore<K, P>,
    /// The backoff of retries.
    pub(crate) limiter: Box<dyn RateLimiter>,
    /// The workers that found no key.
    waiters: Waiters,
    /// The deadline that one waiting worker sleeps until, and that worker's number.
    ///
    /// All others sleep without a timer. `None` if no waiting worker has one.
    timer: Option<(Instant, u32)>,
    /// Counts shutdowns and reopenings.
    ///
    /// A wait for a shutdown ends when the number changes.
    pub(crate) shutdowns: u64,
}

impl<K: Eq + Hash + Clone, P: Payload> SharedQueue<K, P> {
    /// Creates the shared state around a core.
    pub(crate) fn new(core: QueueCore<K, P>, limiter: Box<dyn RateLimiter>) -> Self {
        let hasher = core.hasher().clone();
        let state = QueueState {
            core,
            limiter,
            waiters: Waiters::default(),
            timer: None,
            shutdowns: 0,
        };
        Self {
            hasher,
            state: Mutex::new(state),
            ended: Notify::new(),
        }
    }

    /// Waits until a shutdown has completed, or has been replaced by a later one.
    pub(crate) async fn wait_for(&self, shutdown: u64) {
        loop {
            // Created before the check: it receives notifications from its creation on, so one between the check and
            // the await is not lost.
            let ended = self.ended.notified();
            if self.is_over(shutdown) {
                return;
            }
            ended.await;
        }
    }

    /// Returns whether a shutdown has completed or has been replaced by a later one.
    fn is_over(&self, shutdown: u64) -> bool {
        let state = self.state.lock();
        state.core.is_finished() || state.shutdowns != shutdown
    }

    /// Changes the state and wakes the workers that the change concerns.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut QueueState<K, P>, Instant) -> T) -> T {
        // Read before the lock, to hold the lock for less time. So the times of two threads may be out of order by as
        // long as one waited; the core treats negative differences as zero.
        let now = now();
        let mut state = self.state.lock();
        let result = change(&mut state, now);
        self.wake(state, now);
        result
    }

    /// Releases the lock and wakes the workers that the last change concerns.
    pub(crate) fn wake(&self, mut state: MutexGuard<'_, QueueState<K, P>>, now: Instant) {
        // All workers return `None` now, so all are woken at once instead of one by one.
        if state.core.is_finished() {
            let wakers = state.waiters.wake_all();
            // Wakers run arbitrary code, which may use the queue, so they are called outside the lock.
            drop(state);
            wakers.into_iter().for_each(Waker::wake);
            self.ended.notify_waiters();
        } else {
            wake_one(state, now);
        }
    }
}

/// The verdicts on the lanes of a key, usually one or two.
pub(crate) type Verdicts<P> = SmallVec<[(LaneId, Verdict<P>); 2]>;

impl<K: Eq + Hash + Clone, P: Payload> QueueState<K, P> {
    /// Registers a waiting worker, with the timer if no other owns it for the deadline.
    pub(crate) fn join(&mut self) -> (u32, Option<Instant>) {
        let number = self.waiters.join();
        let deadline = self.unwatched_deadline();
        // Set under the same lock as the registration, so that exactly one worker owns the timer.
        if let Some(at) = deadline {
            self.timer = Some((at, number));
        }
        (number, deadline)
    }

    /// Unregisters a waiting worker and its timer.
    ///
    /// Returns whether it was woken or owned the timer: then another worker must take its place.
    fn leave(&mut self, waiter: u32) -> bool {
        let was_woken = self.waiters.leave(waiter);
        let had_timer = self.timer.is_some_and(|(_, watcher)| watcher == waiter);
        if had_timer {
            self.timer = None;
        }
        was_woken || had_timer
    }

    /// Returns the next deadline if no waiting worker would wake up by then.
    fn unwatched_deadline(&self) -> Option<Instant> {
        let next = self.core.next_deadline()?;
        // A timer for an earlier time suffices: its owner looks at the queue then and registers again for this
        // deadline.
        let is_watched = |(at, _): &(Instant, u32)| *at <= next;
        (!self.timer.as_ref().is_some_and(is_watched)).then_some(next)
    }
}

/// Releases the lock and wakes a worker if a key is ready or a deadline unwatched.
pub(crate) fn wake_one<K: Eq + Hash + Clone, P: Payload>(
    mut state: MutexGuard<'_, QueueState<K, P>>,
    now: Instant,
) {
    // The owner of the timer is woken last among several idle workers: it would give up the timer, and another worker
    // would have to take it over.
    let watcher = state.timer.map(|(_, waiter)| waiter);
    let has_ready = state.core.has_ready(now);
    // At most one worker is woken here, and it wakes the next one if there are more keys. Waking all would let them
    // contend for this lock.
    let waker = if has_ready {
        let keys = state.core.len();
        state.waiters.wake_for(keys, watcher)
    } else if state.unwatched_deadline().is_some() {
        match watcher {
            // The owner sleeps until a later time. Once woken, it registers again, for this deadline. Waking another
            // worker would work too, but then two would have timers.
            Some(watcher) => state.waiters.wake(watcher),
            None => state.waiters.wake_for(1, None),
        }
    } else {
        None
    };
    // The waker runs arbitrary code, so it is called outside the lock.
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// A registered waiting worker; unregisters when it is dropped.
pub(crate) struct Waiting<'a, K: Eq + Hash + Clone, P: Payload> {
    /// The queue.
    shared: &'a SharedQueue<K, P>,
    /// The worker's number in [`Waiters`].
    number: u32,
    /// Whether [`leave`](Self::leave) has unregistered it.
    has_left: bool,
}

impl<'a, K: Eq + Hash + Clone, P: Payload> Waiting<'a, K, P> {
    /// Represents a worker that has registered.
    pub(crate) fn new(shared: &'a SharedQueue<K, P>, number: u32) -> Self {
        Self {
            shared,
            number,
            has_left: false,
        }
    }

    /// Waits until the worker is woken.
    pub(crate) async fn woken(&self) {
        poll_fn(|cx| {
            let mut state = self.shared.state.lock();
            if state.waiters.poll(self.number, cx.waker()) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Unregisters the worker, which looks at the queue under the same lock.
    pub(crate) fn leave(mut self, state: &mut QueueState<K, P>) {
        // This worker uses the wake-up itself, so the drop below must not pass it on.
        self.has_left = true;
        state.leave(self.number);
    }
}

impl<K: Eq + Hash + Clone, P: Payload> Drop for Waiting<'_, K, P> {
    /// Passes the wake-up of a cancelled worker on to another one.
    fn drop(&mut self) {
        if self.has_left {
            return;
        }
        let mut state = self.shared.state.lock();
        // A worker that was woken, or whose timer was to fire, is cancelled here, for instance by a `select!`. No
        // other worker was woken for the key, so its wake-up passes on.
        if state.leave(self.number) {
            wake_one(state, now());
        }
    }
}

/// The waiting workers.
///
/// Usually the one that registered last is woken first, because the processor's caches contain its data. Everything
/// here happens under the lock of the queue: a worker looks for a key and registers in one step, and a change of the
/// queue picks a worker in the same step, so no wake-up is lost.
#[derive(Debug, Default)]
struct Waiters {
    /// The waiting workers by number; the numbers in `vacant` are free.
    all: Vec<Waiter>,
    /// The numbers that are not in use.
    vacant: Vec<u32>,
    /// The numbers of the workers that have not been woken, in order of registration.
    ///
    /// The order is approximate: removing a worker moves the last one to its position.
    idle: Vec<u32>,
    /// How many were woken and have not unregistered yet.
    woken: usize,
}

/// A waiting worker.
#[derive(Debug)]
struct Waiter {
    /// The worker's position in `idle`; `None` once it was woken.
    place: Option<u32>,
    /// Wakes its task; `None` until it is polled.
    waker: Option<Waker>,
}

impl Waiters {
    /// Registers a worker and returns its number.
    fn join(&mut self) -> u32 {
        let waiter = Waiter {
            place: Some(self.idle.len() as u32),
            waker: None,
        };
        let number = match self.vacant.pop() {
            // Numbers are used again, so `all` is as long as the most workers that ever waited at once.
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

    /// Returns whether a worker was woken; otherwise stores its waker.
    fn poll(&mut self, number: u32, waker: &Waker) -> bool {
        let waiter = &mut self.all[number as usize];
        if waiter.place.is_none() {
            return true;
        }
        match &mut waiter.waker {
            // `clone_from` keeps the stored waker if it wakes the same task.
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        false
    }

    /// Unregisters a worker; returns whether it was woken.
    fn leave(&mut self, number: u32) -> bool {
        self.vacant.push(number);
        let waiter = &mut self.all[number as usize];
        // Dropped now, not when the number is used again: a waker keeps its task alive.
        waiter.waker = None;
        let Some(place) = waiter.place else {
            self.woken -= 1;
            return true;
        };
        self.remove_idle(place);
        false
    }

    /// Wakes a worker unless `keys` workers are awake already; `last` only if alone.
    ///
    /// A woken worker may run late, if its thread is busy, so each is counted on for one key only.
    fn wake_for(&mut self, keys: usize, last: Option<u32>) -> Option<Waker> {
        // Enough workers are on their way. They will wake others if keys are left.
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

    /// Marks a worker as woken and returns its waker; `None` if it was woken before.
    fn wake(&mut self, number: u32) -> Option<Waker> {
        let waiter = &mut self.all[number as usize];
        let place = waiter.place.take()?;
        // Without a waker the worker has not been polled since it registered. Its first poll sees that it was woken.
        let waker = waiter.waker.take();
        // Counted until the worker unregisters, so that a change meanwhile does not wake a second worker for the same
        // key.
        self.woken += 1;
        self.remove_idle(place);
        waker
    }

    /// Marks all idle workers as woken and returns their wakers.
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

    /// Removes a position of `idle`; the last element moves there.
    fn remove_idle(&mut self, place: u32) {
        self.idle.swap_remove(place as usize);
        // The last worker has moved to this position and must know it.
        if let Some(moved) = self.idle.get(place as usize) {
            self.all[*moved as usize].place = Some(place);
        }
    }
}

/// Returns the time of tokio's clock, which tests can pause.
pub(crate) fn now() -> Instant {
    time::Instant::now().into_std()
}
