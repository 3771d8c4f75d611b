//! The options of a factory.

use std::fmt;
use std::time::Duration;

use kube::Client;
use lariat_cache::{CacheFactoryBuilder, MissingKind, SharedCacheFactory};
use lariat_queue::{Ageing, RateLimiter};

use super::SharedControllerFactory;
use crate::controller::ControllerOptions;

/// How long a start waits for caches: controller-runtime's `CacheSyncTimeout`.
const SYNC_TIMEOUT: Duration = Duration::from_secs(120);

/// How long a stop waits for handlers: controller-runtime's `GracefulShutdownTimeout`.
const GRACE_PERIOD: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) sync_timeout: Duration,
    pub(super) grace_period: Duration,
    pub(super) controller: ControllerOptions,
}

/// Configures a [`SharedControllerFactory`].
#[must_use = "a builder does nothing until it is built"]
pub struct FactoryBuilder {
    caches: CacheFactoryBuilder,
    options: Options,
}

impl FactoryBuilder {
    pub(super) fn new(client: Client) -> Self {
        Self {
            caches: SharedCacheFactory::builder(client),
            options: Options {
                sync_timeout: SYNC_TIMEOUT,
                grace_period: GRACE_PERIOD,
                controller: ControllerOptions::default(),
            },
        }
    }

    /// Sets how long a start waits until all caches are filled (default 2 minutes; zero fails unless
    /// they are filled already).
    pub fn sync_timeout(mut self, timeout: Duration) -> Self {
        self.options.sync_timeout = timeout;
        self
    }

    /// Sets how long a stop lets handlers finish what is due (default 30 seconds; zero drops calls
    /// under way at once).
    pub fn grace_period(mut self, grace: Duration) -> Self {
        self.options.grace_period = grace;
        self
    }

    /// Sets how long one call of a handler may take (default: as long as it likes; zero is refused by
    /// every handler that awaits anything).
    ///
    /// A call that takes longer is dropped at its next await and counts as a failure.
    pub fn handler_timeout(mut self, timeout: Duration) -> Self {
        self.options.controller.handler_timeout = Some(timeout);
        self
    }

    /// Sets how long failed handlers wait (default:
    /// [`lasso_default`](lariat_queue::lasso_default), 5 ms doubling up to 30 s, and 2 minutes from the
    /// 31st failure on).
    ///
    /// `limiter` is called once for each kind, so that kinds never share one by accident.
    pub fn rate_limiter<L: RateLimiter>(
        mut self,
        limiter: impl Fn() -> L + Send + Sync + 'static,
    ) -> Self {
        self.options.controller.set_limiter(limiter);
        self
    }

    /// Sets how long initial lists and other low priorities wait behind fresh changes (default: a second,
    /// then every fourth hand-out; see [`Ageing`]).
    pub fn ageing(mut self, ageing: Ageing) -> Self {
        self.options.controller.ageing = ageing;
        self
    }

    /// Lets the namespaces of a kind take turns, so that one in which much happens does not hold back
    /// the others (default: first come first served over all namespaces).
    pub fn fair_namespaces(mut self) -> Self {
        self.options.controller.fair_namespaces = true;
        self
    }

    /// Sets what a start does about a kind the API server does not serve (default: it fails at once).
    pub fn missing_kind(self, missing: MissingKind) -> Self {
        self.caches(|caches| caches.missing_kind(missing))
    }

    /// Configures the caches: which objects of a kind they hold and in which form, how often they resync,
    /// how much memory they may hold.
    ///
    /// ```no_run
    /// use lariat_cache::{KindOptions, Storage};
    /// use lariat_controller::SharedControllerFactory;
    /// use lariat_core::Gvk;
    ///
    /// # fn example(client: kube::Client) {
    /// let secrets = KindOptions::default().storage(Storage::OnDemand);
    /// let factory = SharedControllerFactory::builder(client)
    ///     .caches(|caches| caches.kind_options(Gvk::new("", "v1", "Secret"), secrets))
    ///     .build();
    /// # let _ = factory; }
    /// ```
    pub fn caches(
        mut self,
        configure: impl FnOnce(CacheFactoryBuilder) -> CacheFactoryBuilder,
    ) -> Self {
        self.caches = configure(self.caches);
        self
    }

    /// Makes the factory; nothing is sent.
    #[must_use]
    pub fn build(self) -> SharedControllerFactory {
        SharedControllerFactory::new(self.caches, self.options)
    }
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryBuilder")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
