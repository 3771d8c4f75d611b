//! The options of a controller.

use std::fmt;
use std::sync::Arc;

use lariat_cache::KindOptions;
use lariat_core::ObjectKey;
use lariat_lease::{Leadership, Shards};
use lariat_queue::{Ageing, QueueBuilder, RateLimiter, WorkQueue, group};

use crate::handler::{HandlerOptions, Resync};
use crate::hot_loop::HotLoopOptions;
use crate::payload::Queue;

/// Options of the controller of a kind, or defaults for all kinds of a factory.
///
/// An option that is not set for a kind is taken from the factory's
/// [defaults](crate::FactoryBuilder::default_options). [`cache`](Self::cache) is taken as a whole, not option by
/// option.
///
/// ```
/// use std::time::Duration;
/// use lariat::{ControllerOptions, HandlerOptions, KindOptions, Storage};
///
/// let secrets = ControllerOptions::default()
///     .workers(2)
///     .handlers(HandlerOptions::default().timeout(Duration::from_secs(60)))
///     .cache(KindOptions::default().storage(Storage::OnDemand));
/// # let _ = secrets;
/// ```
#[derive(Clone, Default)]
#[must_use = "options do nothing until a factory has them"]
pub struct ControllerOptions {
    pub(crate) workers: Option<usize>,
    /// Sets the rate limiter of a queue; without it lasso's backoff applies.
    limiter: Option<Arc<SetLimiter>>,
    fair_namespaces: Option<bool>,
    ageing: Option<Ageing>,
    pub(crate) handlers: HandlerOptions,
    only_changed: Option<bool>,
    pub(crate) cache: Option<KindOptions>,
    history: Option<usize>,
    hot_loops: Option<HotLoopOptions>,
    needs_leader: Option<bool>,
    /// The election: only its leader runs workers of the kind. Set by the factory.
    pub(crate) leadership: Option<Leadership>,
    /// The ring: its members share the keys of the kind. Set by the factory.
    pub(crate) shards: Option<Shards>,
}

type SetLimiter = dyn Fn(QueueBuilder<ObjectKey>) -> QueueBuilder<ObjectKey> + Send + Sync;

/// The default number of runs a controller remembers.
const HISTORY: usize = 256;

impl ControllerOptions {
    /// Sets how many workers the kind has (default 5).
    ///
    /// It is the number of keys processed at the same time: controller-runtime's `MaxConcurrentReconciles`. The default
    /// is lasso's. Zero makes a start fail.
    ///
    /// Set for a kind, it overrides the argument of [`start`](crate::SharedControllerFactory::start). Set in the
    /// factory's defaults, the argument of `start` overrides it.
    pub fn workers(self, workers: usize) -> Self {
        let workers = Some(workers);
        Self { workers, ..self }
    }

    /// Sets the rate limiter for retries of failed handlers.
    ///
    /// The default is [`lasso_default`](lariat_queue::lasso_default): 5 ms, doubled by each further failure up to 30 s,
    /// and 2 minutes from the 31st failure on.
    ///
    /// `limiter` is called once for each kind, so that kinds do not share the state of a limiter.
    ///
    /// ```
    /// use lariat::ControllerOptions;
    ///
    /// let options = ControllerOptions::default().rate_limiter(lariat::queue::controller_runtime_default);
    /// # let _ = options;
    /// ```
    pub fn rate_limiter<L: RateLimiter>(
        self,
        limiter: impl Fn() -> L + Send + Sync + 'static,
    ) -> Self {
        let set: Arc<SetLimiter> = Arc::new(move |builder| builder.limiter(limiter()));
        let limiter = Some(set);
        Self { limiter, ..self }
    }

    /// Sets how long low priorities wait behind fresh changes.
    ///
    /// Initial lists and resyncs have low priority. By default, once such a key has waited for a second, every fourth
    /// dequeue takes the oldest key; see [`Ageing`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use lariat::queue::Ageing;
    /// use lariat::ControllerOptions;
    ///
    /// let ageing = Ageing::new(Duration::from_secs(5), 4);
    /// let options = ControllerOptions::default().ageing(ageing);
    /// # let _ = options;
    /// ```
    pub fn ageing(self, ageing: Ageing) -> Self {
        let ageing = Some(ageing);
        Self { ageing, ..self }
    }

    /// Sets fair queuing between namespaces (default false).
    ///
    /// With `true`, the queue takes keys of the namespaces in turn, so that a busy namespace does not delay the others.
    /// With `false`, keys of a priority are dequeued in the order in which they were added.
    ///
    /// ```
    /// use lariat::ControllerOptions;
    ///
    /// let options = ControllerOptions::default().workers(10).fair_namespaces(true);
    /// # let _ = options;
    /// ```
    pub fn fair_namespaces(self, fair: bool) -> Self {
        let fair_namespaces = Some(fair);
        Self {
            fair_namespaces,
            ..self
        }
    }

    /// Sets the default options of handlers, and the middleware around all of them.
    pub fn handlers(self, handlers: HandlerOptions) -> Self {
        Self { handlers, ..self }
    }

    /// Calls handlers for changes only, not for resyncs.
    ///
    /// A handler with a [resync period](crate::HandlerOptions::resync) of its own still gets its resyncs. This is
    /// lasso's `SyncOnlyChangedObjects`.
    pub fn only_changed(self) -> Self {
        let only_changed = Some(true);
        Self {
            only_changed,
            ..self
        }
    }

    /// Sets how the kind is cached (default: see [`KindOptions`]).
    ///
    /// The cache's options are its namespaces and selectors, how objects are stored, the resync period, the sync
    /// timeout, and what happens if the kind is not served.
    pub fn cache(self, cache: KindOptions) -> Self {
        let cache = Some(cache);
        Self { cache, ..self }
    }

    /// Sets how many runs of the kind are remembered (default 256; zero for none).
    ///
    /// A run takes about 200 bytes, plus 100 for each handler that was called.
    ///
    /// Unless it is zero, up to four earlier runs of each recent key are kept as well: at most 4,096 runs and 1 MiB per
    /// kind. The oldest are evicted first.
    pub fn history(self, runs: usize) -> Self {
        let history = Some(runs);
        Self { history, ..self }
    }

    /// Sets how hot loops are detected.
    ///
    /// The default is [`HotLoopOptions::default`].
    pub fn hot_loops(self, hot_loops: HotLoopOptions) -> Self {
        let hot_loops = Some(hot_loops);
        Self { hot_loops, ..self }
    }

    /// Sets whether only the leader handles the kind (default true).
    ///
    /// It takes effect with [`leader_election`](crate::FactoryBuilder::leader_election) or
    /// [`sharding`](crate::FactoryBuilder::sharding). controller-runtime calls it `NeedLeaderElection`.
    ///
    /// With `false`, every replica handles all objects of the kind. Use it for controllers that only read, such as one
    /// that serves HTTP requests from the cache.
    ///
    /// ```
    /// use lariat::ControllerOptions;
    ///
    /// let read_only = ControllerOptions::default().needs_leader(false);
    /// # let _ = read_only;
    /// ```
    pub fn needs_leader(self, needs: bool) -> Self {
        let needs_leader = Some(needs);
        Self {
            needs_leader,
            ..self
        }
    }

    /// Sets the factory's election and ring, unless every replica handles the kind.
    pub(crate) fn elected(
        mut self,
        leadership: Option<Leadership>,
        shards: Option<Shards>,
    ) -> Self {
        if self.is_led_or(true) {
            self.leadership = leadership;
            self.shards = shards;
        }
        self
    }

    /// Returns whether an election or a ring decides which replica handles the kind.
    pub(crate) fn is_led_or(&self, default: bool) -> bool {
        self.needs_leader.unwrap_or(default)
    }

    /// Returns these options; those that are not set are taken from `others`.
    pub(crate) fn or(self, others: &Self) -> Self {
        Self {
            workers: self.workers.or(others.workers),
            limiter: self.limiter.or_else(|| others.limiter.clone()),
            fair_namespaces: self.fair_namespaces.or(others.fair_namespaces),
            ageing: self.ageing.or(others.ageing),
            handlers: self.handlers.or(&others.handlers),
            only_changed: self.only_changed.or(others.only_changed),
            cache: self.cache.or_else(|| others.cache.clone()),
            history: self.history.or(others.history),
            hot_loops: self.hot_loops.or_else(|| others.hot_loops.clone()),
            needs_leader: self.needs_leader.or(others.needs_leader),
            leadership: self.leadership,
            shards: self.shards,
        }
    }

    /// Returns the options of a handler, with the kind's defaults.
    pub(super) fn complete(&self, options: HandlerOptions) -> HandlerOptions {
        let mut options = options.or(&self.handlers);
        if self.only_changed == Some(true) {
            // A period that the handler sets itself takes precedence.
            options.resync.get_or_insert(Resync::Never);
        }
        options
    }

    pub(super) fn runs_remembered(&self) -> usize {
        self.history.unwrap_or(HISTORY)
    }

    pub(super) fn hot_loop_options(&self) -> HotLoopOptions {
        self.hot_loops.clone().unwrap_or_default()
    }

    /// Creates the work queue of one controller.
    pub(super) fn queue(&self) -> Queue {
        let ageing = self.ageing.unwrap_or_default();
        let mut builder = WorkQueue::<ObjectKey>::builder().ageing(ageing);
        if let Some(limiter) = &self.limiter {
            builder = limiter(builder);
        }
        if self.fair_namespaces == Some(true) {
            builder = builder.fair_by(|key: &ObjectKey| group(&key.namespace()));
        }
        builder.build()
    }
}

impl fmt::Debug for ControllerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerOptions")
            .field("workers", &self.workers)
            .field("fair_namespaces", &self.fair_namespaces)
            .field("handlers", &self.handlers)
            .field("cache", &self.cache)
            .field("hot_loops", &self.hot_loops)
            .finish_non_exhaustive()
    }
}
