//! The async shell: many producers, many workers, one timer.

use std::fmt;
use std::future::poll_fn;
use std::hash::Hash;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use tokio::sync::Notify;
use tokio::{task, time};

use crate::core::{Hasher, QueueCore, Taken, Verdict};
use crate::sleepers::Sleepers;
use crate::stats::QueueStats;
use crate::{
    Add, LaneId, Payload, Priority, QueueBuilder, QueueMemory, RateLimiter, Step, Tap, Work,
};

/// A work queue shared by producers and workers; a clone is the same queue.
///
/// Adding never waits. Time is tokio's clock.
pub struct WorkQueue<K: Eq + Hash + Clone, P: Payload + Clone = ()> {
    shared: Arc<Shared<K, P>>,
}

pub(crate) struct Shared<K, P> {
    /// The core's own, to hash outside its lock.
    hasher: Hasher,
    state: Mutex<State<K, P>>,
    /// Tells those who wait for the end of a shutdown.
    ended: Notify,
}

struct State<K, P> {
    core: QueueCore<K, P>,
    limiter: Box<dyn RateLimiter>,
    sleepers: Sleepers,
    /// The deadline some waiting worker sleeps until, and its seat; the others sleep without a timer.
    timer: Option<(Instant, u32)>,
    /// Counts shutdowns and reopenings, so that a later one ends the wait of an earlier.
    shutdowns: u64,
    tap: Option<Box<dyn Tap<K, P>>>,
}

impl<K: Eq + Hash + Clone> WorkQueue<K> {
    /// Begins to configure a queue.
    pub fn builder() -> QueueBuilder<K> {
        QueueBuilder::new()
    }
}

impl<K: Eq + Hash + Clone, P: Payload + Clone> WorkQueue<K, P> {
    pub(crate) fn from_parts(
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
            shared: Arc::new(Shared {
                hasher,
                state: Mutex::new(state),
                ended: Notify::new(),
            }),
        }
    }

    /// Adds a key; a queue that is shutting down ignores it.
    pub fn add(&self, key: K, add: Add<P>) {
        let hash = self.shared.hasher.hash(&key);
        let mut state = self.shared.state.lock();
        let at = state.tap.is_some().then(now);
        if let Some(at) = at {
            state.show_add(at, &key, &add, None);
        }
        let now = || at.unwrap_or_else(now);
        if let Some(now) = state.core.add_lazily((key, hash), add, now) {
            call(state, now);
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
                state.core.add_lazily((key, hash), add, || now);
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
        state.show(now, || Step::Forget { key, lane });
    }

    /// Waits for the next key; `None` once the queue is drained or has shut down, nothing is ready and
    /// no key is with a worker.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: a key is taken and returned in the same step.
    pub async fn take(&self) -> Option<Work<K, P>> {
        // Workers that never wait would otherwise keep the thread from everybody else.
        task::consume_budget().await;
        let mut seat = None;
        loop {
            let (number, deadline) = match self.shared.try_take(seat.take()) {
                Attempt::Taken(taken) => return Some(Work::new(Arc::clone(&self.shared), taken)),
                Attempt::Finished => return None,
                Attempt::Wait { seat, deadline } => (seat, deadline),
            };
            let waiting = seat.insert(Seat::new(&self.shared, number));
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

    /// Takes the next key if there is one now.
    #[must_use]
    pub fn try_take(&self) -> Option<Work<K, P>> {
        let now = now();
        let taken = self.shared.state.lock().take(now)?;
        Some(Work::new(Arc::clone(&self.shared), taken))
    }

    /// Keeps what comes due from now on for later: until [`resume`](Self::resume), only what is due at
    /// this moment is handed out, and [`take`](Self::take) returns `None` once that is done.
    pub fn drain(&self) {
        self.shared.change(|state, now| {
            state.core.drain(now);
            state.show(|| now, || Step::Drain);
        });
    }

    /// Ends a drain; what came due meanwhile goes in line, in the order in which it came.
    pub fn resume(&self) {
        self.shared.change(|state, now| {
            state.core.resume();
            state.show(|| now, || Step::Resume);
        });
    }

    /// Refuses further adds and drops what is delayed; workers drain what is ready, then end.
    pub fn shut_down(&self) {
        self.shared.shut_down(Ending::ShutDown);
    }

    /// Refuses further adds and drops what is delayed or ready; what is with workers is forgotten when
    /// it comes back, and then they end.
    pub fn shut_down_now(&self) {
        self.shared.shut_down(Ending::ShutDownNow);
    }

    /// Shuts down, and waits until everything that was ready has been handed out and every key is back
    /// from its worker; a later shutdown ends the wait at once.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the shutdown back; only the wait is lost.
    pub async fn shut_down_with_drain(&self) {
        let own = self.shared.shut_down(Ending::ShutDown);
        loop {
            let ended = self.shared.ended.notified();
            if self.shared.is_over(own) {
                return;
            }
            ended.await;
        }
    }

    /// Accepts adds again after a shutdown; whoever waits for its drain waits no longer.
    pub fn reopen(&self) {
        self.shared.shut_down(Ending::Reopen);
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

impl<K: Eq + Hash + Clone + 'static, P: Payload + Clone> Default for WorkQueue<K, P> {
    /// Makes a queue with default ageing, lasso's retry curve, and no groups.
    fn default() -> Self {
        QueueBuilder::new().build()
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

/// The ways to shut down, and back.
#[derive(Debug, Clone, Copy)]
enum Ending {
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
    /// Takes a key or a seat; a worker that comes back from its seat gives it up in the same step.
    fn try_take(&self, rising: Option<Seat<'_, K, P>>) -> Attempt<K, P> {
        let now = now();
        let mut state = self.state.lock();
        if let Some(seat) = rising {
            seat.give_up(&mut state);
        }
        if let Some(taken) = state.take(now) {
            // Calls merge, so whoever takes one key passes the word on: that there are more, or that
            // nobody holds the timer.
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

    /// Returns whether a shutdown is carried out, or was followed by another.
    fn is_over(&self, shutdown: u64) -> bool {
        let state = self.state.lock();
        state.core.is_finished() || state.shutdowns != shutdown
    }

    /// Shuts down in some way, or takes that back; returns the number of this step.
    fn shut_down(&self, how: Ending) -> u64 {
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

    /// Changes the state and calls whom it concerns.
    fn change<T>(&self, change: impl FnOnce(&mut State<K, P>, Instant) -> T) -> T {
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
    /// Shows a step to whoever wants to see them.
    fn show<'a>(&self, at: impl FnOnce() -> Instant, step: impl FnOnce() -> Step<'a, K, P>)
    where
        K: 'a,
        P: 'a,
    {
        if let Some(tap) = &self.tap {
            tap.step(at(), &step());
        }
    }

    fn show_add(&self, at: Instant, key: &K, add: &Add<P>, limited: Option<Duration>) {
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
    fn take(&mut self, now: Instant) -> Option<Taken<K, P>> {
        let before = self.core.released();
        let taken = self.core.take(now);
        match &taken {
            Some(taken) => self.show(|| now, || Step::Take(taken)),
            None => self.show_release(before, now),
        }
        taken
    }

    /// Shows that delays have ended, if that has changed anything.
    fn show_release(&self, before: u64, at: Instant) {
        if self.core.released() != before {
            self.show(|| at, || Step::Release);
        }
    }

    fn show_empty(&self, at: Instant) {
        if self.tap.is_some() && self.core.is_like_new() {
            self.show(|| at, || Step::Emptied);
        }
    }

    /// Gives up a seat, and the timer with it; tells whether it had been called or had the timer.
    fn rise(&mut self, seat: u32) -> bool {
        let was_called = self.sleepers.rise(seat);
        let had_timer = self.timer.is_some_and(|(_, watcher)| watcher == seat);
        if had_timer {
            self.timer = None;
        }
        was_called || had_timer
    }

    /// Returns the next deadline if nobody would wake up for it.
    fn unwatched_deadline(&self) -> Option<Instant> {
        let next = self.core.next_deadline()?;
        let is_watched = |(at, _): &(Instant, u32)| *at <= next;
        (!self.timer.as_ref().is_some_and(is_watched)).then_some(next)
    }
}

/// Calls a worker if there is something to do, or a deadline to watch over, and lets the state go.
fn call<K: Eq + Hash + Clone, P: Payload + Clone>(
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
            match state.sleepers.poll(self.number, cx.waker()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
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

fn now() -> Instant {
    time::Instant::now().into_std()
}
