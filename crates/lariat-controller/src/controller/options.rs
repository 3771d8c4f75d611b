//! The options of a controller.

use std::fmt;
use std::sync::Arc;

use lariat_cache::KindOptions;
use lariat_core::ObjectKey;
use lariat_lease::{Leadership, Shards};
use lariat_queue::{Ageing, QueueBuilder, RateLimiter, WorkQueue, group};

use crate::flight::ControllerFlight;
use crate::handler::{HandlerOptions, Resync};
use crate::payload::Queue;
use crate::sentinel::Sentinel;

/// The options of a kind's controller; also the defaults for all kinds of a factory.
///
/// What is not set for a kind is as the factory says; how it is cached is taken as a whole.
///
/// ```
/// use std::time::Duration;
/// use lariat_cache::{KindOptions, Storage};
/// use lariat_controller::{ControllerOptions, HandlerOptions};
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
    /// Makes the limiter of one controller; lasso's curve without it.
    limiter: Option<Arc<SetLimiter>>,
    fair_namespaces: Option<bool>,
    ageing: Option<Ageing>,
    pub(crate) handlers: HandlerOptions,
    only_changed: Option<bool>,
    pub(crate) cache: Option<KindOptions>,
    history: Option<usize>,
    sentinel: Option<Sentinel>,
    needs_leader: Option<bool>,
    /// The election whose leader alone has workers of the kind; the factory sets it.
    pub(crate) leadership: Option<Leadership>,
    /// The ring among whose members the keys of the kind are divided; the factory sets it.
    pub(crate) shards: Option<Shards>,
}

type SetLimiter = dyn Fn(QueueBuilder<ObjectKey>) -> QueueBuilder<ObjectKey> + Send + Sync;

/// How many runs a controller remembers.
const HISTORY: usize = 256;

impl ControllerOptions {
    /// Sets how many keys of the kind are handled at a time (default 5, as in lasso; zero makes a start fail).
    ///
    /// For a kind it counts more than what [`start`](crate::SharedControllerFactory::start) is given, for the
    /// defaults of a factory less.
    pub fn workers(self, workers: usize) -> Self {
        let workers = Some(workers);
        Self { workers, ..self }
    }

    /// Sets how long failed handlers wait (default:
    /// [`lasso_default`](lariat_queue::lasso_default), 5 ms doubling up to 30 s, and 2 minutes from the
    /// 31st failure on).
    ///
    /// `limiter` is called once for each kind, so that kinds never share one by accident.
    pub fn rate_limiter<L: RateLimiter>(
        self,
        limiter: impl Fn() -> L + Send + Sync + 'static,
    ) -> Self {
        let set: Arc<SetLimiter> = Arc::new(move |builder| builder.limiter(limiter()));
        let limiter = Some(set);
        Self { limiter, ..self }
    }

    /// Sets how long initial lists and other low priorities wait behind fresh changes (default: a second,
    /// then every fourth dequeue; see [`Ageing`]).
    pub fn ageing(self, ageing: Ageing) -> Self {
        let ageing = Some(ageing);
        Self { ageing, ..self }
    }

    /// Lets the namespaces of the kind take turns, or not, so that one in which much happens does not hold
    /// back the others (default: first come first served over all namespaces).
    pub fn fair_namespaces(self, fair: bool) -> Self {
        let fair_namespaces = Some(fair);
        Self {
            fair_namespaces,
            ..self
        }
    }

    /// Sets what holds for handlers that do not say otherwise, and what is wrapped around all of them.
    pub fn handlers(self, handlers: HandlerOptions) -> Self {
        Self { handlers, ..self }
    }

    /// Calls handlers only for what has changed, not for resyncs, unless they ask for some of their own:
    /// lasso's `SyncOnlyChangedObjects`.
    pub fn only_changed(self) -> Self {
        let only_changed = Some(true);
        Self {
            only_changed,
            ..self
        }
    }

    /// Sets how the kind is cached: which namespaces and labels, in which form, how often it resyncs, how long
    /// a start waits for it, and what happens if it is not served (default: see [`KindOptions`]).
    pub fn cache(self, cache: KindOptions) -> Self {
        let cache = Some(cache);
        Self { cache, ..self }
    }

    /// Sets how many runs of the kind are remembered (default 256; zero for none). A run takes about 200 bytes, and 100
    /// for each handler that was called.
    ///
    /// Besides, unless it is zero, up to four earlier runs are kept of each key that ran lately: 4096 runs and one MiB
    /// at most for the kind, of which the oldest go first.
    pub fn history(self, runs: usize) -> Self {
        let history = Some(runs);
        Self { history, ..self }
    }

    /// Sets when a key counts as being in a hot loop, and how it is slowed down (default:
    /// [`Sentinel::default`]).
    pub fn sentinel(self, sentinel: Sentinel) -> Self {
        let sentinel = Some(sentinel);
        Self { sentinel, ..self }
    }

    /// Sets whether only the leader handles the kind (default true).
    ///
    /// It has an effect where the factory elects a leader: see
    /// [`leader_election`](crate::FactoryBuilder::leader_election), or divides its keys: see
    /// [`sharding`](crate::FactoryBuilder::sharding). controller-runtime calls it `NeedLeaderElection`.
    ///
    /// With `false` every replica handles all of the kind, as what only reads or serves does.
    pub fn needs_leader(self, needs: bool) -> Self {
        let needs_leader = Some(needs);
        Self {
            needs_leader,
            ..self
        }
    }

    /// Adds the election and the ring of the factory, unless every replica handles the kind.
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

    /// Returns whether an election or a ring decides who handles the kind.
    pub(crate) fn is_led_or(&self, default: bool) -> bool {
        self.needs_leader.unwrap_or(default)
    }

    /// Returns these options, with others for what is not set.
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
            sentinel: self.sentinel.or_else(|| others.sentinel.clone()),
            needs_leader: self.needs_leader.or(others.needs_leader),
            leadership: self.leadership,
            shards: self.shards,
        }
    }

    /// Returns the options of a handler, completed by what holds for all of the kind.
    pub(super) fn complete(&self, options: HandlerOptions) -> HandlerOptions {
        let mut options = options.or(&self.handlers);
        if self.only_changed == Some(true) {
            options.resync.get_or_insert(Resync::Never);
        }
        options
    }

    pub(super) fn runs_remembered(&self) -> usize {
        self.history.unwrap_or(HISTORY)
    }

    pub(super) fn sentinel_options(&self) -> Sentinel {
        self.sentinel.clone().unwrap_or_default()
    }

    /// Returns how low priorities rise in the queue, and whether namespaces take turns.
    pub(super) fn turns(&self) -> (Ageing, bool) {
        let ageing = self.ageing.unwrap_or_default();
        (ageing, self.fair_namespaces == Some(true))
    }

    /// Makes the queue of one controller.
    pub(super) fn queue(&self, flight: Option<&ControllerFlight>) -> Queue {
        let (ageing, fair) = self.turns();
        let mut builder = WorkQueue::<ObjectKey>::builder().ageing(ageing);
        if let Some(limiter) = &self.limiter {
            builder = limiter(builder);
        }
        if fair {
            builder = builder.fair_by(|key: &ObjectKey| group(&key.namespace()));
        }
        let Some(flight) = flight else {
            return builder.build();
        };
        flight.opened();
        builder.build_tapped(flight.clone())
    }
}

impl fmt::Debug for ControllerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerOptions")
            .field("workers", &self.workers)
            .field("fair_namespaces", &self.fair_namespaces)
            .field("handlers", &self.handlers)
            .field("cache", &self.cache)
            .field("sentinel", &self.sentinel)
            .finish_non_exhaustive()
    }
}
