//! One call of a reconciler: which of its functions it is for, and what comes of the answer.

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use lariat_cache::View;
use lariat_controller::{Context, HandlerError, HandlerResult, Outcome};
use lariat_core::Uid;
use parking_lot::Mutex;

use super::{Reconcile, Setup};
use crate::guard;
use crate::status::Report;

/// A function of the user's whose type is forgotten.
pub(crate) struct Callback<K>(Box<Function<K>>);

type Function<K> = dyn Fn(Reconcile<K>) -> BoxFuture<'static, HandlerResult> + Send + Sync;

impl<K> Callback<K> {
    pub(crate) fn new<F, Fut>(function: F) -> Self
    where
        F: Fn(Reconcile<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = HandlerResult> + Send + 'static,
    {
        Self(Box::new(move |cx| function(cx).boxed()))
    }

    pub(crate) async fn call(&self, cx: Reconcile<K>) -> HandlerResult {
        (self.0)(cx).await
    }
}

/// What a reconciler is made of, once it is registered.
pub(crate) struct Call<K> {
    setup: Setup<K>,
    reconcile: Callback<K>,
    /// Objects whose end was told, by calls that have to come again for another reason.
    told: Mutex<HashSet<Uid>>,
}

impl<K: View> Call<K> {
    pub(crate) fn new(setup: Setup<K>, reconcile: Callback<K>) -> Arc<Self> {
        Arc::new(Self {
            setup,
            reconcile,
            told: Mutex::default(),
        })
    }

    pub(crate) async fn run(&self, cx: Context<K>) -> HandlerResult {
        let cx = Arc::new(cx);
        if let (Some(finalizer), Some(last)) = (&self.setup.finalizer, cx.last()) {
            finalizer.forget(last.uid());
        }
        // Whatever comes of telling that it is gone.
        if cx.last().is_some() || cx.raw().is_none() {
            self.setup.shared.sets.forget(cx.gvk(), cx.key());
        }
        // Before the object that may live under the same name by now.
        let gone = self.gone(&cx).await;
        let result = match gone {
            Err(error) if error.is_retryable() => Err(error),
            gone => self.after(&cx, gone).await,
        };
        // A call that comes again brings the deletion again.
        let comes_again = result.as_ref().is_err_and(HandlerError::is_retryable);
        if let Some(last) = cx.last().filter(|_| !comes_again) {
            self.told.lock().remove(last.uid());
        }
        result
    }

    /// Goes on after an object's end was told, which must not keep its successor from being reconciled.
    async fn after(&self, cx: &Arc<Context<K>>, gone: Result<(), HandlerError>) -> HandlerResult {
        let raw = cx.raw().cloned();
        let Some(object) = cx.object()?.zip(raw) else {
            self.setup.shared.sets.forget(cx.gvk(), cx.key());
            return gone.map(|()| Outcome::done());
        };
        if let Err(error) = gone {
            let (kind, key, handler) = (cx.gvk(), cx.key(), cx.handler());
            tracing::warn!(%kind, %key, handler, %error, "the end of an object that was replaced could not be told");
        }
        let cx = Reconcile::new(Arc::clone(cx), object, Arc::clone(&self.setup.shared));
        cx.own().lock().reported = self.setup.report.as_ref().map(Report::kind);
        let result = match cx.raw().is_deleting() {
            true => self.goes(&cx).await,
            false => self.exists(cx.clone()).await,
        };
        result.map_err(|error| self.decide(error, &cx))
    }

    /// Reconciles an object that exists.
    async fn exists(&self, cx: Reconcile<K>) -> HandlerResult {
        let ready = match &self.setup.finalizer {
            Some(finalizer) => finalizer.put_on(&cx).await,
            None => Ok(Some(cx.clone())),
        };
        let (cx, mut result) = match ready {
            Ok(Some(ready)) => (ready.clone(), self.reconcile.call(ready).await),
            Ok(None) => return Ok(Outcome::done()),
            Err(error) => (cx, Err(error)),
        };
        if let Some(report) = &self.setup.report {
            result = report.tell(&cx, result).await;
        }
        match (self.setup.requeue_after, result) {
            (Some(period), Ok(outcome)) => Ok(outcome.or_requeue_after(period)),
            (Some(period), Err(error)) if error.is_ignored() && error.delay().is_none() => {
                Err(error.retry_after(period))
            }
            (_, result) => result,
        }
    }

    /// Cleans up after an object that is being deleted.
    async fn goes(&self, cx: &Reconcile<K>) -> HandlerResult {
        let Some(finalizer) = &self.setup.finalizer else {
            return Ok(Outcome::done());
        };
        let result = finalizer.take_off(cx).await;
        match &self.setup.report {
            Some(report) => report.tell(cx, result).await,
            None => result,
        }
    }

    /// Tells of an object that is gone, once.
    async fn gone(&self, cx: &Arc<Context<K>>) -> Result<(), HandlerError> {
        let (Some(gone), Some(raw)) = (&self.setup.on_gone, cx.last().cloned()) else {
            return Ok(());
        };
        let is_told = self.told.lock().contains(raw.uid());
        if is_told {
            return Ok(());
        }
        let uid = raw.uid().clone();
        let last = match cx.deleted() {
            Ok(Some(last)) => (last, raw),
            Ok(None) => return Ok(()),
            Err(error) if error.is_no_content() => {
                let (kind, key, handler) = (cx.gvk(), cx.key(), cx.handler());
                tracing::warn!(%kind, %key, handler, "the last state of an object was not kept: its end is not told");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let cx = Reconcile::new(Arc::clone(cx), last, Arc::clone(&self.setup.shared));
        match gone.call(cx.clone()).await {
            Ok(_) => {
                self.told.lock().insert(uid);
                Ok(())
            }
            Err(error) => Err(self.decide(error, &cx)),
        }
    }

    fn decide(&self, error: HandlerError, cx: &Reconcile<K>) -> HandlerError {
        match &self.setup.on_error {
            Some(policy) if error.is_retryable() => policy(&error, cx).apply(error),
            _ => guard::paced(error),
        }
    }
}
