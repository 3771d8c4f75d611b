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
/// An option that is not set for a handler is taken from the kind, and then from the factory. Middleware, gates, end
/// functions, streams of keys and the predicates of [`also`](Self::also) add up instead.
///
/// ```
/// use std::time::Duration;
/// use lariat::{HandlerOptions, Predicate};
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
    pub(crate) slow_hot_loops: Option<Duration>,
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

/// Returns a delay from the newest state of an object; none if it is deleted.
pub(crate) type DelayOf = dyn Fn(Option<&Arc<CachedObject>>) -> Option<Duration> + Send + Sync;

/// A stream of keys for a handler, and the request to enqueue them with.
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

/// When a handler is called for all objects, although nothing has changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resync {
    /// When the kind resyncs, which by default never happens.
    ///
    /// See [`KindOptions::resync`](lariat_cache::KindOptions::resync).
    #[default]
    OfKind,
    /// Never, even if the kind does.
    ///
    /// This is lasso's `SyncOnlyChangedObjects` and kooper's `DisableResync`.
    Never,
    /// With this period, whatever the kind's is.
    ///
    /// Only this handler is called, at low priority. Nothing is requested from the API server. Less than a second
    /// counts as a second, client-go's shortest period.
    Every(Duration),
}

impl Resync {
    /// Every three minutes: the default of kooper.
    pub const THREE_MINUTES: Self = Self::Every(Duration::from_secs(180));
    /// Every ten hours: the default of lasso and controller-runtime.
    pub const TEN_HOURS: Self = Self::Every(Duration::from_secs(36_000));
}

impl HandlerOptions {
    /// Sets the time limit of a call (default none; zero means none).
    ///
    /// A call that takes longer is dropped at its next await, and counts as a failure. The limit covers the handler,
    /// but not its middleware, nor the time for fetching content that is not cached.
    pub fn timeout(self, timeout: Duration) -> Self {
        let timeout = Some(timeout);
        Self { timeout, ..self }
    }

    /// Sets how often a failed call is retried (default: forever; zero: never).
    ///
    /// After the last retry, the failure is logged as final. The handler is called again when the object changes, when
    /// its key is enqueued, or [after a delay](Self::requeue_final). A delayed call that is waiting then, such as the
    /// retry before a change, still comes, as the first of a new series. A fetch of [content that is not
    /// cached](lariat_cache::Storage) that fails is tried again, and uses up no retry.
    pub fn max_retries(self, retries: u32) -> Self {
        let max_retries = Some(retries);
        Self {
            max_retries,
            ..self
        }
    }

    /// Sets the delay of a call after a final failure (default: no such call).
    ///
    /// A failure is final if the error is terminal or the retries are exhausted. Then the count of failures in a row
    /// starts again.
    ///
    /// The function is called after each final failure with the newest state of the object, or `None` if it is deleted.
    /// It returns the delay, or `None` to wait for a change. It must be fast. A change in the meantime calls the
    /// handler earlier, and this call still comes.
    ///
    /// Use it for handlers that depend on a service outside the cluster: after an outage that outlasts the retries, no
    /// watch event would call them.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::HandlerOptions;
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
    /// It shortens the backoff, and delays that errors set, but not a delay that the API server asks for. The function
    /// is called after each failure that is retried, with the newest state of the object, or `None` if it is deleted.
    /// It returns the longest delay, or `None` for no limit. It must be fast.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::HandlerOptions;
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
    /// It is not called until [`SharedController::resume`](crate::SharedController::resume). Keys that become due for
    /// it wait.
    pub fn paused(self) -> Self {
        Self {
            is_paused: true,
            ..self
        }
    }

    /// Limits the number of concurrent calls of the handler (default: no own limit).
    ///
    /// Without a limit, the number of the kind's workers is the bound. With zero, the registration fails.
    ///
    /// A key beyond the limit waits without occupying a worker. For this key, the handler may be called after handlers
    /// that were registered later.
    pub fn concurrency(self, calls: usize) -> Self {
        let concurrency = Some(calls);
        Self {
            concurrency,
            ..self
        }
    }

    /// Sets the rate limiter for retries of the handler.
    ///
    /// The default is the limiter of the kind:
    /// [`ControllerOptions::rate_limiter`](crate::ControllerOptions::rate_limiter). `limiter` is called once for each
    /// handler, so that handlers do not share the state of a limiter.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::queue::Exponential;
    /// use lariat::HandlerOptions;
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
    /// Only changes of the handler's own kind are filtered; [`Predicate`] lists the other reasons for a call. After a
    /// second call, both predicates have to select a change. The predicate of the kind or the factory counts only if
    /// the handler has none.
    pub fn only(self, predicate: Predicate) -> Self {
        let predicate = Some(Predicate::both(self.predicate, predicate));
        Self { predicate, ..self }
    }

    /// Calls the handler also for changes that this predicate selects.
    ///
    /// A change that it selects need not be selected by [`only`](Self::only), be it of the handler, its kind or its
    /// factory. Several predicates add up: one of them has to select the change.
    ///
    /// ```
    /// use lariat::{HandlerOptions, Predicate};
    ///
    /// let options = HandlerOptions::default()
    ///     .only(Predicate::generation_changed())
    ///     .also(Predicate::labels("reload=true".parse()?));
    /// # let _ = options;
    /// # Ok::<(), lariat::core::SelectorError>(())
    /// ```
    pub fn also(self, predicate: Predicate) -> Self {
        let also = Predicate::either(self.also, Some(predicate));
        Self { also, ..self }
    }

    /// Delays the call after a change, so that further changes lead to the same call.
    ///
    /// By default, and with zero, there is no delay. The delay counts from the first change, so a key that changes all
    /// the time is processed once per period. It applies to changes of the kind and of [related](crate::Relation)
    /// objects. Initial lists, resyncs, deletions, retries and enqueued keys call the handler without this delay; the
    /// changes that wait call it again at their time. Other handlers of the kind are not delayed.
    ///
    /// Changes that wait when the factory stops are handled after its next start. A new process is called for all
    /// objects anyway.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::HandlerOptions;
    ///
    /// // A Deployment whose Pods come and go is summed up twice a second.
    /// let options = HandlerOptions::default().debounce(Duration::from_millis(500));
    /// # let _ = options;
    /// ```
    pub fn debounce(self, period: Duration) -> Self {
        let debounce = Some(period);
        Self { debounce, ..self }
    }

    /// Delays calls of a key that is in a hot loop.
    ///
    /// Only calls that are caused by the handlers' own writes and enqueues are delayed. By default, and with zero,
    /// nothing is delayed: a [hot loop](crate::HotLoopOptions) is reported only. A delay of more than a minute counts
    /// as a minute. Changes by other writers and deletions are not delayed.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::HandlerOptions;
    ///
    /// let options = HandlerOptions::default().slow_hot_loops(Duration::from_secs(10));
    /// # let _ = options;
    /// ```
    pub fn slow_hot_loops(self, delay: Duration) -> Self {
        let slow_hot_loops = Some(delay);
        Self {
            slow_hot_loops,
            ..self
        }
    }

    /// Sets the priority of changes for the handler.
    ///
    /// By default it is normal, and low for the initial list and for resyncs. A key has the highest priority of the
    /// handlers that are due for it.
    pub fn priority(self, priority: Priority) -> Self {
        let priority = Some(priority);
        Self { priority, ..self }
    }

    /// Sets when the handler is resynced (default [`Resync::OfKind`]).
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::controller::Resync;
    /// use lariat::HandlerOptions;
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
    /// The default is the identity of the factory's client. It applies to [`Context::client`](crate::Context::client);
    /// the watch is still shared.
    ///
    /// ```
    /// use lariat::cache::ClientIdentity;
    /// use lariat::HandlerOptions;
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
    /// From then on no call begins; running calls continue. The handler is removed shortly afterwards while the factory
    /// runs, or at its next start, as by [`Registration::deregister`](crate::Registration::deregister).
    ///
    /// ```
    /// use lariat::HandlerOptions;
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

    /// Adds a function to call when the handler has been deregistered.
    ///
    /// A handler is deregistered by [`deregister`](crate::Registration::deregister), by its [token](Self::until), or
    /// with its factory. Its last call may still be running.
    ///
    /// For a handler of several kinds, the function is called once for each kind. Set in the options of a kind or a
    /// factory, it is called for each of its handlers.
    ///
    /// It is called on the task that removes the handler, which may be one that registers another. So it must be fast,
    /// and must neither register handlers nor use a [`KindsRegistration`](crate::KindsRegistration).
    ///
    /// ```
    /// use lariat::HandlerOptions;
    ///
    /// let options = HandlerOptions::default().on_end(|| println!("the handler is deregistered"));
    /// # let _ = options;
    /// ```
    pub fn on_end(mut self, end: impl Fn() + Send + Sync + 'static) -> Self {
        self.ends.push(Arc::new(end));
        self
    }

    /// Calls the handler for the keys that a stream yields.
    ///
    /// Use it for events from outside the cluster, such as those of a message queue.
    ///
    /// `keys` creates the stream when the kind's workers start, or when the handler is registered while they run. The
    /// stream is dropped when a stop begins, and with the handler. A stream that has ended or panicked is created again
    /// at the next start of the factory. It is polled on the task that supervises the kind, so it must not block. There
    /// is no backpressure: a key that comes again before it is processed is processed once.
    ///
    /// The request sets the delay, the priority and the reason. Keys are enqueued for this handler only; their objects
    /// need not exist. This is controller-runtime's `source.Channel`.
    ///
    /// ```
    /// use futures::stream;
    /// use lariat::{Enqueue, HandlerOptions, ObjectKey};
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

    /// Wraps middleware around the handler.
    ///
    /// It is inside the middleware that was added before.
    ///
    /// See [`Middleware`] for the order.
    ///
    /// ```
    /// use lariat::controller::{Call, Next};
    /// use lariat::{HandlerOptions, HandlerResult};
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

    /// Adds a gate, which decides on each write of the handler; see [`Gate`].
    ///
    /// Gates are called in the order in which they were added. The first refusal decides.
    pub fn gate(mut self, gate: impl Gate) -> Self {
        self.gates.push(Arc::new(gate));
        self
    }

    /// Returns these options, overridden by those that `others` set.
    ///
    /// Middleware of `others` is inside that of these options.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::HandlerOptions;
    ///
    /// let usual = HandlerOptions::default().timeout(Duration::from_secs(30));
    /// let options = usual.with(HandlerOptions::default().concurrency(4));
    /// # let _ = options;
    /// ```
    pub fn with(self, others: Self) -> Self {
        others.or(&self)
    }

    /// Returns these options; those that are not set are taken from `others`.
    pub(crate) fn or(self, others: &Self) -> Self {
        // Options are completed from the inside out: handler, kind, factory. So what is completed later is the outer
        // middleware.
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
            // An option that can be set but not unset, so one of both is enough.
            is_paused: self.is_paused || others.is_paused,
            concurrency: self.concurrency.or(others.concurrency),
            limiter: self.limiter.or_else(|| others.limiter.clone()),
            predicate: self.predicate.or_else(|| others.predicate.clone()),
            also: Predicate::either(self.also, others.also.clone()),
            debounce: self.debounce.or(others.debounce),
            slow_hot_loops: self.slow_hot_loops.or(others.slow_hot_loops),
            priority: self.priority.or(others.priority),
            resync: self.resync.or(others.resync),
            identity: self.identity.or_else(|| others.identity.clone()),
            until: self.until.or_else(|| others.until.clone()),
        }
    }

    /// Returns all middleware, outermost first; the timeout is last.
    pub(crate) fn all_middleware(&self) -> Vec<Arc<dyn AnyMiddleware>> {
        let mut all = self.middleware.clone();
        let limit = self.timeout.filter(|limit| !limit.is_zero());
        // Innermost: the limit covers the handler alone, and other middleware sees a timeout as the handler's error.
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
            .field("slow_hot_loops", &self.slow_hot_loops)
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
