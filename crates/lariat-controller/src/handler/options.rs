//! What can be chosen for a handler.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lariat_cache::{CachedObject, ClientIdentity};
use lariat_queue::{Priority, RateLimiter};
use tokio_util::sync::CancellationToken;

use super::call::AnyMiddleware;
use super::middleware::{Middleware, Timeout};
use super::predicate::Predicate;
use crate::gate::Gate;

/// The options of a handler; also the defaults for all handlers of a kind, or of a factory.
///
/// What is not set for a handler is as the kind says, then as the factory says. Middleware, gates and ends add up.
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
    pub(crate) given_up: Option<Arc<GivenUp>>,
    pub(crate) concurrency: Option<usize>,
    pub(crate) limiter: Option<Arc<MakeLimiter>>,
    pub(crate) predicate: Option<Predicate>,
    pub(crate) also: Option<Predicate>,
    pub(crate) priority: Option<Priority>,
    pub(crate) resync: Option<Resync>,
    pub(crate) identity: Option<ClientIdentity>,
    pub(crate) until: Option<CancellationToken>,
    pub(crate) middleware: Vec<Arc<dyn AnyMiddleware>>,
    pub(crate) gates: Vec<Arc<dyn Gate>>,
    pub(crate) ends: Vec<Arc<End>>,
}

type End = dyn Fn() + Send + Sync;

/// Says when a handler is called again that gave up.
pub(crate) type GivenUp = dyn Fn(Option<&CachedObject>) -> Option<Duration> + Send + Sync;

type MakeLimiter = dyn Fn() -> Box<dyn RateLimiter> + Send + Sync;

/// When a handler is called although nothing happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resync {
    /// When the kind resyncs ([`KindOptions::resync`](lariat_cache::KindOptions::resync)), which by default
    /// it never does.
    #[default]
    OfKind,
    /// Never, even if the kind does: lasso's `SyncOnlyChangedObjects`, kooper's `DisableResync`.
    Never,
    /// For every object there is, with this period, whatever the kind does. The handler alone is called, at
    /// low priority, without a request to the API server. Less than a second counts as a second, which is
    /// client-go's shortest period.
    Every(Duration),
}

impl Resync {
    /// kooper's default: every three minutes.
    pub const KOOPER: Self = Self::Every(Duration::from_secs(180));
    /// The default of lasso and controller-runtime: every ten hours.
    pub const TEN_HOURS: Self = Self::Every(Duration::from_secs(36_000));
}

impl HandlerOptions {
    /// Sets how long a call may take (default: as long as it likes; zero means so too).
    ///
    /// A call that takes longer is dropped at its next await and counts as a failure. What the handler is wrapped
    /// in, and fetching content that is not cached, is not counted.
    pub fn timeout(self, timeout: Duration) -> Self {
        let timeout = Some(timeout);
        Self { timeout, ..self }
    }

    /// Sets how many times in a row a failed call is tried again (default: without end; zero: never).
    ///
    /// After that the failure is logged as final, and the handler is called again when something happens, or
    /// [after a while](Self::requeue_given_up).
    pub fn max_retries(self, retries: u32) -> Self {
        let max_retries = Some(retries);
        Self {
            max_retries,
            ..self
        }
    }

    /// Sets when the handler is called again for an object for which it failed for good: by a terminal error, or
    /// because its retries are used up (default: when something happens). Its failures are forgotten then.
    ///
    /// The function is asked after each such failure, with the newest state of the object, or `None` if it is gone;
    /// `None` means when something happens. It must be quick. A change meanwhile calls the handler earlier, and takes
    /// the place of this call.
    ///
    /// For handlers that look at something of which no watch reports: an outage that outlasts the retries would end that.
    pub fn requeue_given_up(
        self,
        after: impl Fn(Option<&CachedObject>) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        let given_up: Option<Arc<GivenUp>> = Some(Arc::new(after));
        Self { given_up, ..self }
    }

    /// Sets how many calls of the handler may be under way at a time (default: as many as the kind has
    /// workers; zero is refused when the handler is registered).
    ///
    /// A key that comes when as many are under way waits its turn without holding a worker, so the handler
    /// is then called after those that are registered behind it.
    pub fn concurrency(self, calls: usize) -> Self {
        let concurrency = Some(calls);
        Self {
            concurrency,
            ..self
        }
    }

    /// Sets how long the handler waits after failures (default: as
    /// [`ControllerOptions::rate_limiter`](crate::ControllerOptions::rate_limiter) says).
    ///
    /// `limiter` is called once for each handler, so that handlers never share one by accident.
    pub fn rate_limiter<L: RateLimiter>(
        self,
        limiter: impl Fn() -> L + Send + Sync + 'static,
    ) -> Self {
        let make: Arc<MakeLimiter> = Arc::new(move || Box::new(limiter()));
        let limiter = Some(make);
        Self { limiter, ..self }
    }

    /// Sets for which changes of its own kind the handler is called (default: for all); see [`Predicate`] for what
    /// else calls it.
    pub fn only(self, predicate: Predicate) -> Self {
        let predicate = Some(predicate);
        Self { predicate, ..self }
    }

    /// Sets for which changes of its own kind the handler is called whatever [`only`](Self::only) says, of the
    /// handler, its kind or its factory (default: for none). Further predicates add to it.
    pub fn also(self, predicate: Predicate) -> Self {
        let also = Predicate::either(self.also, Some(predicate));
        Self { also, ..self }
    }

    /// Sets how urgent changes are for the handler (default: normal, and low for what was there when the
    /// cache was filled and for resyncs).
    ///
    /// A key has the priority of the most urgent handler that is due for it.
    pub fn priority(self, priority: Priority) -> Self {
        let priority = Some(priority);
        Self { priority, ..self }
    }

    /// Sets when the handler is called although nothing happened (default [`Resync::OfKind`]).
    pub fn resync(self, resync: Resync) -> Self {
        let resync = Some(resync);
        Self { resync, ..self }
    }

    /// Sets as whom the handler writes through [`Context::client`](crate::Context::client) (default: as the
    /// factory's client does). It causes no second watch.
    pub fn identity(self, identity: ClientIdentity) -> Self {
        let identity = Some(identity);
        Self { identity, ..self }
    }

    /// Registers the handler until a token is cancelled.
    ///
    /// From then on no call begins; one that is under way is not disturbed. What
    /// [`Registration::deregister`](crate::Registration::deregister) does follows by itself, while the
    /// factory runs or when it next starts.
    pub fn until(self, token: CancellationToken) -> Self {
        let until = Some(token);
        Self { until, ..self }
    }

    /// Calls a function once the handler is taken away: when it is deregistered, when its [token](Self::until) is
    /// cancelled, or when its factory is dropped. Its last call may be under way. Further functions add to it.
    ///
    /// A handler of several kinds ends in each of them, each time the kind goes; with the options of a kind or of a
    /// factory each of its handlers calls it.
    ///
    /// It is called by whoever takes the handler away, which may be somebody who registers another one: it must be
    /// quick, and must neither register handlers nor ask a [`KindsRegistration`](crate::KindsRegistration).
    pub fn on_end(mut self, end: impl Fn() + Send + Sync + 'static) -> Self {
        self.ends.push(Arc::new(end));
        self
    }

    /// Wraps middleware around the handler, inside of what was wrapped before.
    pub fn wrap(mut self, middleware: impl Middleware) -> Self {
        self.middleware.push(Arc::new(middleware));
        self
    }

    /// Has a gate asked before each write of the handler, after the gates that were given before; see [`Gate`].
    pub fn gate(mut self, gate: impl Gate) -> Self {
        self.gates.push(Arc::new(gate));
        self
    }

    /// Returns these options, with others for what is not set.
    pub(crate) fn or(self, others: &Self) -> Self {
        let outer = others.middleware.iter().cloned();
        Self {
            middleware: outer.chain(self.middleware).collect(),
            gates: others.gates.iter().cloned().chain(self.gates).collect(),
            ends: others.ends.iter().cloned().chain(self.ends).collect(),
            timeout: self.timeout.or(others.timeout),
            max_retries: self.max_retries.or(others.max_retries),
            given_up: self.given_up.or_else(|| others.given_up.clone()),
            concurrency: self.concurrency.or(others.concurrency),
            limiter: self.limiter.or_else(|| others.limiter.clone()),
            predicate: self.predicate.or_else(|| others.predicate.clone()),
            also: Predicate::either(self.also, others.also.clone()),
            priority: self.priority.or(others.priority),
            resync: self.resync.or(others.resync),
            identity: self.identity.or_else(|| others.identity.clone()),
            until: self.until.or_else(|| others.until.clone()),
        }
    }

    /// Returns all middleware, the timeout included.
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
            .field("priority", &self.priority)
            .field("resync", &self.resync)
            .field("identity", &self.identity)
            .field("middleware", &self.middleware.len())
            .field("gates", &self.gates.len())
            .field("ends", &self.ends.len())
            .finish_non_exhaustive()
    }
}
