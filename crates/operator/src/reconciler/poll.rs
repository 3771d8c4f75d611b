//! Polling sources: state that no watch reports, read periodically for each object.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use lariat_cache::{CachedObject, Store, View};
use lariat_controller::{
    Context, Enqueue, HandlerError, HandlerOptions, HandlerResult, Outcome, Predicate,
    RegisterError, Registration, Resync, SharedController,
};
use lariat_core::{Gvk, ObjectKey, Uid};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::builder::Reconciler;
use super::setup::Period;

/// The default time limit of a poll.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A function that reads something outside the cluster periodically.
///
/// The function is called for each object that exists, at an interval that may differ between objects. When it returns
/// another value than before, the reconciler is called. A failed poll keeps the last value, and is repeated with a
/// backoff that does not exceed the period. Retries of the reconciler do not affect the polls.
///
/// A source is a handler of its own in metrics and history, named after the reconciler and the source. It is also
/// called when the generation of the object changes. Objects that are being deleted are still polled.
///
/// ```
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::Service;
/// use lariat::operator::Poll;
/// use lariat::{HandlerError, HandlerResult, Operator, Outcome, Reconcile};
///
/// # async fn ask(_: &str) -> Result<u16, HandlerError> { Ok(200) }
/// # fn example(operator: &Operator) -> Result<(), Box<dyn std::error::Error>> {
/// let health = Poll::new("health", Duration::from_secs(30), |service: std::sync::Arc<Service>| async move {
///     let name = service.metadata.name.as_deref().unwrap_or_default();
///     ask(&format!("http://{name}/healthz")).await
/// });
/// let last = health.values();
/// operator
///     .reconciler("services", &operator.factory().for_object::<Service>())
///     .polls(health)
///     .register(move |cx: Reconcile<Service>| {
///         let code = last.get(cx.key());
///         async move {
///             println!("{} answers {code:?}", cx.key());
///             HandlerResult::Ok(Outcome::done())
///         }
///     })?;
/// # Ok(()) }
/// ```
#[must_use = "a source does nothing until a reconciler has it"]
pub struct Poll<K, T> {
    name: String,
    period: Arc<Period<K>>,
    poll: Arc<PollFn<K, T>>,
    values: Polled<T>,
    options: HandlerOptions,
}

/// A function of the user that polls, with its type erased.
type PollFn<K, T> = dyn Fn(Arc<K>) -> BoxFuture<'static, Result<T, HandlerError>> + Send + Sync;

/// The number of values from which those of deleted objects are looked for.
const CLEAR_AT: usize = 64;

/// The last values of a polling source; clones share them.
pub struct Polled<T>(Arc<Mutex<HashMap<ObjectKey, Last<T>>>>);

/// The last value of an object.
struct Last<T> {
    uid: Uid,
    value: Arc<T>,
}

impl<K: View, T: PartialEq + Send + Sync + 'static> Poll<K, T> {
    /// Creates a source with the same period for all objects.
    ///
    /// The name must be unique within the reconciler. A period of zero means never.
    pub fn new<F, Fut>(name: &str, period: Duration, poll: F) -> Self
    where
        F: Fn(Arc<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, HandlerError>> + Send + 'static,
    {
        Self::with_periods(name, move |_| Some(period), poll)
    }

    /// Creates a source with a period for each object.
    ///
    /// An object without a period, or with a period of zero, is not polled and has no value.
    pub fn with_periods<F, Fut>(
        name: &str,
        period: impl Fn(&K) -> Option<Duration> + Send + Sync + 'static,
        poll: F,
    ) -> Self
    where
        F: Fn(Arc<K>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, HandlerError>> + Send + 'static,
    {
        Self {
            name: name.to_owned(),
            period: Arc::new(move |object| period(object).filter(|period| !period.is_zero())),
            poll: Arc::new(move |object| poll(object).boxed()),
            values: Polled::default(),
            options: HandlerOptions::default().timeout(TIMEOUT),
        }
    }

    /// Returns a handle for the reconciler to read the last values.
    #[must_use]
    pub fn values(&self) -> Polled<T> {
        self.values.clone()
    }

    /// Sets the options of the source, such as its concurrency and time limit.
    ///
    /// Without a time limit it is 30 seconds. A key is processed by one worker at a time, so the reconciler waits for a
    /// poll of the same object. The source overwrites resyncs and the bounds of retries. It polls after changes of the
    /// generation only, which a predicate narrows further.
    pub fn options(self, options: HandlerOptions) -> Self {
        let options = HandlerOptions::default().timeout(TIMEOUT).with(options);
        Self { options, ..self }
    }

    /// Registers the source as a handler that enqueues keys for a reconciler.
    fn register(
        self,
        kind: &SharedController<K>,
        reconciler: &str,
        until: CancellationToken,
    ) -> Result<Registration, RegisterError> {
        let gvk = kind.gvk().clone();
        let (period, longest) = (Arc::clone(&self.period), Arc::clone(&self.period));
        // A failed poll is retried within the period, and a final failure does not end the polling.
        let period_of = move |object: Option<&Arc<CachedObject>>| longest(&*view(object?, &gvk)?);
        let options = self.options.clone();
        let options = options
            .only(Predicate::generation_changed())
            .resync(Resync::Never)
            .retry_within(period_of.clone())
            .requeue_final(period_of)
            .until(until);
        let handler = format!("{reconciler}-{}", self.name);
        let source = Arc::new(Source {
            reconciler: reconciler.into(),
            because: format!("{} changed", self.name).into(),
            period,
            poll: self.poll,
            values: self.values,
        });
        let call = move |cx: Context<K>| {
            let source = Arc::clone(&source);
            async move { source.call(&cx).await }
        };
        kind.register_handler(&handler, options.handler(call))
    }
}

fn view<K: View>(object: &Arc<CachedObject>, gvk: &Gvk) -> Option<Arc<K>> {
    K::view(object, gvk).ok()
}

/// A registered source.
struct Source<K, T> {
    /// The handler for which keys are enqueued.
    reconciler: Arc<str>,
    because: Arc<str>,
    period: Arc<Period<K>>,
    poll: Arc<PollFn<K, T>>,
    values: Polled<T>,
}

impl<K: View, T: PartialEq + Send + Sync + 'static> Source<K, T> {
    async fn call(&self, cx: &Context<K>) -> HandlerResult {
        let raw = cx.raw().cloned();
        let Some((object, raw)) = cx.object()?.zip(raw) else {
            self.values.forget(cx.key());
            return Ok(Outcome::done());
        };
        let Some(period) = (self.period)(&object) else {
            self.values.forget(cx.key());
            return Ok(Outcome::done());
        };
        self.values.forget_deleted(cx.cache().store());
        // A value that was polled for a deleted object of the same name says nothing about this one.
        self.values.forget_others(cx.key(), raw.uid());
        let value = match (self.poll)(object).await {
            // An ignored error ends the retries, but not the polling.
            Ok(value) => value,
            Err(error) if error.is_ignored() && error.delay().is_none() => {
                return Err(error.retry_after(period));
            }
            Err(error) => return Err(error),
        };
        if self.values.set(cx.key(), raw.uid(), value) {
            let request = Enqueue::now().to(Arc::clone(&self.reconciler));
            let request = request.because(Arc::clone(&self.because));
            // Fails only if the reconciler was deregistered meanwhile.
            let _ = cx.enqueue_with(cx.key(), &request);
        }
        Ok(Outcome::requeue_after(period))
    }
}

impl<T> Polled<T> {
    /// Returns the last value of an object.
    ///
    /// `None` before its first successful poll, and after its deletion.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<T>> {
        let values = self.0.lock();
        values.get(key).map(|last| Arc::clone(&last.value))
    }

    /// Forgets values of objects that are not cached, if there are many.
    ///
    /// A key that moves to another replica is not called here for its deletion.
    fn forget_deleted(&self, cached: &Store) {
        let mut values = self.0.lock();
        if values.len() < CLEAR_AT || values.len() <= 2 * cached.len() {
            return;
        }
        let is_deleted = |key: &ObjectKey, last: &mut Last<T>| {
            let known = cached.get(key);
            known.is_none_or(|known| *known.uid() != last.uid)
        };
        let forgotten: Vec<_> = values.extract_if(is_deleted).collect();
        drop(values);
        drop(forgotten);
    }

    /// Forgets the value of another object that had the name before.
    fn forget_others(&self, key: &ObjectKey, uid: &Uid) {
        let mut values = self.0.lock();
        let is_other = values.get(key).is_some_and(|last| last.uid != *uid);
        let forgotten = is_other.then(|| values.remove(key));
        drop(values);
        drop(forgotten);
    }

    fn forget(&self, key: &ObjectKey) {
        // The value is the user's, and its destructor may call back, so it is dropped without the lock.
        let forgotten = self.0.lock().remove(key);
        drop(forgotten);
    }
}

impl<T: PartialEq> Polled<T> {
    /// Sets the value of an object; returns whether it differs from the last one.
    fn set(&self, key: &ObjectKey, uid: &Uid, value: T) -> bool {
        // Compared without the lock, because the comparison is the user's code. No two calls are about the same key, so
        // nothing changes in between.
        let last = self
            .0
            .lock()
            .get(key)
            .filter(|last| last.uid == *uid)
            .map(|last| Arc::clone(&last.value));
        if last.is_some_and(|last| *last == value) {
            return false;
        }
        let new = Last {
            uid: uid.clone(),
            value: Arc::new(value),
        };
        let replaced = self.0.lock().insert(key.clone(), new);
        drop(replaced);
        true
    }
}

impl<K: View> Reconciler<K> {
    /// Also reconciles an object when the value that a source polls for it changes.
    ///
    /// The first value of an object counts as a change. See [`Poll`] for an example.
    pub fn polls<T>(mut self, source: Poll<K, T>) -> Self
    where
        T: PartialEq + Send + Sync + 'static,
    {
        let begin = move |kind: &SharedController<K>, reconciler: &str, until| {
            source.register(kind, reconciler, until)
        };
        self.polls.push(Box::new(begin));
        self
    }
}

impl<T> Clone for Polled<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Polled<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> fmt::Debug for Polled<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self.0.lock().len();
        f.debug_struct("Polled").field("values", &values).finish()
    }
}

impl<K, T> fmt::Debug for Poll<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poll")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
