//! A lane: one registered handler, its options, limits and counters.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lariat_cache::{CachedObject, Change, ClientIdentity};
use lariat_queue::{LaneId, Priority, RateLimiter};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::awaited::Awaited;
use super::given_up::GivenUp;
use crate::failures::Failures;
use crate::handler::{AnyHandler, Callee, DelayOf, HandlerOptions, KeySource, Predicate, Resync};
use crate::status::HandlerStatus;
use crate::totals::{CallOutcome, Totals};

/// A registered handler, with its options, limits and counters.
pub(crate) struct Lane {
    pub(super) id: LaneId,
    callee: Arc<Callee>,
    pub(super) options: HandlerOptions,
    limiter: Option<Mutex<Box<dyn RateLimiter>>>,
    awaited: Awaited,
    failures: Failures,
    given_up: GivenUp,
    in_flight: Arc<InFlight>,
    totals: Mutex<Totals>,
    /// Whether starts do without the kind's cache, as far as this handler is concerned.
    is_optional: bool,
    /// The totals of the kind's removed handlers, once this one is removed.
    gone: OnceLock<Arc<Mutex<Totals>>>,
}

/// The number of the next lane.
///
/// Numbers are unique in the process and never reused, so a key that is still queued for a removed lane is never taken
/// for one of its successor.
static LANES: AtomicU32 = AtomicU32::new(0);

/// The shortest resync period, as in client-go.
const SHORTEST_RESYNC: Duration = Duration::from_secs(1);

/// The longest delay of calls that are part of a hot loop: shorter than the time after which runs are not in a row.
const LONGEST_HOT_LOOP_DELAY: Duration = Duration::from_secs(60);

impl Lane {
    pub(crate) fn new(
        name: &str,
        handler: Box<dyn AnyHandler>,
        options: HandlerOptions,
        is_optional: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            id: LaneId::new(LANES.fetch_add(1, Ordering::Relaxed)),
            is_optional,
            callee: Arc::new(Callee {
                name: name.into(),
                handler,
                middleware: options.all_middleware(),
                identity: options.identity.clone(),
                gates: options.gates.as_slice().into(),
            }),
            // The options may be the defaults of a kind or a factory; each lane gets a limiter of its own.
            limiter: options.limiter.as_ref().map(|make| Mutex::new(make())),
            options,
            awaited: Awaited::default(),
            failures: Failures::default(),
            given_up: GivenUp::default(),
            in_flight: Arc::default(),
            totals: Mutex::default(),
            gone: OnceLock::new(),
        })
    }

    pub(crate) fn id(&self) -> LaneId {
        self.id
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.callee.name
    }

    /// Returns whether the handler's options limit how long a call takes.
    pub(crate) fn is_limited(&self) -> bool {
        self.options.timeout.is_some_and(|limit| !limit.is_zero())
    }

    pub(crate) fn handler(&self) -> &dyn AnyHandler {
        &*self.callee.handler
    }

    /// Returns the handler with its middleware, for a call.
    pub(crate) fn callee(&self) -> &Arc<Callee> {
        &self.callee
    }

    /// Returns how many calls may run at once, if that is limited.
    pub(crate) fn limit(&self) -> Option<usize> {
        self.options.concurrency
    }

    /// Returns whether the handler begins with a pause.
    pub(crate) fn begins_paused(&self) -> bool {
        self.options.is_paused
    }

    /// Returns the related caches that the handler waits for.
    pub(crate) fn awaited(&self) -> &Awaited {
        &self.awaited
    }

    /// Returns the recent failures, and the keys that are retried after them.
    pub(crate) fn failures(&self) -> &Failures {
        &self.failures
    }

    /// Returns the keys whose last call failed for good.
    pub(crate) fn given_up(&self) -> &GivenUp {
        &self.given_up
    }

    /// Returns the token that deregisters the handler when it is cancelled.
    pub(crate) fn until(&self) -> Option<&CancellationToken> {
        self.options.until.as_ref()
    }

    pub(crate) fn is_optional(&self) -> bool {
        self.is_optional
    }

    /// Returns whether the handler's token is cancelled.
    pub(crate) fn is_over(&self) -> bool {
        self.until().is_some_and(CancellationToken::is_cancelled)
    }

    /// Begins a call; `None` once the handler is deregistered.
    pub(crate) fn enter(&self) -> Option<Inside<'_>> {
        if self.is_over() {
            return None;
        }
        // Refuses as well: a lane that was removed without a token is closed.
        self.in_flight.enter()
    }

    /// Prevents further calls.
    pub(super) fn close(&self) {
        self.in_flight.close();
    }

    /// Returns whether the handler is deregistered.
    pub(crate) fn is_closed(&self) -> bool {
        self.in_flight.calls.lock().closed
    }

    /// Returns the running calls.
    pub(crate) fn in_flight(&self) -> &Arc<InFlight> {
        &self.in_flight
    }

    /// Waits until no call is running. Call it after the lane was removed from the list.
    pub(crate) async fn ended(&self) {
        self.in_flight.empty().await;
    }

    /// Returns whether every change and every resync of the kind calls the handler.
    pub(super) fn takes_all(&self) -> bool {
        self.options.predicate.is_none()
            && self.resync() == Resync::OfKind
            && self.debounce().is_none()
    }

    /// Returns how long the handler waits after a change for further ones.
    pub(super) fn debounce(&self) -> Option<Duration> {
        self.options.debounce.filter(|period| !period.is_zero())
    }

    /// Returns the delay of calls that are part of a hot loop.
    pub(crate) fn hot_loop_delay(&self) -> Option<Duration> {
        let delay = self.options.slow_hot_loops.filter(|delay| !delay.is_zero());
        delay.map(|delay| delay.min(LONGEST_HOT_LOOP_DELAY))
    }

    fn resync(&self) -> Resync {
        self.options.resync.unwrap_or_default()
    }

    /// Returns the streams of keys that call the handler.
    pub(crate) fn sources(&self) -> &[KeySource] {
        &self.options.sources
    }

    /// Returns the handler's own resync period, if it has one.
    pub(crate) fn resync_period(&self) -> Option<Duration> {
        match self.resync() {
            Resync::Every(period) => Some(period.max(SHORTEST_RESYNC)),
            _ => None,
        }
    }

    /// Returns whether the handler is called for a change.
    pub(crate) fn wants(&self, change: &Change) -> bool {
        // A handler with a period of its own is resynced by the supervisor, and one with `Never` not at all.
        if matches!(change, Change::Resynced { .. }) && self.resync() != Resync::OfKind {
            return false;
        }
        // A restored state may have the generation and the labels of another one.
        if change.is_rewound() {
            return true;
        }
        let predicate = self.options.predicate.as_ref();
        let also = self.options.also.as_ref();
        predicate.is_none_or(|predicate| predicate.wants(change))
            || also.is_some_and(|also| also.wants(change))
    }

    /// Returns whether the handler wants additions, or updates that change nothing, of an object in this state.
    ///
    /// It is asked about a key that comes from another member, which may have had to call it for an earlier change.
    pub(crate) fn may_want(&self, object: &Arc<CachedObject>) -> bool {
        let Some(predicate) = &self.options.predicate else {
            return true;
        };
        let object = || Arc::clone(object);
        let (initial, old, new) = (true, object(), object());
        let changes = [
            Change::Added {
                object: object(),
                initial,
            },
            Change::Updated { old, new },
        ];
        let asks = |predicate: &Predicate| changes.iter().any(|change| predicate.wants(change));
        asks(predicate) || self.options.also.as_ref().is_some_and(asks)
    }

    /// Returns the handler's own priority, or else the usual one.
    pub(crate) fn priority(&self, usual: Priority) -> Priority {
        self.options.priority.unwrap_or(usual)
    }

    /// Returns the backoff of the handler's own limiter, if it has one.
    pub(crate) fn backoff(&self, failures: u32) -> Option<Duration> {
        // A limiter has state, such as that of a token bucket, which calls for different keys share.
        let mut limiter = self.limiter.as_ref()?.lock();
        Some(limiter.delay(failures, Instant::now().into_std()))
    }

    /// Returns whether a number of failures in a row exhausts the retries.
    pub(crate) fn is_exhausted(&self, failures: u32) -> bool {
        let retries = self.options.max_retries;
        retries.is_some_and(|retries| failures > retries)
    }

    /// Returns the delay until the next call after a final failure.
    ///
    /// None means that only a change or a request calls the handler again.
    pub(crate) fn after_final_failure(
        &self,
        object: Option<&Arc<CachedObject>>,
    ) -> Option<Duration> {
        self.ask(
            "requeue_final",
            self.options.requeue_final.as_deref()?,
            object,
        )
    }

    /// Returns the longest delay of a retry, if the options set one.
    ///
    /// `newest` is called only in that case.
    pub(crate) fn longest_retry(
        &self,
        newest: impl FnOnce() -> Option<Arc<CachedObject>>,
    ) -> Option<Duration> {
        let most = self.options.retry_within.as_deref()?;
        self.ask("retry_within", most, newest().as_ref())
    }

    /// Calls a function of the options. It is the user's, and a panic in it must not end the worker.
    fn ask(
        &self,
        option: &str,
        delay: &DelayOf,
        object: Option<&Arc<CachedObject>>,
    ) -> Option<Duration> {
        let answer = catch_unwind(AssertUnwindSafe(|| delay(object)));
        answer.unwrap_or_else(|_| {
            let handler = &self.callee.name;
            tracing::error!(%handler, "{option} function panicked");
            None
        })
    }

    /// Counts a call. `is_immediate` if it asked for an immediate requeue.
    pub(crate) fn count(
        &self,
        ended: CallOutcome,
        attempt: u32,
        took: Duration,
        is_immediate: bool,
    ) {
        self.tally(|totals| totals.count(ended, attempt, took, is_immediate));
    }

    pub(crate) fn count_lag(&self, lag: Duration) {
        self.tally(|totals| totals.lags.record(lag));
    }

    pub(crate) fn count_exhausted(&self) {
        self.tally(|totals| totals.exhausted += 1);
    }

    /// Counts in the lane's totals, and for a removed lane in the common ones too.
    fn tally(&self, count: impl Fn(&mut Totals)) {
        let mut totals = self.totals.lock();
        count(&mut totals);
        // The call ended after the lane was removed. `leave` merged the totals under the same lock, without this call.
        if let Some(gone) = self.gone.get() {
            count(&mut gone.lock());
        }
    }

    /// Calls the user's end functions. Call it once, and without locks, since they may block.
    pub(super) fn end(&self) {
        for end in &self.options.ends {
            // The function is the user's; its panic must not reach the task that removes the handler.
            if catch_unwind(AssertUnwindSafe(|| end())).is_err() {
                let handler = &self.callee.name;
                tracing::error!(%handler, "on_end function panicked");
            }
        }
    }

    /// Returns the identity of the handler's writes; none for the factory's client.
    pub(crate) fn identity(&self) -> Option<&ClientIdentity> {
        self.callee.identity.as_ref()
    }

    /// Adds the totals to those of removed lanes, now and for calls that end later.
    pub(super) fn leave(&self, gone: &Arc<Mutex<Totals>>) {
        // `tally` takes the same lock: a call is counted either before the merge, or after it in both totals.
        let totals = self.totals.lock();
        if self.gone.set(Arc::clone(gone)).is_ok() {
            gone.lock().merge(&totals);
        }
    }

    pub(crate) fn status(&self) -> HandlerStatus {
        HandlerStatus::new(Arc::clone(&self.callee.name), self.totals.lock().clone())
    }
}

/// Counts running calls, and refuses further calls once it is closed.
#[derive(Default)]
pub(crate) struct InFlight {
    calls: Mutex<Calls>,
    left: Notify,
}

#[derive(Default)]
struct Calls {
    closed: bool,
    inside: usize,
}

/// A running call; dropping it ends the call.
pub(crate) struct Inside<'a>(&'a InFlight);

impl InFlight {
    /// Begins a call; `None` once it is closed.
    fn enter(&self) -> Option<Inside<'_>> {
        let mut calls = self.calls.lock();
        if calls.closed {
            return None;
        }
        // Counted under the lock that `close` takes. So once `close` has returned, no call begins, and `empty` sees
        // every call that has begun.
        calls.inside += 1;
        Some(Inside(self))
    }

    /// Returns how many calls are running.
    pub(crate) fn running(&self) -> usize {
        self.calls.lock().inside
    }

    /// Prevents further calls.
    fn close(&self) {
        self.calls.lock().closed = true;
    }

    /// Waits until no call is running. Close it first, so that none begins afterwards.
    async fn empty(&self) {
        loop {
            // Created before the count is read, so that the end of a call in between is not missed.
            let left = self.left.notified();
            if self.calls.lock().inside == 0 {
                return;
            }
            left.await;
        }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        // Also reached by a call that is aborted or panics, so a deregistration never waits for a call that is gone.
        let mut calls = self.0.calls.lock();
        calls.inside -= 1;
        if calls.inside == 0 {
            self.0.left.notify_waiters();
        }
    }
}
