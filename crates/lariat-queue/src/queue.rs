//! The async shell: many producers, many workers, one timer.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time;

use crate::core::{Ageing, QueueCore, Taken, Verdict};
use crate::stats::QueueStats;
use crate::{Add, LaneId, Payload, Priority, RateLimiter, Work, lasso_default};

/// A work queue shared by producers and workers; a clone is the same queue.
///
/// Adding never waits. Time is tokio's clock.
pub struct WorkQueue<K: Eq + Hash + Clone, P: Payload + Clone = ()> {
    shared: Arc<Shared<K, P>>,
}

pub(crate) struct Shared<K, P> {
    state: Mutex<State<K, P>>,
    /// One permit or wake-up for each time there may be something new for one worker.
    wake: Notify,
}

struct State<K, P> {
    core: QueueCore<K, P>,
    limiter: Box<dyn RateLimiter>,
    /// The deadline some waiting worker sleeps until; the others sleep without a timer.
    armed: Option<Instant>,
}

impl<K: Eq + Hash + Clone, P: Payload + Clone> WorkQueue<K, P> {
    /// Makes an empty queue with its own rate limiter.
    #[must_use]
    pub fn new(ageing: Ageing, limiter: impl RateLimiter) -> Self {
        let state = State {
            core: QueueCore::new(ageing),
            limiter: Box::new(limiter),
            armed: None,
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                wake: Notify::new(),
            }),
        }
    }

    /// Adds a key; a queue that is shutting down ignores it.
    pub fn add(&self, key: K, add: Add<P>) {
        self.shared.change(|core, now| core.add(key, add, now));
    }

    /// Adds many keys under one lock.
    pub fn add_all(&self, adds: impl IntoIterator<Item = (K, Add<P>)>) {
        self.shared.change(|core, now| {
            for (key, add) in adds {
                core.add(key, add, now);
            }
        });
    }

    /// Waits for the next key; `None` once the queue is drained or has shut down, nothing is ready and
    /// no key is with a worker.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: a key is taken and returned in the same step.
    pub async fn take(&self) -> Option<Work<K, P>> {
        loop {
            // Made before the look, so that no wake-up falls between the look and the wait.
            let woken = self.shared.wake.notified();
            match self.shared.try_take() {
                Attempt::Taken(taken) => return Some(Work::new(Arc::clone(&self.shared), taken)),
                Attempt::Finished => return None,
                Attempt::Wait => woken.await,
                Attempt::WaitUntil(at) => {
                    let timer = Timer::new(&self.shared, at);
                    tokio::select! {
                        () = woken => {}
                        () = time::sleep_until(at.into()) => {}
                    }
                    timer.put_down();
                }
            }
        }
    }

    /// Takes the next key if there is one now.
    #[must_use]
    pub fn try_take(&self) -> Option<Work<K, P>> {
        let mut state = self.shared.state.lock();
        let taken = state.core.take(now())?;
        drop(state);
        Some(Work::new(Arc::clone(&self.shared), taken))
    }

    /// Keeps what comes due from now on for later: until [`resume`](Self::resume), only what is due at
    /// this moment is handed out, and [`take`](Self::take) returns `None` once that is done.
    pub fn drain(&self) {
        self.shared.change(|core, now| core.drain(now));
        self.shared.wake.notify_waiters();
    }

    /// Ends a drain; what came due meanwhile goes in line, in the order in which it came.
    pub fn resume(&self) {
        self.shared.change(|core, now| core.resume(now));
    }

    /// Refuses further adds and drops what is delayed; workers drain what is ready, then end.
    pub fn shut_down(&self) {
        self.shared.change(|core, _| core.shut_down());
        self.shared.wake.notify_waiters();
    }

    /// Accepts adds again after [`shut_down`](Self::shut_down).
    pub fn reopen(&self) {
        self.shared.change(|core, _| core.reopen());
    }

    /// Returns the keys that are ready, in no order.
    #[must_use]
    pub fn ready_keys(&self) -> Vec<K> {
        self.shared.state.lock().core.ready_keys()
    }

    /// Returns the figures of this moment.
    #[must_use]
    pub fn stats(&self) -> QueueStats {
        self.shared.state.lock().core.stats()
    }
}

impl<K: Eq + Hash + Clone, P: Payload + Clone> Default for WorkQueue<K, P> {
    /// Makes a queue with default ageing and lasso's retry curve.
    fn default() -> Self {
        Self::new(Ageing::default(), lasso_default())
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

enum Attempt<K, P> {
    Taken(Taken<K, P>),
    Finished,
    Wait,
    /// The caller is the one who holds the timer.
    WaitUntil(Instant),
}

impl<K: Eq + Hash + Clone, P: Payload + Clone> Shared<K, P> {
    fn try_take(&self) -> Attempt<K, P> {
        let mut state = self.state.lock();
        let now = now();
        if let Some(taken) = state.core.take(now) {
            // Wake-ups merge, so whoever takes one key passes the word on: that there are more, or
            // that nobody holds the timer.
            if state.core.has_ready(now) || state.wants_timer() {
                self.wake.notify_one();
            }
            return Attempt::Taken(taken);
        }
        if state.core.is_finished() {
            return Attempt::Finished;
        }
        match state.core.next_deadline() {
            Some(at) if state.wants_timer() => {
                state.armed = Some(at);
                Attempt::WaitUntil(at)
            }
            _ => Attempt::Wait,
        }
    }

    pub(crate) fn finish(
        &self,
        slot: u32,
        priority: Priority,
        verdicts: impl IntoIterator<Item = (LaneId, Verdict<P>)>,
    ) {
        self.change(|core, now| core.finish(slot, priority, verdicts, now));
    }

    pub(crate) fn give_back(&self, taken: Taken<K, P>) {
        self.change(|core, now| core.give_back(taken, now));
    }

    pub(crate) fn backoff(&self, failures: u32) -> Duration {
        self.state.lock().limiter.delay(failures)
    }

    /// Changes the core and wakes whom it concerns.
    fn change(&self, change: impl FnOnce(&mut QueueCore<K, P>, Instant)) {
        let mut state = self.state.lock();
        let now = now();
        change(&mut state.core, now);
        let wakes_one = state.core.has_ready(now) || state.wants_timer();
        let wakes_all = state.core.is_finished();
        drop(state);
        if wakes_all {
            self.wake.notify_waiters();
        } else if wakes_one {
            self.wake.notify_one();
        }
    }
}

impl<K: Eq + Hash + Clone, P: Payload + Clone> State<K, P> {
    /// Returns whether there is a deadline before which nobody would wake up.
    fn wants_timer(&self) -> bool {
        let deadline = self.core.next_deadline();
        deadline.is_some_and(|at| self.armed.is_none_or(|armed| at < armed))
    }
}

/// What the worker that sleeps until a deadline holds.
struct Timer<'a, K: Eq + Hash + Clone, P: Payload + Clone> {
    shared: &'a Shared<K, P>,
    at: Instant,
    /// The holder was cancelled, so another worker has to take over.
    abandoned: bool,
}

impl<'a, K: Eq + Hash + Clone, P: Payload + Clone> Timer<'a, K, P> {
    fn new(shared: &'a Shared<K, P>, at: Instant) -> Self {
        Self {
            shared,
            at,
            abandoned: true,
        }
    }

    /// Lets go of the timer in order to look at the queue again, which takes it up if needed.
    fn put_down(mut self) {
        self.abandoned = false;
    }
}

impl<K: Eq + Hash + Clone, P: Payload + Clone> Drop for Timer<'_, K, P> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        // An earlier deadline may have found another holder meanwhile.
        if state.armed == Some(self.at) {
            state.armed = None;
        }
        drop(state);
        if self.abandoned {
            self.shared.wake.notify_one();
        }
    }
}

fn now() -> Instant {
    time::Instant::now().into_std()
}
