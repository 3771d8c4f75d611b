//! The options of a handler.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{BoxStream, Stream, StreamExt};
use lariat_cache::{CachedObject, ClientIdentity};
use lariat_core::ObjectKey;
use lariat_queue::{Priority, RateLimiter};
use tokio_util::sync::CancellationToken;

use super::call::AnyMiddleware;
use super::middleware::{Middleware, Timeout};
use super::predicate::Predicate;
use crate::enqueue::Enqueue;
use crate::gate::Gate;

/// Options of a handler, or defaults for all handlers of a kind or a factory.
///
/// An option that is not set for a handler is taken from the kind, then from the factory. Middleware, gates, end
/// functions and [`also`](Self::also) add up instead.
///
/// ```
/// use std::time::Duration;
/// use lariat_controller::{HandlerOptions, Predicate};
///
/// let options = HandlerOptions::default()
///     .timeout(Duration::from_secs(30))
///     .max_retries(5)
///     .only(Predicate::generation_changed());
/// # let _ = options;
/// ```
#[derive(Clone, Default)]
#[must_use = "options do nothing until a handler has them"]
pub struct HandlerOptions {
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_retries: Option<u32>,
    pub(crate) requeue_final: Option<Arc<DelayOf>>,
    pub(crate) retry_within: Option<Arc<DelayOf>>,
    pub(crate) is_paused: bool,
    pub(crate) concurrency: Option<usize>,
    pub(crate) limiter: Option<Arc<MakeLimiter>>,
    pub(crate) predicate: Option<Predicate>,
    pub(crate) also: Option<Predicate>,
    pub(crate) debounce: Option<Duration>,
    pub(crate) priority: Option<Priority>,
    pub(crate) resync: Option<Resync>,
    pub(crate) identity: Option<ClientIdentity>,
    pub(crate) until: Option<CancellationToken>,
    pub(crate) middleware: Vec<Arc<dyn AnyMiddleware>>,
    pub(crate) gates: Vec<Arc<dyn Gate>>,
    pub(crate) ends: Vec<Arc<End>>,
    pub(crate) sources: Vec<KeySource>,
}

type End = dyn Fn() + Send + Sync;

/// Returns a delay that depends on the newest state of an object; that state is none if it is deleted.
pub(crate) type DelayOf = dyn Fn(Option<&Arc<CachedObject>>) -> Option<Duration> + Send + Sync;

/// A stream of keys for a handler, and what they are enqueued with.
#[derive(Clone)]
pub(crate) struct KeySource {
    request: Enqueue,
    begin: Arc<BeginKeys>,
}

type BeginKeys = dyn Fn() -> BoxStream<'static, ObjectKey> + Send + Sync;

impl KeySource {
    pub(crate) fn request(&self) -> &Enqueue {
        &self.request
    }

    /// Begins the stream.
    pub(crate) fn begin(&self) -> BoxStream<'static, ObjectKey> {
        (self.begin)()
    }
}

type MakeLimiter = dyn Fn() -> Box<dyn RateLimiter> + Send + Sync;

/// When a handler is called for all objects although nothing changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resync {
    /// When the kind resyncs ([`KindOptions::resync`](lariat_cache::KindOptions::resync)); by default it never does.
    #[default]
    OfKind,
    /// Never, even if the kind does.
    ///
    /// Lasso's `SyncOnlyChangedObjects`, kooper's `DisableResync`.
    Never,
    /// With this period, independently of the kind. Only this handler is called, at low priority, without a request to
    /// the API server. Less than a second counts as a second, client-go's shortest period.
    Every(Duration),
}

impl Resync {
    /// Every three minutes, the default of kooper.
    pub const KOOPER: Self = Self::Every(Duration::from_secs(180));
    /// Every ten hours, the default of lasso and controller-runtime.
    pub const TEN_HOURS: Self = Self::Every(Duration::from_secs(36_000));
}

impl HandlerOptions {
    /// Sets the time limit of a call (default none; zero means none).
    ///
    /// A call that takes longer is dropped at its next await and counts as a failure. The time of middleware, and of
    /// fetching content that is not cached, is not included.
    pub fn timeout(self, timeout: Duration) -> Self {
        let timeout = Some(timeout);
        Self { timeout, ..self }
    }

    /// Sets how often a failed call is retried (default: forever; zero: never).
    ///
    /// After that the failure is logged as final. The handler is called again when the object changes or its key is
    /// enqueued, or [after a delay](Self::requeue_final).
    pub fn max_retries(self, retries: u32) -> Self {
        let max_retries = Some(retries);
        Self {
            max_retries,
            ..self
        }
    }

    /// Sets the delay of a call after a final failure (default: no such call).
    ///
    /// A failure is final if the error is terminal or the retries are used up. The failures in a row are forgotten
    /// then.
    ///
    /// The function is called after each such failure with the newest state of the object, or `None` if it is deleted.
    /// It returns the delay, or `None` to wait for a change. It must be fast. A change in the meantime calls the
    /// handler earlier and replaces this call.
    ///
    /// Use it for handlers that depend on something outside the cluster: after an outage that outlasts the retries, no
    /// watch would call them.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat_controller::HandlerOptions;
    ///
    /// let options = HandlerOptions::default()
    ///     .max_retries(5)
    ///     .requeue_final(|object| object.map(|_| Duration::from_secs(3600)));
    /// # let _ = options;
    /// ```
    pub fn requeue_final(
        self,
        after: impl Fn(Option<&Arc<CachedObject>>) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        let requeue_final: Option<Arc<DelayOf>> = Some(Arc::new(after));
        Self {
            requeue_final,
            ..self
        }
    }

    /// Sets the longest delay of a retry (default: that of the rate limiter).
    ///
    /// It shortens the backoff and delays that errors set, also after panics and timeouts, but not a delay that the API
    /// server asks for. The function is called after each failure that is retried with the newest state of the object,
    /// or `None` if it is deleted. It returns the longest delay, or `None` for no limit. It must be fast.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat_controller::HandlerOptions;
    ///
    /// let options = HandlerOptions::default().retry_within(|_| Some(Duration::from_secs(60)));
    /// # let _ = options;
    /// ```
    pub fn retry_within(
        self,
        most: impl Fn(Option<&Arc<CachedObject>>) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        let retry_within: Option<Arc<DelayOf>> = Some(Arc::new(most));
        Self {
            retry_within,
            ..self
        }
    }

    /// Registers the handler paused (default: it is not).
    ///
    /// It is called for nothing until [`SharedController::resume`](crate::SharedController::resume); the keys that
    /// become due for it wait meanwhile.
    pub fn paused(self) -> Self {
        Self {
            is_paused: true,
            ..self
        }
    }

    /// Limits the number of concurrent calls of the handler (default: no own limit).
    ///
    /// Without a limit the number of the kind's workers applies. Zero is refused when the handler is registered.
    ///
    /// A key beyond the limit waits without occupying a worker. The handler is then called for it after handlers that
    /// are registered behind it.
    pub fn concurrency(self, calls: usize) -> Self {
        let concurrency = Some(calls);
        Self {
            concurrency,
            ..self
        }
    }

    /// Sets the rate limiter for retries of the handler.
    ///
    /// The default is that of the kind, [`ControllerOptions::rate_limiter`](crate::ControllerOptions::rate_limiter).
    ///
    /// `limiter` is called once per handler, so handlers do not share a limiter by accident.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat_controller::HandlerOptions;
    /// use lariat_queue::Exponential;
    ///
    /// let options = HandlerOptions::default()
    ///     .rate_limiter(|| Exponential::new(Duration::from_secs(1), Duration::from_secs(300)));
    /// # let _ = options;
    /// ```
    pub fn rate_limiter<L: RateLimiter>(
        self,
        limiter: impl Fn() -> L + Send + Sync + 'static,
    ) -> Self {
        let make: Arc<MakeLimiter> = Arc::new(move || Box::new(limiter()));
        let limiter = Some(make);
        Self { limiter, ..self }
    }

    /// Calls the handler only for changes that a predicate selects (default: for all).
    ///
    /// Only changes of its own kind are filtered; see [`Predicate`] for what else calls it.
    pub fn only(self, predicate: Predicate) -> Self {
        let predicate = Some(predicate);
        Self { predicate, ..self }
    }

    /// Calls the handler also for changes that this predicate selects.
    ///
    /// They need not pass [`only`](Self::only), whether of the handler, its kind or its factory. Further predicates add
    /// to it.
    ///
    /// ```
    /// use lariat_controller::{HandlerOptions, Predicate};
    ///
    /// let options = HandlerOptions::default()
    ///     .only(Predicate::generation_changed())
    ///     .also(Predicate::labels("reload=true".parse()?));
    /// # let _ = options;
    /// # Ok::<(), lariat_core::SelectorError>(())
    /// ```
    pub fn also(self, predicate: Predicate) -> Self {
        let also = Predicate::either(self.also, Some(predicate));
        Self { also, ..self }
    }

    /// Waits this long after a change before the handler is called for the key.
    ///
    /// By default, and with zero, it does not wait. Changes in the meantime lead to the same call. The time counts from the first of them, so a key that changes
    /// all the time is processed once in this period, and never later than that. It applies to changes of the kind and
    /// of [related](crate::Relation) objects, but not to initial lists, resyncs, deletions, retries and keys that code
    /// enqueues: they call the handler at once, and that call satisfies the changes that wait. Other handlers of the
    /// kind are not delayed.
    ///
    /// Changes that wait when the factory stops are not handled any more; the next start begins with all objects.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat_controller::HandlerOptions;
    ///
    /// // A Deployment whose Pods come and go is summed up twice a second.
    /// let options = HandlerOptions::default().debounce(Duration::from_millis(500));
    /// # let _ = options;
    /// ```
    pub fn debounce(self, period: Duration) -> Self {
        let debounce = Some(period);
        Self { debounce, ..self }
    }

    /// Sets the priority of changes for the handler.
    ///
    /// By default it is normal, and low for the initial list and for resyncs.
    ///
    /// A key has the highest priority of the handlers that are due for it.
    pub fn priority(self, priority: Priority) -> Self {
        let priority = Some(priority);
        Self { priority, ..self }
    }

    /// Sets when the handler is resynced (default [`Resync::OfKind`]).
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat_controller::{HandlerOptions, Resync};
    ///
    /// let options = HandlerOptions::default().resync(Resync::Every(Duration::from_secs(600)));
    /// # let _ = options;
    /// ```
    pub fn resync(self, resync: Resync) -> Self {
        let resync = Some(resync);
        Self { resync, ..self }
    }

    /// Sets the identity of the handler's writes.
    ///
    /// By default it is that of the factory's client.
    ///
    /// It applies to [`Context::client`](crate::Context::client), and causes no second watch.
    ///
    /// ```
    /// use lariat_cache::ClientIdentity;
    /// use lariat_controller::HandlerOptions;
    ///
    /// let options = HandlerOptions::default().identity(ClientIdentity::default().field_manager("shop"));
    /// # let _ = options;
    /// ```
    pub fn identity(self, identity: ClientIdentity) -> Self {
        let identity = Some(identity);
        Self { identity, ..self }
    }

    /// Deregisters the handler when a token is cancelled.
    ///
    /// From then on no call begins; running calls are not disturbed. The rest of
    /// [`Registration::deregister`](crate::Registration::deregister) follows by itself, while the factory runs or at
    /// its next start.
    ///
    /// ```
    /// use lariat_controller::HandlerOptions;
    /// use tokio_util::sync::CancellationToken;
    ///
    /// let tenant = CancellationToken::new();
    /// let options = HandlerOptions::default().until(tenant.child_token());
    /// // Deregisters all handlers of the tenant.
    /// tenant.cancel();
    /// # let _ = options;
    /// ```
    pub fn until(self, token: CancellationToken) -> Self {
        let until = Some(token);
        Self { until, ..self }
    }

    /// Adds a function to call once the handler is deregistered.
    ///
    /// That is by [`deregister`](crate::Registration::deregister), by its [token](Self::until), or by the drop of its
    /// factory. The last call of the handler may still be running.
    ///
    /// A handler of several kinds ends in each of them. Set in the options of a kind or a factory, the function is
    /// called for each of its handlers.
    ///
    /// It is called on the task that removes the handler, which may be one that registers another: it must be fast, and
    /// must neither register handlers nor use a [`KindsRegistration`](crate::KindsRegistration).
    ///
    /// ```
    /// use lariat_controller::HandlerOptions;
    ///
    /// let options = HandlerOptions::default().on_end(|| println!("the handler is deregistered"));
    /// # let _ = options;
    /// ```
    pub fn on_end(mut self, end: impl Fn() + Send + Sync + 'static) -> Self {
        self.ends.push(Arc::new(end));
        self
    }

    /// Calls the handler for the keys that a stream yields, such as those of a message queue.
    ///
    /// `keys` is called when the kind's workers start, and when the handler is registered while they run; the stream is
    /// dropped when a stop begins, and with the handler. A stream that ends or panics is begun again at the next start
    /// of the factory. It is polled on the task that supervises the kind, so it must not block. Nothing waits for a
    /// slow handler: a key that comes again before it is processed is processed once.
    ///
    /// The request says when the keys are due, how urgent, and why; they are enqueued for this handler alone. Keys of
    /// objects that do not exist call the handler, too. This is controller-runtime's `source.Channel`.
    ///
    /// ```
    /// use futures::stream;
    /// use lariat_controller::{Enqueue, HandlerOptions};
    /// use lariat_core::ObjectKey;
    ///
    /// let because = Enqueue::now().because("the bucket was changed");
    /// let options = HandlerOptions::default().enqueued_by(because, || {
    ///     stream::iter([ObjectKey::namespaced("shop", "images")])
    /// });
    /// # let _ = options;
    /// ```
    pub fn enqueued_by<S>(
        mut self,
        request: Enqueue,
        keys: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self
    where
        S: Stream<Item = ObjectKey> + Send + 'static,
    {
        self.sources.push(KeySource {
            request,
            begin: Arc::new(move || keys().boxed()),
        });
        self
    }

    /// Wraps middleware around the handler, inside of middleware that was added before.
    ///
    /// ```
    /// use lariat_controller::{Call, HandlerOptions, HandlerResult, Next};
    ///
    /// async fn log(call: Call, next: Next) -> HandlerResult {
    ///     println!("calling {} for {}", call.handler(), call.key());
    ///     next.run(call).await
    /// }
    ///
    /// let options = HandlerOptions::default().wrap(log);
    /// # let _ = options;
    /// ```
    pub fn wrap(mut self, middleware: impl Middleware) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Adds a gate to ask before each write of the handler; see [`Gate`].
    ///
    /// Gates are asked in the order they were added.
    pub fn gate(mut self, gate: impl Gate) -> Self {
        self.gates.push(Arc::new(gate));
        self
    }

    /// Returns these options, replaced by those that `others` set.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat_controller::HandlerOptions;
    ///
    /// let usual = HandlerOptions::default().timeout(Duration::from_secs(30));
    /// let options = usual.with(HandlerOptions::default().concurrency(4));
    /// # let _ = options;
    /// ```
    pub fn with(self, others: Self) -> Self {
        others.or(&self)
    }

    /// Returns these options, completed from `others`.
    pub(crate) fn or(self, others: &Self) -> Self {
        let outer = others.middleware.iter().cloned();
        Self {
            middleware: outer.chain(self.middleware).collect(),
            gates: others.gates.iter().cloned().chain(self.gates).collect(),
            ends: others.ends.iter().cloned().chain(self.ends).collect(),
            sources: others.sources.iter().cloned().chain(self.sources).collect(),
            timeout: self.timeout.or(others.timeout),
            max_retries: self.max_retries.or(others.max_retries),
            requeue_final: self.requeue_final.or_else(|| others.requeue_final.clone()),
            retry_within: self.retry_within.or_else(|| others.retry_within.clone()),
            is_paused: self.is_paused || others.is_paused,
            concurrency: self.concurrency.or(others.concurrency),
            limiter: self.limiter.or_else(|| others.limiter.clone()),
            predicate: self.predicate.or_else(|| others.predicate.clone()),
            also: Predicate::either(self.also, others.also.clone()),
            debounce: self.debounce.or(others.debounce),
            priority: self.priority.or(others.priority),
            resync: self.resync.or(others.resync),
            identity: self.identity.or_else(|| others.identity.clone()),
            until: self.until.or_else(|| others.until.clone()),
        }
    }

    /// Returns all middleware, the timeout last.
    pub(crate) fn all_middleware(&self) -> Vec<Arc<dyn AnyMiddleware>> {
        let mut all = self.middleware.clone();
        let limit = self.timeout.filter(|limit| !limit.is_zero());
        all.extend(limit.map(|limit| Arc::new(Timeout::new(limit)) as Arc<dyn AnyMiddleware>));
        all
    }
}

impl fmt::Debug for HandlerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerOptions")
            .field("timeout", &self.timeout)
            .field("max_retries", &self.max_retries)
            .field("concurrency", &self.concurrency)
            .field("predicate", &self.predicate)
            .field("also", &self.also)
            .field("debounce", &self.debounce)
            .field("is_paused", &self.is_paused)
            .field("priority", &self.priority)
            .field("resync", &self.resync)
            .field("identity", &self.identity)
            .field("middleware", &self.middleware.len())
            .field("gates", &self.gates.len())
            .field("ends", &self.ends.len())
            .field("sources", &self.sources.len())
            .finish_non_exhaustive()
    }
}
