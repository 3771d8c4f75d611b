//! The state that the handles of a queue share.
//!
//! It is the core behind a lock, the workers that wait, and the one timer.

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
use crate::waiters::Waiters;
use crate::{Add, LaneId, Payload, Priority, RateLimiter, Step, Tap};

/// How often a worker tries the lock before it parks: some microseconds.
const WORKER_SPINS: u32 = 256;

/// How often a producer looks whether workers still want the lock: at most a microsecond or two.
const PRODUCER_SPINS: u32 = 32;

/// A queue as its handles and the work in progress share it.
pub(crate) struct Shared<K, P> {
    /// The core's own, to hash outside its lock.
    pub(crate) hasher: Hasher,
    pub(crate) state: Mutex<State<K, P>>,
    /// How many workers want the lock, and did not get it at once.
    starved: AtomicUsize,
    /// Wakes those who wait for the end of a shutdown.
    ended: Notify,
}

/// What the lock guards.
pub(crate) struct State<K, P> {
    pub(crate) core: QueueCore<K, P>,
    pub(crate) limiter: Box<dyn RateLimiter>,
    waiters: Waiters,
    /// The deadline that one waiter sleeps until, and its number.
    ///
    /// The others sleep without a timer.
    timer: Option<(Instant, u32)>,
    /// Counts shutdowns and reopenings: a later one ends the wait of an earlier.
    shutdowns: u64,
    pub(crate) tap: Option<Box<dyn Tap<K, P>>>,
}

/// The ways to shut down, and back.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ending {
    ShutDown,
    ShutDownNow,
    Reopen,
}

impl Ending {
    fn step<'a, K, P>(self) -> Step<'a, K, P> {
        match self {
            Self::ShutDown => Step::ShutDown { now: false },
            Self::ShutDownNow => Step::ShutDown { now: true },
            Self::Reopen => Step::Reopen,
        }
    }
}

enum Attempt<K, P> {
    Got(Item<K, P>),
    Finished,
    /// The caller is a waiter, and has the timer if it is given a deadline.
    Wait {
        number: u32,
        deadline: Option<Instant>,
    },
}

impl<K: Eq + Hash + Clone, P: Payload + Clone> Shared<K, P> {
    pub(crate) fn new(
        core: QueueCore<K, P>,
        limiter: Box<dyn RateLimiter>,
        tap: Option<Box<dyn Tap<K, P>>>,
    ) -> Self {
        let hasher = core.hasher().clone();
        let state = State {
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

    /// Waits for the next key; none once there is nothing left to wait for.
    pub(crate) async fn get(&self) -> Option<Item<K, P>> {
        let mut waiting = None;
        loop {
            let (number, deadline) = match self.get_or_join(waiting.take()) {
                Attempt::Got(item) => return Some(item),
                Attempt::Finished => return None,
                Attempt::Wait { number, deadline } => (number, deadline),
            };
            let waiting = waiting.insert(Waiting::new(self, number));
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
        let mut state = self.lock_as_worker();
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
        let number = state.waiters.join();
        let deadline = state.unwatched_deadline();
        if let Some(at) = deadline {
            state.timer = Some((at, number));
        }
        Attempt::Wait { number, deadline }
    }

    /// Gets a key if there is one now.
    pub(crate) fn try_get(&self) -> Option<Item<K, P>> {
        let now = now();
        self.lock_as_worker().get(now)
    }

    /// Takes the lock ahead of producers, which give way for a moment.
    ///
    /// A producer that releases the lock and takes it again at once gets it nearly always: a parked thread needs many times as
    /// long to wake up as an add takes. So workers spin, and producers look at `starved` first.
    fn lock_as_worker(&self) -> MutexGuard<'_, State<K, P>> {
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

    /// Takes the lock to add keys; gives way to workers that want it.
    pub(crate) fn lock_as_producer(&self) -> MutexGuard<'_, State<K, P>> {
        for _ in 0..PRODUCER_SPINS {
            if self.starved.load(Ordering::Relaxed) == 0 {
                break;
            }
            hint::spin_loop();
        }
        self.state.lock()
    }

    pub(crate) fn done(
        &self,
        slot: u32,
        priority: Priority,
        verdicts: impl IntoIterator<Item = (LaneId, Verdict<P>)>,
    ) {
        // Collected before, because what makes them may panic or use the queue.
        let verdicts: Verdicts<P> = verdicts.into_iter().collect();
        let now = now();
        let mut state = self.lock_as_worker();
        state.done(slot, priority, verdicts, now);
        self.wake(state, now);
    }

    pub(crate) fn done_and_try_get(
        &self,
        slot: u32,
        priority: Priority,
        verdicts: impl IntoIterator<Item = (LaneId, Verdict<P>)>,
    ) -> Option<Item<K, P>> {
        let verdicts: Verdicts<P> = verdicts.into_iter().collect();
        let now = now();
        let mut state = self.lock_as_worker();
        state.done(slot, priority, verdicts, now);
        let item = state.get(now);
        self.wake(state, now);
        item
    }

    pub(crate) fn give_back(&self, item: Item<K, P>) {
        self.change(|state, now| {
            state.show(|| now, || Step::GiveBack { key: &item.key });
            state.core.give_back(item, now);
            state.show_empty(now);
        });
    }

    pub(crate) fn backoff(&self, failures: u32) -> Duration {
        self.state.lock().limiter.delay(failures, now())
    }

    /// Waits until a shutdown is carried out, or followed by another.
    pub(crate) async fn wait_for(&self, shutdown: u64) {
        loop {
            let ended = self.ended.notified();
            if self.is_over(shutdown) {
                return;
            }
            ended.await;
        }
    }

    /// Returns whether a shutdown is carried out, or was followed by another.
    fn is_over(&self, shutdown: u64) -> bool {
        let state = self.state.lock();
        state.core.is_finished() || state.shutdowns != shutdown
    }

    /// Shuts down in some way, or takes that back; returns the number of this step.
    pub(crate) fn shut_down(&self, how: Ending) -> u64 {
        let number = self.change(|state, now| {
            match how {
                Ending::ShutDown => state.core.shut_down(),
                Ending::ShutDownNow => state.core.shut_down_now(),
                Ending::Reopen => state.core.reopen(),
            }
            state.show(|| now, || how.step());
            state.show_empty(now);
            state.shutdowns += 1;
            state.shutdowns
        });
        self.ended.notify_waiters();
        number
    }

    /// Changes the state, and wakes the workers that it concerns.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State<K, P>, Instant) -> T) -> T {
        let now = now();
        let mut state = self.lock_as_producer();
        let result = change(&mut state, now);
        self.wake(state, now);
        result
    }

    /// Releases the lock, and wakes the workers that a change concerns.
    fn wake(&self, mut state: MutexGuard<'_, State<K, P>>, now: Instant) {
        if state.core.is_finished() {
            let wakers = state.waiters.wake_all();
            drop(state);
            wakers.into_iter().for_each(Waker::wake);
            self.ended.notify_waiters();
        } else {
            wake_one(state, now);
        }
    }
}

/// The verdicts on the lanes of a key, which are one or two as a rule.
type Verdicts<P> = SmallVec<[(LaneId, Verdict<P>); 2]>;

impl<K: Eq + Hash + Clone, P: Payload + Clone> State<K, P> {
    /// Gets a key, and shows it; also where there is none delays may end.
    fn get(&mut self, now: Instant) -> Option<Item<K, P>> {
        let before = self.core.released();
        let item = self.core.get(now);
        match &item {
            Some(item) => self.show(|| now, || Step::Get(item)),
            None => self.show_release(before, now),
        }
        item
    }

    fn done(&mut self, slot: u32, priority: Priority, verdicts: Verdicts<P>, now: Instant) {
        let key = || self.core.key_at(slot);
        let done = || Step::Done {
            key: key(),
            verdicts: &verdicts,
        };
        self.show(|| now, done);
        self.core.done(slot, priority, verdicts, now);
        self.show_empty(now);
    }

    /// Shows a step to the tap, if there is one.
    pub(crate) fn show<'a>(
        &self,
        at: impl FnOnce() -> Instant,
        step: impl FnOnce() -> Step<'a, K, P>,
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
            || Step::Add {
                key,
                request: add.into(),
                limited,
                group: self.core.group_of(key),
            },
        );
    }

    /// Shows that delays have ended, if that has changed anything.
    pub(crate) fn show_release(&self, before: u64, at: Instant) {
        if self.core.released() != before {
            self.show(|| at, || Step::Release);
        }
    }

    fn show_empty(&self, at: Instant) {
        if self.tap.is_some() && self.core.is_like_new() {
            self.show(|| at, || Step::Emptied);
        }
    }

    /// Removes a waiter and its timer; returns whether it was woken or had the timer.
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

/// Releases the lock, and wakes a worker if a key or a deadline waits for one.
pub(crate) fn wake_one<K: Eq + Hash + Clone, P: Payload + Clone>(
    mut state: MutexGuard<'_, State<K, P>>,
    now: Instant,
) {
    let watcher = state.timer.map(|(_, waiter)| waiter);
    let released = state.core.released();
    let has_ready = state.core.has_ready(now);
    state.show_release(released, now);
    let waker = if has_ready {
        let keys = state.core.len();
        state.waiters.wake_for(keys, watcher)
    } else if state.unwatched_deadline().is_some() {
        match watcher {
            // The one that sleeps until a later time joins again until this one.
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

/// A worker that waits, until it leaves or is dropped.
struct Waiting<'a, K: Eq + Hash + Clone, P: Payload + Clone> {
    shared: &'a Shared<K, P>,
    number: u32,
    has_left: bool,
}

impl<'a, K: Eq + Hash + Clone, P: Payload + Clone> Waiting<'a, K, P> {
    fn new(shared: &'a Shared<K, P>, number: u32) -> Self {
        Self {
            shared,
            number,
            has_left: false,
        }
    }

    async fn woken(&self) {
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

    /// Leaves in order to look at the queue.
    fn leave(mut self, state: &mut State<K, P>) {
        self.has_left = true;
        state.leave(self.number);
    }
}

impl<K: Eq + Hash + Clone, P: Payload + Clone> Drop for Waiting<'_, K, P> {
    /// A worker that was cancelled: another has to do what this one was woken for.
    fn drop(&mut self) {
        if self.has_left {
            return;
        }
        let mut state = self.shared.lock_as_worker();
        if state.leave(self.number) {
            wake_one(state, now());
        }
    }
}

/// Returns the time by tokio's clock.
pub(crate) fn now() -> Instant {
    time::Instant::now().into_std()
}
