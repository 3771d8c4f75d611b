//! State and counters of controllers and handlers.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use std::vec;

use lariat_cache::KindStatus;
use lariat_queue::{Histogram, QueueStats};

use crate::hot_loop::HotLoop;
use crate::totals::{CallOutcome, Totals};

/// The state of a handler, and its counters since its registration.
///
/// ```no_run
/// use lariat::SharedControllerFactory;
///
/// # fn example(factory: &SharedControllerFactory) {
/// for controller in factory.status() {
///     for handler in &controller.handlers {
///         println!("{} {}: {} calls, {} failed", controller.cache.gvk, handler.name, handler.calls, handler.failures);
///     }
/// }
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HandlerStatus {
    /// The name of the handler.
    pub name: Arc<str>,
    /// Calls that have ended.
    pub calls: u64,
    /// Calls that asked for an immediate requeue.
    ///
    /// They are among those that ended as [`Requeued`](CallOutcome::Requeued).
    pub immediate_requeues: u64,
    /// Calls that were retries after a counted failure.
    ///
    /// Failures that are [uncounted](crate::HandlerError::uncounted) are not counted. The queue's `retries` counts
    /// retries when they are scheduled.
    pub retries: u64,
    /// Calls that failed, panics and timeouts included.
    pub failures: u64,
    /// Calls that panicked.
    pub panics: u64,
    /// Calls that exceeded the handler's timeout.
    pub timeouts: u64,
    /// Failures that were not retried because the retries were exhausted.
    pub exhausted: u64,
    /// The total duration of all calls.
    pub busy: Duration,
    /// The durations of calls.
    pub times: Histogram,
    /// The times from a change to the call for it.
    ///
    /// Retries are not included, nor is the time for which a key waits at the handler's
    /// [concurrency](crate::HandlerOptions::concurrency) limit.
    pub lags: Histogram,
    /// Whether the handler waits for the cache of a related kind.
    ///
    /// See [`SharedController::watch_related`](crate::SharedController::watch_related).
    pub waits_for_caches: bool,
    /// Whether the handler is [paused](crate::SharedController::pause).
    pub is_paused: bool,
    /// The number of keys that wait for the handler, without a worker.
    ///
    /// They wait at its [concurrency](crate::HandlerOptions::concurrency) limit, for caches, for the content of their
    /// objects, or for the end of a pause.
    pub waiting: usize,
    /// The number of keys that the handler fails for, up to 4,096.
    ///
    /// They are called again. Conflicts do not count.
    pub failing: usize,
    /// The number of keys that the handler has given up, up to 4,096.
    ///
    /// Their last call failed with a terminal error or exhausted the retries, or their object does not decode, and no
    /// call is scheduled. See [`SharedController::given_up_keys`](crate::SharedController::given_up_keys).
    pub given_up: usize,
    ended: [u64; CallOutcome::ALL.len()],
    /// The durations of successful calls, and of failed ones.
    times_by_failure: [Histogram; 2],
}

impl HandlerStatus {
    pub(crate) fn new(name: Arc<str>, totals: Totals) -> Self {
        let count = |of: CallOutcome| totals.ended[of as usize];
        let failures = CallOutcome::ALL
            .iter()
            .copied()
            .filter(|ended| ended.is_failure());
        // Kept apart as well, for the metrics of lasso, which distinguish failed calls.
        let mut times = totals.times[0].clone();
        times.merge(&totals.times[1]);
        Self {
            name,
            calls: totals.ended.iter().sum(),
            immediate_requeues: totals.immediate_requeues,
            retries: totals.retries,
            failures: failures.map(count).sum(),
            panics: count(CallOutcome::Panicked),
            timeouts: count(CallOutcome::TimedOut),
            exhausted: totals.exhausted,
            busy: times.sum(),
            ended: totals.ended,
            times,
            times_by_failure: totals.times,
            lags: totals.lags,
            waits_for_caches: false,
            is_paused: false,
            waiting: 0,
            failing: 0,
            given_up: 0,
        }
    }

    /// Returns the number of calls that ended in this way.
    #[must_use]
    pub fn ended(&self, how: CallOutcome) -> u64 {
        self.ended[how as usize]
    }

    /// Returns the durations of failed calls, or of successful ones.
    #[must_use]
    pub fn times_of(&self, failed: bool) -> &Histogram {
        &self.times_by_failure[usize::from(failed)]
    }
}

/// The state and the counters of the controller of a kind.
///
/// `Display` writes a line for the kind and one for each handler; see [`FactoryStatus`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ControllerStatus {
    /// The state of the cache.
    pub cache: KindStatus,
    /// The state of the work queue.
    pub queue: QueueStats,
    /// The number of workers; none if the controller does not run.
    pub workers: Option<usize>,
    /// The number of calls that block their threads, as of the watchdog's last look.
    ///
    /// See [`blocked_after`](crate::FactoryBuilder::blocked_after).
    pub blocked: usize,
    /// The number of running calls of deregistered handlers.
    ///
    /// Each has its key, and a worker that is not counted in [`workers`](Self::workers). After a minute, and then after
    /// two, four and so on, such calls are logged.
    pub leaving: usize,
    /// The handlers, in the order of their registration.
    pub handlers: Vec<HandlerStatus>,
    /// The sum of the counters of deregistered handlers; its name is empty.
    pub deregistered: HandlerStatus,
    /// The keys in hot loops, sorted; see [`HotLoopOptions`](crate::HotLoopOptions).
    pub hot_loops: Vec<HotLoop>,
}

/// The state and the counters of every controller in use, sorted by kind.
///
/// It is a slice of [`ControllerStatus`]. `Display` writes a table for a terminal, with a line for each kind and for
/// each of its handlers:
///
/// ```text
/// v1 ConfigMap        synced                   objects 120  ready 3  delayed 1  busy 2/5
///   copy                                       calls 31     failed 2  failing 1  given up 0  p50 1.0ms  p99 4.1ms
///   audit             paused, 12 keys wait     calls 7      failed 0  failing 0  given up 0  p50 2.0ms  p99 2.0ms
/// apps/v1 Deployment  listing, 400 of 20000    objects 400  ready 0  delayed 0  busy 0/5
/// ```
///
/// ```no_run
/// # fn example(factory: &lariat::SharedControllerFactory) {
/// println!("{}", factory.status());
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct FactoryStatus(pub(crate) Vec<ControllerStatus>);

impl Deref for FactoryStatus {
    type Target = [ControllerStatus];

    fn deref(&self) -> &[ControllerStatus] {
        &self.0
    }
}

impl IntoIterator for FactoryStatus {
    type Item = ControllerStatus;
    type IntoIter = vec::IntoIter<ControllerStatus>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a FactoryStatus {
    type Item = &'a ControllerStatus;
    type IntoIter = std::slice::Iter<'a, ControllerStatus>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
