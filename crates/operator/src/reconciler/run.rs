//! One call of a reconciler: which functions are called, in which order, and the result.
//!
//! A call may concern two objects of one name: a deleted one, for which the function of `on_deleted` is called, and its
//! successor, which is reconciled. Neither must keep the other from being processed: a failure, a panic or a timeout of
//! one is retried, and the other is handled all the same.

use std::any::Any;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;

use futures::FutureExt;
use lariat_cache::View;
use lariat_controller::{Context, Enqueue, HandlerError, HandlerResult, Outcome};
use lariat_core::TableSize;

use super::ends::Ends;
use super::sets;
use super::setup::Setup;
use super::table_sizes::Remembers;
use crate::finalizer::HeldFinalizer;
use crate::reconcile::{Callback, OfReconciler, Reconcile};
use crate::refusal::paced;

/// A registered reconciler, as the handler calls it.
pub(crate) struct Call<K> {
    pub(super) setup: Setup<K>,
    reconcile: Callback<K>,
    pub(super) of_reconciler: OfReconciler,
    ends: Ends,
}

/// The result of the function for deletions.
///
/// A panic is caught, and resumed after the successor is reconciled.
type Notified = Result<Result<(), HandlerError>, Box<dyn Any + Send>>;

impl<K: View> Call<K> {
    pub(crate) fn new(setup: Setup<K>, reconcile: Callback<K>) -> Arc<Self> {
        Arc::new(Self {
            of_reconciler: setup.of_reconciler(),
            setup,
            reconcile,
            ends: Ends::default(),
        })
    }

    pub(crate) async fn run(&self, cx: Context<K>) -> HandlerResult {
        let cx = Arc::new(cx);
        // The object does not exist any more, so its cleanup need not be remembered.
        if let (Some(finalizer), Some(last)) = (&self.setup.finalizer, cx.last_known()) {
            finalizer.forget(last.uid());
        }
        // The owner was deleted, whether or not the function for deletions succeeds.
        if cx.last_known().is_some() || cx.raw().is_none() {
            self.forget_sets(&cx);
        }
        let last = cx.last_known().map(|last| last.uid().clone());
        let is_begun = last.as_ref().is_some_and(|uid| self.ends.is_begun(uid));
        let (notified, result) = if is_begun {
            // An earlier call of the function failed. Now the successor comes first: the function may hang again until
            // the timeout drops this call.
            let result = self.reconcile_current(&cx).await;
            (self.notify_of_deletion(&cx).await, result)
        } else {
            // At first the deletion comes before the object that has the name by now, in the order in which it
            // happened.
            let successor = Successor::of(&cx);
            let notified = self.notify_of_deletion(&cx).await;
            successor.defuse();
            // Several objects of the name were deleted. The next call is for the next of them, before the successor is
            // reconciled.
            let is_next_deletion = cx.has_later_deletions() && matches!(notified, Ok(Ok(())));
            let result = if is_next_deletion {
                Ok(Outcome::done())
            } else {
                self.reconcile_current(&cx).await
            };
            (notified, result)
        };
        let notified = notified.unwrap_or_else(|panic| resume_unwind(panic));
        let result = match notified {
            Ok(()) => result,
            Err(error) => after_failure(&cx, error, result),
        };
        // A retried call has the same deletion again, so that is remembered until the call is not retried.
        let comes_again = result.as_ref().is_err_and(HandlerError::is_retryable);
        if let Some(uid) = last.filter(|_| !comes_again) {
            self.ends.forget(&uid);
        }
        result
    }

    fn forget_sets(&self, cx: &Context<K>) {
        sets::forget(&self.setup.operator, cx.gvk(), cx.key());
    }

    /// Processes the object that exists now, after the function for deletions.
    async fn reconcile_current(&self, cx: &Arc<Context<K>>) -> HandlerResult {
        let raw = cx.raw().cloned();
        let object = match cx.object() {
            Ok(object) => object,
            Err(error) => return self.report_unreadable(cx, error).await,
        };
        let Some((object, raw)) = object.zip(raw) else {
            self.forget_sets(cx);
            return Ok(Outcome::done());
        };
        let operator = Arc::clone(&self.setup.operator);
        let cx = Reconcile::new(
            Arc::clone(cx),
            object,
            raw,
            operator,
            self.of_reconciler.clone(),
        );
        let paused = self.setup.pause.as_ref().and_then(|it| it.reason(cx.raw()));
        let result = match paused {
            Some(reason) => {
                if let Some(report) = &self.setup.report {
                    report.report_pause(&cx, &reason).await;
                }
                Err(HandlerError::ignore(reason))
            }
            None if cx.raw().is_deleting() => self.reconcile_deleting(&cx).await,
            None => self.reconcile_existing(cx.clone()).await,
        };
        let result = result.map(|outcome| cx.call().complete(outcome));
        result.map_err(|error| self.decide(error, &cx))
    }

    /// Reconciles an object that exists and is not being deleted.
    async fn reconcile_existing(&self, cx: Reconcile<K>) -> HandlerResult {
        let ready = match &self.setup.finalizer {
            Some(finalizer) => finalizer.add_to(&cx).await,
            None => Ok(Some(cx.clone())),
        };
        let (cx, mut result) = match ready {
            Ok(Some(ready)) => (ready.clone(), self.reconcile.call(ready).await),
            Ok(None) => return Ok(Outcome::done()),
            Err(error) => (cx, Err(error)),
        };
        if let Some(report) = &self.setup.report {
            result = report.report(&cx, result).await;
        }
        self.with_periods(cx.object(), result)
    }

    /// Adds the periods of the reconciler to a result for an object that stays.
    fn with_periods(&self, object: &K, result: HandlerResult) -> HandlerResult {
        let usual = self.setup.requeue_after;
        let result = match (usual, result) {
            (Some(period), Ok(outcome)) => Ok(outcome.or_requeue_after(period)),
            (Some(period), Err(error)) if error.is_ignored() && error.delay().is_none() => {
                Err(error.retry_after(period))
            }
            (_, result) => result,
        };
        self.bounded(object, result)
    }

    /// Shortens the delay of a result to the longest one that is allowed.
    fn bounded(&self, object: &K, result: HandlerResult) -> HandlerResult {
        match (self.setup.longest_delay_of(object), result) {
            (Some(most), Ok(outcome)) => Ok(outcome.requeue_within(most)),
            (Some(most), Err(error)) if error.is_ignored() => {
                let delay = error.delay().map_or(most, |delay| delay.min(most));
                Err(error.retry_after(delay))
            }
            // Retried errors are bounded by the options of the handler.
            (_, result) => result,
        }
    }

    /// Cleans up an object that is being deleted, or reconciles it if that is enabled.
    async fn reconcile_deleting(&self, cx: &Reconcile<K>) -> HandlerResult {
        let finalizer = self.setup.finalizer.as_ref();
        let result = match finalizer.filter(|it| it.is_on(cx.raw()) || !self.setup.with_deleting) {
            Some(finalizer) => match finalizer.clean_up(cx).await {
                // The finalizer is removed, so neither a further call nor a condition is needed.
                Ok(outcome) if outcome.delay().is_none() => return Ok(outcome),
                result => self.bounded(cx.object(), result),
            },
            None if self.setup.with_deleting => self.reconcile.call(cx.clone()).await,
            None => return Ok(Outcome::done()),
        };
        match &self.setup.report {
            Some(report) => report.report(cx, result).await,
            None => result,
        }
    }

    async fn notify_of_deletion(&self, cx: &Arc<Context<K>>) -> Notified {
        AssertUnwindSafe(self.call_on_deleted(cx))
            .catch_unwind()
            .await
    }

    /// Calls the function for deletions, once for each deleted object.
    async fn call_on_deleted(&self, cx: &Arc<Context<K>>) -> Result<(), HandlerError> {
        let (Some(gone), Some(raw)) = (&self.setup.on_deleted, cx.last_known().cloned()) else {
            return Ok(());
        };
        let uid = raw.uid().clone();
        if self.ends.is_notified(&uid) {
            return Ok(());
        }
        let last = match cx.deleted() {
            Ok(Some(last)) => last,
            Ok(None) => return Ok(()),
            Err(error) if error.is_no_content() => {
                let (kind, key, handler) = (cx.gvk(), cx.key(), cx.handler());
                tracing::warn!(%kind, %key, handler, "the last state of a deleted object is not cached: its deletion is not reported");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let operator = Arc::clone(&self.setup.operator);
        let of_reconciler = OfReconciler {
            ended: Arc::clone(&self.of_reconciler.ended),
            ..OfReconciler::default()
        };
        let cx = Reconcile::new(Arc::clone(cx), last, raw, operator, of_reconciler);
        // Recorded before the call: if it hangs until the timeout, or panics, the next call knows.
        self.ends.begin(&uid);
        match gone.call(cx.clone()).await {
            Ok(_) => {
                self.ends.notified(&uid);
                Ok(())
            }
            Err(error) => Err(self.decide(error, &cx)),
        }
    }

    fn decide(&self, error: HandlerError, cx: &Reconcile<K>) -> HandlerError {
        match &self.setup.on_error {
            Some(policy) if error.is_retryable() => policy(&error, cx).apply(error),
            _ => paced(error),
        }
    }
}

impl<K: View> Remembers for Call<K> {
    fn table_sizes(&self, all: &mut Vec<TableSize>) {
        all.push(self.ends.table_sizes());
        all.extend(self.setup.finalizer.iter().map(HeldFinalizer::table_sizes));
        self.setup.guards.table_sizes(all);
    }
}

/// Returns the result of a call whose function for deletions failed.
///
/// `result` is that of the object that exists.
fn after_failure<K: View>(
    cx: &Context<K>,
    error: HandlerError,
    result: HandlerResult,
) -> HandlerResult {
    if cx.raw().is_none() {
        return Err(error);
    }
    let (kind, key, handler) = (cx.gvk(), cx.key(), cx.handler());
    tracing::warn!(%kind, %key, handler, %error, "the call for the deletion of a replaced object failed");
    let delay = match result {
        // The whole call is retried anyway, after the delay of the other error.
        Err(own) if own.is_retryable() => return Err(own),
        result if !error.is_retryable() => return result,
        Ok(outcome) => outcome.delay(),
        Err(own) => own.delay(),
    };
    if let Some(delay) = delay {
        // In addition to the retry, which may be the last one.
        let request = Enqueue::after(delay)
            .to(handler)
            .because("the reconciler requested another call");
        // Fails only if the reconciler was deregistered meanwhile.
        let _ = cx.enqueue_with(key, &request);
    }
    Err(error)
}

/// The object to reconcile after the function for another's deletion.
///
/// If this is dropped, by a timeout after which nothing is retried, the key is enqueued. Otherwise the successor would
/// not be reconciled until its next change.
struct Successor<'a, K: View>(Option<&'a Context<K>>);

impl<'a, K: View> Successor<'a, K> {
    fn of(cx: &'a Context<K>) -> Self {
        Self(Some(cx).filter(|cx| cx.last_known().is_some() && cx.raw().is_some()))
    }

    /// Enqueues nothing on drop, because the object is reconciled next.
    fn defuse(mut self) {
        self.0 = None;
    }
}

impl<K: View> Drop for Successor<'_, K> {
    fn drop(&mut self) {
        if let Some(cx) = self.0 {
            let request = Enqueue::now().to(cx.handler());
            let request =
                request.because("the call for the deletion of an earlier object was dropped");
            let _ = cx.enqueue_with(cx.key(), &request);
        }
    }
}
