//! One registered handler: what it wants, how it is called, and what came of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lariat_cache::{CachedObject, Change, ClientIdentity};
use lariat_core::ObjectKey;
use lariat_queue::{LaneId, Priority, RateLimiter};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::waiting::{Hold, Limit};
use crate::gate::{Gate, Gated};
use crate::handler::{AnyHandler, Callee, HandlerOptions, Resync};
use crate::status::HandlerStatus;
use crate::totals::{Ended, Totals};

/// One registered handler.
pub(crate) struct Lane {
    pub(super) id: LaneId,
    callee: Arc<Callee>,
    /// Who is asked before the handler writes.
    gates: Arc<[Arc<dyn Gate>]>,
    pub(super) options: HandlerOptions,
    limiter: Option<Mutex<Box<dyn RateLimiter>>>,
    limit: Option<Limit>,
    hold: Hold,
    in_flight: InFlight,
    totals: Mutex<Totals>,
    /// A start does not wait for the kind on its account.
    is_optional: bool,
    /// What counts for the handlers of the kind that are gone, once this one is.
    gone: OnceLock<Arc<Mutex<Totals>>>,
}

/// Counts lanes; those of one kind are distinguished by their numbers.
static LANES: AtomicU32 = AtomicU32::new(0);

/// The shortest period of a resync: client-go's.
const SHORTEST_RESYNC: Duration = Duration::from_secs(1);

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
            }),
            gates: options.gates.as_slice().into(),
            limiter: options.limiter.as_ref().map(|make| Mutex::new(make())),
            limit: options.concurrency.map(Limit::new),
            options,
            hold: Hold::default(),
            in_flight: InFlight::default(),
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

    pub(crate) fn handler(&self) -> &dyn AnyHandler {
        &*self.callee.handler
    }

    /// Returns the handler as calls of it know it.
    pub(crate) fn callee(&self) -> &Arc<Callee> {
        &self.callee
    }

    /// Returns the call of the handler for a key, if somebody is to be asked before it writes.
    pub(crate) fn gated(
        &self,
        key: &ObjectKey,
        object: Option<&Arc<CachedObject>>,
    ) -> Option<Gated> {
        let gates = &self.gates;
        (!gates.is_empty()).then(|| Gated::new(&self.callee.name, gates, key, object))
    }

    pub(crate) fn limit(&self) -> Option<&Limit> {
        self.limit.as_ref()
    }

    /// Returns what keeps keys for which the handler cannot be called yet.
    pub(crate) fn hold(&self) -> &Hold {
        &self.hold
    }

    /// Returns how many keys wait for the handler without a worker.
    pub(crate) fn waiting(&self) -> usize {
        self.hold.waiting() + self.limit.as_ref().map_or(0, Limit::waiting)
    }

    /// Returns how many keys are in line before the handler, and how many may be.
    pub(crate) fn in_line(&self) -> (usize, usize) {
        self.limit.as_ref().map_or((0, 0), Limit::in_line)
    }

    /// Returns for how many keys a place is kept, and for how many at most.
    pub(crate) fn kept(&self) -> (usize, usize) {
        self.limit.as_ref().map_or((0, 0), Limit::kept)
    }

    /// Returns the token whose end is the handler's.
    pub(crate) fn until(&self) -> Option<&CancellationToken> {
        self.options.until.as_ref()
    }

    pub(crate) fn is_optional(&self) -> bool {
        self.is_optional
    }

    pub(crate) fn is_over(&self) -> bool {
        self.until().is_some_and(CancellationToken::is_cancelled)
    }

    /// Begins a call; `None` once the handler is deregistered.
    pub(crate) fn enter(&self) -> Option<Inside<'_>> {
        if self.is_over() {
            return None;
        }
        self.in_flight.enter()
    }

    /// Lets no further call begin.
    pub(super) fn close(&self) {
        self.in_flight.close();
    }

    /// Waits until no call is under way; to be taken out of the list before.
    pub(crate) async fn ended(&self) {
        self.in_flight.empty().await;
    }

    /// Returns whether the handler is called for every change and resync, like most.
    pub(super) fn takes_all(&self) -> bool {
        self.options.predicate.is_none() && self.resync() == Resync::OfKind
    }

    fn resync(&self) -> Resync {
        self.options.resync.unwrap_or_default()
    }

    /// Returns the period with which the handler wants all objects, if it has one of its own.
    pub(crate) fn resync_period(&self) -> Option<Duration> {
        match self.resync() {
            Resync::Every(period) => Some(period.max(SHORTEST_RESYNC)),
            _ => None,
        }
    }

    /// Returns whether the handler is to be called for a change.
    pub(crate) fn wants(&self, change: &Change) -> bool {
        if matches!(change, Change::Resynced { .. }) && self.resync() != Resync::OfKind {
            return false;
        }
        let predicate = self.options.predicate.as_ref();
        let also = self.options.also.as_ref();
        predicate.is_none_or(|predicate| predicate.wants(change))
            || also.is_some_and(|also| also.wants(change))
    }

    /// Returns how urgent something is for the handler, which usually is this urgent.
    pub(crate) fn priority(&self, usual: Priority) -> Priority {
        self.options.priority.unwrap_or(usual)
    }

    /// Returns how long to wait after so many failures in a row, if the handler has a limiter of its own.
    pub(crate) fn backoff(&self, failures: u32) -> Option<Duration> {
        let mut limiter = self.limiter.as_ref()?.lock();
        Some(limiter.delay(failures, Instant::now().into_std()))
    }

    /// Returns whether the retries of the handler are used up after so many failures in a row.
    pub(crate) fn gives_up(&self, failures: u32) -> bool {
        let retries = self.options.max_retries;
        retries.is_some_and(|retries| failures > retries)
    }

    /// Returns when the handler is called again for an object for which it failed for good.
    pub(crate) fn after_giving_up(&self, object: Option<&CachedObject>) -> Option<Duration> {
        let ask = self.options.given_up.as_ref()?;
        // A panic here would be that of the worker.
        let answer = catch_unwind(AssertUnwindSafe(|| ask(object)));
        answer.unwrap_or_else(|_| {
            let handler = &self.callee.name;
            tracing::error!(%handler, "what says when a handler is called again panicked");
            None
        })
    }

    /// Counts a call; `at_once` says whether it asked for the next without delay.
    pub(crate) fn count(&self, ended: Ended, attempt: u32, took: Duration, at_once: bool) {
        self.tally(|totals| totals.count(ended, attempt, took, at_once));
    }

    pub(crate) fn count_lag(&self, lag: Duration) {
        self.tally(|totals| totals.lags.record(lag));
    }

    pub(crate) fn count_given_up(&self) {
        self.tally(|totals| totals.given_up += 1);
    }

    fn tally(&self, count: impl Fn(&mut Totals)) {
        let mut totals = self.totals.lock();
        count(&mut totals);
        // A call that was under way when the handler went.
        if let Some(gone) = self.gone.get() {
            count(&mut gone.lock());
        }
    }

    /// Says that the handler was taken away; to be called once, with no lock of its kind held.
    pub(super) fn end(&self) {
        for end in &self.options.ends {
            // A panic here would be that of whoever takes handlers away.
            if catch_unwind(AssertUnwindSafe(|| end())).is_err() {
                let handler = &self.callee.name;
                tracing::error!(%handler, "what was to be called at the end of a handler panicked");
            }
        }
    }

    /// Returns as whom the handler writes, if it is not the factory's client.
    pub(crate) fn identity(&self) -> Option<&ClientIdentity> {
        self.callee.identity.as_ref()
    }

    /// Hands over what was counted, and what will be.
    pub(super) fn leave(&self, gone: &Arc<Mutex<Totals>>) {
        let totals = self.totals.lock();
        if self.gone.set(Arc::clone(gone)).is_ok() {
            gone.lock().merge(&totals);
        }
    }

    pub(crate) fn status(&self) -> HandlerStatus {
        let mut status =
            HandlerStatus::new(Arc::clone(&self.callee.name), self.totals.lock().clone());
        status.waiting = self.waiting();
        status.is_held = self.hold.closed().is_some();
        status
    }
}

/// Lets calls in until it is closed, and knows how many are inside.
#[derive(Default)]
struct InFlight {
    calls: Mutex<Calls>,
    left: Notify,
}

#[derive(Default)]
struct Calls {
    closed: bool,
    inside: usize,
}

/// A call that is under way.
pub(crate) struct Inside<'a>(&'a InFlight);

impl InFlight {
    /// Begins a call; `None` once it is closed.
    fn enter(&self) -> Option<Inside<'_>> {
        let mut calls = self.calls.lock();
        if calls.closed {
            return None;
        }
        calls.inside += 1;
        Some(Inside(self))
    }

    /// Lets no further call begin.
    fn close(&self) {
        self.calls.lock().closed = true;
    }

    /// Waits until no call is under way; to be closed before.
    async fn empty(&self) {
        loop {
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
        let mut calls = self.0.calls.lock();
        calls.inside -= 1;
        if calls.inside == 0 {
            self.0.left.notify_waiters();
        }
    }
}
