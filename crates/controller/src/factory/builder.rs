//! The builder of a factory.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use lariat_cache::{CacheFactoryBuilder, MissingKind, SharedCacheFactory};
use lariat_core::Gvk;
use lariat_lease::{Elector, Lease, RingMember, Sharding};

use super::factory::SharedControllerFactory;
use super::options::{Election, Options};
use crate::controller::ControllerOptions;

/// Configures a [`SharedControllerFactory`].
///
/// Created by [`SharedControllerFactory::builder`].
///
/// ```no_run
/// use std::time::Duration;
/// use lariat::SharedControllerFactory;
///
/// # fn example(client: kube::Client) {
/// let factory = SharedControllerFactory::builder(client)
///     .sync_timeout(Duration::from_secs(60))
///     .grace_period(Duration::from_secs(20))
///     .build();
/// # let _ = factory; }
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct FactoryBuilder {
    caches: CacheFactoryBuilder,
    options: Options,
}

impl SharedControllerFactory {
    /// Returns a builder of a factory that uses `client`.
    pub fn builder(client: Client) -> FactoryBuilder {
        FactoryBuilder::new(client)
    }
}

impl FactoryBuilder {
    pub(super) fn new(client: Client) -> Self {
        Self {
            caches: SharedCacheFactory::builder(client),
            options: Options::default(),
        }
    }

    /// Sets the default options of all kinds.
    ///
    /// Options of [a kind](Self::kind_options) take precedence.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use lariat::{ControllerOptions, Gvk, HandlerOptions, SharedControllerFactory};
    ///
    /// # fn example(client: kube::Client) {
    /// let handlers = HandlerOptions::default().timeout(Duration::from_secs(60));
    /// let factory = SharedControllerFactory::builder(client)
    ///     .default_options(ControllerOptions::default().handlers(handlers))
    ///     .kind_options(Gvk::new("", "v1", "Pod"), ControllerOptions::default().workers(20))
    ///     .build();
    /// # let _ = factory; }
    /// ```
    pub fn default_options(mut self, options: ControllerOptions) -> Self {
        if let Some(cache) = &options.cache {
            self.caches = self.caches.default_options(cache.clone());
        }
        self.options.default = options;
        self
    }

    /// Sets the options of a kind. A second call for the kind replaces the first.
    pub fn kind_options(mut self, gvk: impl Into<Gvk>, options: ControllerOptions) -> Self {
        let gvk = gvk.into();
        if let Some(cache) = &options.cache {
            self.caches = self.caches.kind_options(gvk.clone(), cache.clone());
        }
        self.options.kinds.insert(gvk, options);
        self
    }

    /// Sets how long a start waits until all caches are synced (default 2 minutes).
    ///
    /// Zero makes the start fail unless they are synced already. A start that times out stops everything again.
    pub fn sync_timeout(mut self, timeout: Duration) -> Self {
        self.options.sync_timeout = timeout;
        self
    }

    /// Sets how long a stop waits for keys that are due (default 30 seconds).
    ///
    /// Zero drops running calls immediately; [`Duration::MAX`] waits forever.
    pub fn grace_period(mut self, grace: Duration) -> Self {
        self.options.grace_period = grace;
        self
    }

    /// Sets after which time a blocked thread is logged (default 2 seconds).
    ///
    /// A call blocks its thread while it computes, sleeps with `std::thread::sleep`, or waits for a lock or for
    /// blocking I/O; call such code in [`tokio::task::spawn_blocking`]. A thread named `lariat-watchdog` looks at the
    /// running calls four times within this time, but at least twice and at most a hundred times a second. It logs
    /// kind, key and handler at level error, again after twice and four times the time and so on, and once more when
    /// the call returns. It also logs if the runtime, of which it wakes a thread with each look, polls no task for so
    /// long, and calls that have not ended after a minute, unless a [timeout](crate::HandlerOptions::timeout) limits
    /// them.
    ///
    /// Zero counts as ten milliseconds; [`Duration::MAX`] logs no blocked calls. The time is counted in looks, so a
    /// suspended process is not taken for a blocked one. In a [simulation](lariat_core::clock::simulate) nothing is
    /// logged.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use lariat::SharedControllerFactory;
    ///
    /// # fn example(client: kube::Client) {
    /// let factory = SharedControllerFactory::builder(client)
    ///     .blocked_after(Duration::from_millis(500))
    ///     .build();
    /// # let _ = factory; }
    /// ```
    pub fn blocked_after(mut self, limit: Duration) -> Self {
        self.options.blocked_after = limit;
        self
    }

    /// Sets what a start does about a kind that is not served (default: it fails).
    pub fn missing_kind(self, missing: MissingKind) -> Self {
        self.caches(|caches| caches.missing_kind(missing))
    }

    /// Elects a leader among the replicas; only the leader runs workers.
    ///
    /// By default every replica runs workers.
    ///
    /// [`start`](SharedControllerFactory::start) fills the caches and queues of a standby replica too, so that it can
    /// take over without delay. Its workers start once it leads. [`needs_leader`](ControllerOptions::needs_leader)
    /// exempts kinds that every replica handles.
    ///
    /// A process that cannot renew its lease drops running calls at its renew deadline, before another can lead, and
    /// [`run`](SharedControllerFactory::run) ends with [`RunError::Lost`](crate::RunError::Lost). From the deadline on,
    /// writes through the factory's clients that were not handed to a connection before are refused with
    /// [`Fenced`](lariat_lease::Fenced), in handlers, in tasks that they spawned and outside, also in a process that
    /// was suspended and resumes; see [`Context::client`](crate::Context::client) and
    /// [`unfenced_client`](SharedControllerFactory::unfenced_client). A [`stop`](SharedControllerFactory::stop) lets
    /// handlers finish and then releases the lease, so another process takes over immediately. If calls had to be
    /// dropped, or if the factory is dropped without a stop, the lease expires instead.
    ///
    /// ```no_run
    /// use lariat::{Lease, SharedControllerFactory};
    ///
    /// # fn example(client: kube::Client) {
    /// let factory = SharedControllerFactory::builder(client)
    ///     .leader_election(Lease::new("shop-operator"))
    ///     .build();
    /// # let _ = factory; }
    /// ```
    ///
    /// # After a loss
    ///
    /// Losing the lease does not exit the process. `run` returns the error, as controller-runtime's manager does. A
    /// program that passes it on exits, is restarted by Kubernetes, and stands by. A program can also run the factory
    /// again, which stands by as well. When it leads again, remaining keys and changed objects are processed:
    ///
    /// ```no_run
    /// use lariat::controller::RunError;
    /// use lariat::SharedControllerFactory;
    /// use tokio_util::sync::CancellationToken;
    ///
    /// # async fn example(factory: SharedControllerFactory, shutdown: CancellationToken)
    /// # -> Result<(), RunError> {
    /// loop {
    ///     match factory.run(5, shutdown.cancelled()).await {
    ///         Err(RunError::Lost(why)) => eprintln!("{why}; standing by"),
    ///         ended => return ended,
    ///     }
    /// }
    /// # }
    /// ```
    ///
    /// To react in another way, [start](SharedControllerFactory::start) the factory and await
    /// [`lease_lost`](SharedControllerFactory::lease_lost). Kinds that need no leader keep running until the factory is
    /// stopped.
    pub fn leader_election(mut self, lease: Lease) -> Self {
        // An error is kept until the start, which returns it, so that building a factory cannot fail.
        let elector = Elector::new(self.lease_client(), lease);
        self.options.election = Some(match elector {
            Ok(elector) => Election::Leader(Arc::new(elector)),
            Err(error) => Election::Invalid(error),
        });
        self
    }

    /// Divides the keys among the replicas (default: every replica handles all keys).
    ///
    /// Each object belongs to one member of the ring. The member follows from a hash of the controlling owner's
    /// identity or, without an owner, of the object's own ([`ShardKey`](lariat_lease::ShardKey)). So an object and the
    /// objects that it controls are processed by the same member.
    ///
    /// A member processes only the keys of its share. It caches the metadata of all objects and the content of its
    /// share; other content is fetched on demand, see [`ContentFilter`](lariat_cache::ContentFilter). Objects without a
    /// controlling owner whose kind has no handlers belong to no member; all members cache them whole. Each member that
    /// joins or leaves costs one list of each kind.
    ///
    /// A process joins when its caches are synced. The other members then stop dequeuing the keys that move, wait for
    /// running calls, and hand the keys over. Only then does the new member process them, all of them, as after a
    /// start. A [`stop`](SharedControllerFactory::stop) lets handlers finish and then leaves, and the keys move
    /// immediately. The keys of a process that crashes move one lease duration later. Losing the lease has the same
    /// effect as with [`leader_election`](Self::leader_election). If both an election and a ring are configured, the
    /// last one set applies.
    ///
    /// The controlling owner counts that an object has when a worker dequeues its key. If the owner changes, two
    /// members may process the object at the same time, until both have seen the change and their running calls have
    /// ended.
    ///
    /// A key that is enqueued in a process it does not belong to is not processed there. A deletion is lost if its key
    /// moves before it is handled, or if it happens during the move: cleanup that must happen needs a finalizer.
    ///
    /// ```no_run
    /// use lariat::{Lease, Sharding, SharedControllerFactory};
    ///
    /// # fn example(client: kube::Client) {
    /// let factory = SharedControllerFactory::builder(client)
    ///     .sharding(Sharding::new(Lease::new("shop-operator")))
    ///     .build();
    /// # let _ = factory; }
    /// ```
    pub fn sharding(mut self, ring: impl Into<Sharding>) -> Self {
        let member = RingMember::new(self.lease_client(), ring.into());
        self.options.election = Some(match member {
            Ok(member) => Election::Ring(Arc::new(member)),
            Err(error) => Election::Invalid(error),
        });
        self
    }

    /// Configures the caches as a whole.
    ///
    /// The options are the memory bound of all caches together, snapshots for the next start, and how long an unused
    /// kind is kept. For the cache of one kind see [`ControllerOptions::cache`].
    pub fn caches(
        mut self,
        configure: impl FnOnce(CacheFactoryBuilder) -> CacheFactoryBuilder,
    ) -> Self {
        self.caches = configure(self.caches);
        self
    }

    /// Builds the factory. No request is sent before the start.
    #[must_use]
    pub fn build(self) -> SharedControllerFactory {
        let caches = match self.options.shards() {
            Some(shards) => self.caches.content_filter(self.options.content_of(shards)),
            None => self.caches,
        };
        SharedControllerFactory::new(caches, self.options)
    }

    /// Returns the client for leases.
    ///
    /// The factory's other clients ask gates and the fence before they write. A lease must be renewed whatever they
    /// decide.
    fn lease_client(&self) -> Client {
        self.caches.counting_client()
    }
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryBuilder")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
