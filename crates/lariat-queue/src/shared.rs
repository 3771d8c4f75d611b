//! The state that the handles of a queue share.
//!
//! It is the core behind a lock, the workers that wait, and the one timer.

use std::future::poll_fn;
use std::hash::Hash;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use tokio::sync::Notify;
use tokio::time;

use crate::core::{Hasher, QueueCore, Taken, Verdict};
use crate::sleepers::Sleepers;
use crate::{Add, LaneId, Payload, Priority, RateLimiter, Step, Tap};

/// A queue as its handles and the work in progress share it.
pub(crate) struct Shared<K, P> {
    /// The core's own, to hash outside its lock.
    pub(crate) hasher: Hasher,
    pub(crate) state: Mutex<State<K, P>>,
    /// Wakes those who wait for the end of a shutdown.
    ended: Notify,
}

/// What the lock guards.
pub(crate) struct State<K, P> {
    pub(crate) core: QueueCore<K, P>,
    pub(crate) limiter: Box<dyn RateLimiter>,
    sleepers: Sleepers,
    /// The deadline that one waiting worker sleeps until, and its seat.
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
    Taken(Taken<K, P>),
    Finished,
    /// The caller has a seat, and holds the timer if it is given a deadline.
    Wait {
        seat: u32,
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
            sleepers: Sleepers::default(),
            timer: None,
            shutdowns: 0,
            tap,
        };
        Self {
            hasher,
            state: Mutex::new(state),
            ended: Notify::new(),
        }
    }

    /// Waits for the next key; none once there is nothing left to wait for.
    pub(crate) async fn take(&self) -> Option<Taken<K, P>> {
        let mut seat = None;
        loop {
            let (number, deadline) = match self.try_take(seat.take()) {
                Attempt::Taken(taken) => return Some(taken),
                Attempt::Finished => return None,
                Attempt::Wait { seat, deadline } => (seat, deadline),
            };
            let waiting = seat.insert(Seat::new(self, number));
            match deadline {
                None => waiting.called().await,
                Some(at) => tokio::select! {
                    biased;
                    () = waiting.called() => {}
                    () = time::sleep_until(at.into()) => {}
                },
            }
        }
    }

    /// Takes a key, or a seat to wait for one.
    ///
    /// A worker that comes back from its seat gives it up in the same step.
    fn try_take(&self, rising: Option<Seat<'_, K, P>>) -> Attempt<K, P> {
        let now = now();
        let mut state = self.state.lock();
        if let Some(seat) = rising {
            seat.give_up(&mut state);
        }
        if let Some(taken) = state.take(now) {
            // Calls merge, so a worker that takes one key wakes the next, if there are more keys or no worker
            // holds the timer.
            call(state, now);
            return Attempt::Taken(taken);
        }
        if state.core.is_finished() {
            return Attempt::Finished;
        }
        let seat = state.sleepers.sit();
        let deadline = state.unwatched_deadline();
        if let Some(at) = deadline {
            state.timer = Some((at, seat));
        }
        Attempt::Wait { seat, deadline }
    }

    pub(crate) fn finish(
        &self,
        slot: u32,
        priority: Priority,
        verdicts: impl IntoIterator<Item = (LaneId, Verdict<P>)>,
    ) {
        // Collected before, because what makes them may panic or use the queue.
        let verdicts: SmallVec<[_; 2]> = verdicts.into_iter().collect();
        self.change(|state, now| {
            let key = || state.core.key_at(slot);
            let finish = || Step::Finish {
                key: key(),
                verdicts: &verdicts,
            };
            state.show(|| now, finish);
            state.core.finish(slot, priority, verdicts, now);
            state.show_empty(now);
        });
    }

    pub(crate) fn give_back(&self, taken: Taken<K, P>) {
        self.change(|state, now| {
            state.show(|| now, || Step::GiveBack { key: &taken.key });
            state.core.give_back(taken, now);
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
        let mut state = self.state.lock();
        let result = change(&mut state, now);
        if state.core.is_finished() {
            let wakers = state.sleepers.call_all();
            drop(state);
            wakers.into_iter().for_each(Waker::wake);
            self.ended.notify_waiters();
        } else {
            call(state, now);
        }
        result
    }
}

impl<K: Eq + Hash + Clone, P: Payload + Clone> State<K, P> {
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

    /// Takes a key out, and shows it; also where none is handed out delays may end.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Taken<K, P>> {
        let before = self.core.released();
        let taken = self.core.take(now);
        match &taken {
            Some(taken) => self.show(|| now, || Step::Take(taken)),
            None => self.show_release(before, now),
        }
        taken
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

    /// Gives up a seat and its timer; returns whether it was called or had the timer.
    fn rise(&mut self, seat: u32) -> bool {
        let was_called = self.sleepers.rise(seat);
        let had_timer = self.timer.is_some_and(|(_, watcher)| watcher == seat);
        if had_timer {
            self.timer = None;
        }
        was_called || had_timer
    }

    /// Returns the next deadline if no worker would wake up for it.
    fn unwatched_deadline(&self) -> Option<Instant> {
        let next = self.core.next_deadline()?;
        let is_watched = |(at, _): &(Instant, u32)| *at <= next;
        (!self.timer.as_ref().is_some_and(is_watched)).then_some(next)
    }
}

/// Releases the lock, and wakes a worker if a key or a deadline waits for one.
pub(crate) fn call<K: Eq + Hash + Clone, P: Payload + Clone>(
    mut state: MutexGuard<'_, State<K, P>>,
    now: Instant,
) {
    let watcher = state.timer.map(|(_, seat)| seat);
    let released = state.core.released();
    let has_ready = state.core.has_ready(now);
    state.show_release(released, now);
    let waker = if has_ready {
        let keys = state.core.len();
        state.sleepers.call(keys, watcher)
    } else if state.unwatched_deadline().is_some() {
        match watcher {
            // Whoever sleeps until a later time sits down again until this one.
            Some(watcher) => state.sleepers.call_seat(watcher),
            None => state.sleepers.call(1, None),
        }
    } else {
        None
    };
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// The seat of a waiting worker, which is given up however the wait ends.
struct Seat<'a, K: Eq + Hash + Clone, P: Payload + Clone> {
    shared: &'a Shared<K, P>,
    number: u32,
    given_up: bool,
}

impl<'a, K: Eq + Hash + Clone, P: Payload + Clone> Seat<'a, K, P> {
    fn new(shared: &'a Shared<K, P>, number: u32) -> Self {
        Self {
            shared,
            number,
            given_up: false,
        }
    }

    /// Waits until the seat is called.
    async fn called(&self) {
        poll_fn(|cx| {
            let mut state = self.shared.state.lock();
            if state.sleepers.poll(self.number, cx.waker()) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Leaves the seat in order to look at the queue.
    fn give_up(mut self, state: &mut State<K, P>) {
        self.given_up = true;
        state.rise(self.number);
    }
}

impl<K: Eq + Hash + Clone, P: Payload + Clone> Drop for Seat<'_, K, P> {
    /// A worker that was cancelled: another has to do what this one was called for.
    fn drop(&mut self) {
        if self.given_up {
            return;
        }
        let mut state = self.shared.state.lock();
        if state.rise(self.number) {
            call(state, now());
        }
    }
}

/// Returns the time by tokio's clock.
pub(crate) fn now() -> Instant {
    time::Instant::now().into_std()
}
