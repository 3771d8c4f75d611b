//! The options of a factory.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use lariat_cache::{
    CacheFactoryBuilder, ContentFilter, FlightRecorder, MissingKind, SharedCacheFactory,
};
use lariat_core::Gvk;
use lariat_lease::{Elector, Leadership, Lease, LeaseError, RingMember, Sharding, Shards};

use super::SharedControllerFactory;
use crate::controller::ControllerOptions;
use crate::error::StartError;

/// How long a start waits for caches: controller-runtime's `CacheSyncTimeout`.
const SYNC_TIMEOUT: Duration = Duration::from_secs(120);

/// How long a stop waits for handlers: controller-runtime's `GracefulShutdownTimeout`.
const GRACE_PERIOD: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) sync_timeout: Duration,
    pub(super) grace_period: Duration,
    default: ControllerOptions,
    kinds: BTreeMap<Gvk, ControllerOptions>,
    pub(super) election: Option<Election>,
}

/// What a factory takes part in with other replicas.
#[derive(Debug, Clone)]
pub(super) enum Election {
    /// One replica leads.
    Leader(Arc<Elector>),
    /// Each replica has a share.
    Ring(Arc<RingMember>),
    /// Every start fails with it.
    Invalid(LeaseError),
}

impl Election {
    /// Lets the leadership stand by, before the tasks of a run begin to wait for it.
    pub(super) fn stand_by(&self) {
        match self {
            Self::Leader(elector) => elector.stand_by(),
            Self::Ring(member) => member.stand_by(),
            Self::Invalid(_) => {}
        }
    }
}

impl Options {
    /// Returns what shows whether this process leads; none without an election.
    pub(super) fn leadership(&self) -> Option<Leadership> {
        match &self.election {
            Some(Election::Leader(elector)) => Some(elector.leadership()),
            Some(Election::Ring(member)) => Some(member.leadership()),
            Some(Election::Invalid(_)) | None => None,
        }
    }

    /// Returns what shows which keys this process has; none without a ring.
    pub(super) fn shards(&self) -> Option<Shards> {
        match &self.election {
            Some(Election::Ring(member)) => Some(member.shards()),
            _ => None,
        }
    }

    /// Returns the options of a kind; its workers are its own, not the default.
    pub(super) fn of(&self, gvk: &Gvk) -> ControllerOptions {
        let own = self.kinds.get(gvk).cloned().unwrap_or_default();
        let workers = own.workers;
        let mut options = own.or(&self.default);
        options.workers = workers;
        options.elected(self.leadership(), self.shards())
    }

    /// Returns which content this process caches: all of the kinds that every replica handles, its share of others.
    fn content_of(&self, shards: Shards) -> ContentFilter {
        let default = self.default.is_led_or(true);
        let differs = |options: &ControllerOptions| options.is_led_or(default) != default;
        let other = self.kinds.iter().filter(|(_, options)| differs(options));
        let other: BTreeSet<Gvk> = other.map(|(gvk, _)| gvk.clone()).collect();
        let is_led = move |gvk: &Gvk| default != other.contains(gvk);
        ContentFilter::new(shards.content_changes(), move |gvk, object| {
            !is_led(gvk) || shards.keeps(gvk, object)
        })
    }

    pub(super) fn default_workers(&self) -> Option<usize> {
        self.default.workers
    }

    /// Checks that no kind is given zero workers.
    pub(super) fn check_workers(&self, started_with: Option<usize>) -> Result<(), StartError> {
        if started_with.or(self.default.workers) == Some(0) {
            return Err(StartError::NoWorkers { gvk: None });
        }
        let mut kinds = self.kinds.iter();
        match kinds.find(|(_, options)| options.workers == Some(0)) {
            Some((gvk, _)) => Err(StartError::NoWorkers {
                gvk: Some(gvk.clone()),
            }),
            None => Ok(()),
        }
    }
}

/// Configures a [`SharedControllerFactory`].
#[must_use = "a builder does nothing until it is built"]
pub struct FactoryBuilder {
    /// The client the factory was made with.
    ///
    /// Clients of the factory ask gates before they write; a lease is renewed without asking them.
    client: Client,
    caches: CacheFactoryBuilder,
    options: Options,
}

impl FactoryBuilder {
    pub(super) fn new(client: Client) -> Self {
        Self {
            caches: SharedCacheFactory::builder(client.clone()),
            client,
            options: Options {
                sync_timeout: SYNC_TIMEOUT,
                grace_period: GRACE_PERIOD,
                default: ControllerOptions::default(),
                kinds: BTreeMap::new(),
                election: None,
            },
        }
    }

    /// Sets the options of all kinds, as far as they do not have others of their own.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use lariat_controller::{ControllerOptions, HandlerOptions, SharedControllerFactory, Tracing};
    /// use lariat_core::Gvk;
    ///
    /// # fn example(client: kube::Client) {
    /// let handlers = HandlerOptions::default().timeout(Duration::from_secs(60)).wrap(Tracing);
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

    /// Sets the options of a kind.
    pub fn kind_options(mut self, gvk: impl Into<Gvk>, options: ControllerOptions) -> Self {
        let gvk = gvk.into();
        if let Some(cache) = &options.cache {
            self.caches = self.caches.kind_options(gvk.clone(), cache.clone());
        }
        self.options.kinds.insert(gvk, options);
        self
    }

    /// Sets how long a start waits until all caches are filled (default 2 minutes; zero fails unless
    /// they are filled already).
    pub fn sync_timeout(mut self, timeout: Duration) -> Self {
        self.options.sync_timeout = timeout;
        self
    }

    /// Sets how long a stop lets handlers finish what is due (default 30 seconds; zero drops calls
    /// under way at once; [`Duration::MAX`] waits for ever).
    pub fn grace_period(mut self, grace: Duration) -> Self {
        self.options.grace_period = grace;
        self
    }

    /// Sets what a start does about a kind the API server does not serve (default: it fails at once).
    pub fn missing_kind(self, missing: MissingKind) -> Self {
        self.caches(|caches| caches.missing_kind(missing))
    }

    /// Elects a leader among processes; only the leader has workers.
    ///
    /// By default every process has workers.
    ///
    /// [`start`](SharedControllerFactory::start) fills the caches and the queues, so that a process on standby handles
    /// everything at once when it takes over, and workers begin when this process leads. Kinds that every replica
    /// handles say so by [`needs_leader`](ControllerOptions::needs_leader).
    ///
    /// A process that cannot renew its lease in time drops the calls under way at its renew deadline, before another
    /// can lead, and [`run`](SharedControllerFactory::run) ends with [`RunError::Lost`](crate::RunError::Lost). From
    /// the deadline on, what handlers write through the factory's clients is refused with
    /// [`Fenced`](lariat_lease::Fenced), also in a process that was suspended and goes on. A
    /// [`stop`](SharedControllerFactory::stop) lets handlers finish, then gives the lease up, and another process takes
    /// over at once.
    ///
    /// ```no_run
    /// use lariat_controller::{Lease, SharedControllerFactory};
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
    /// The loss of the lease never ends the process by itself. By default `run` ends with the error, as controller-runtime's
    /// manager does: a program that passes it on ends, is started again by Kubernetes, and stands by. A program that goes
    /// on runs the factory again, which stands by as well; what was left or has changed is handled when it leads again:
    ///
    /// ```no_run
    /// use lariat_controller::{RunError, SharedControllerFactory};
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
    /// For anything else, [start](SharedControllerFactory::start) the factory and wait for
    /// [`lease_lost`](SharedControllerFactory::lease_lost): kinds that need no leader go on until the factory is stopped.
    pub fn leader_election(mut self, lease: Lease) -> Self {
        let elector = Elector::new(self.client.clone(), lease);
        self.options.election = Some(match elector {
            Ok(elector) => Election::Leader(Arc::new(elector)),
            Err(error) => Election::Invalid(error),
        });
        self
    }

    /// Divides the keys among the processes with this name (default: every process has all).
    ///
    /// Each object belongs to one member of the ring, by a hash of its controlling owner's identity or, without one, of its
    /// own ([`ShardKey`](lariat_lease::ShardKey)), so that a reconciler and what its objects control are in one process.
    /// A member handles the keys of its share alone. It caches the metadata of all objects, and the content of those of
    /// its share; content of others is fetched when it is asked for: see [`ContentFilter`]. Objects that no member handles,
    /// those without a controlling owner of kinds without handlers, are cached whole by all. A member that comes or goes
    /// costs one list of each kind.
    ///
    /// A process joins when its caches are filled. The others then stop to dequeue the keys that move, wait for the calls
    /// under way, and pass them on; only then are they handled again, all of them, as after a start. A
    /// [`stop`](SharedControllerFactory::stop) lets handlers finish, then leaves, and the keys move at once; those of a
    /// process that dies move a lease duration later. What holds for [`leader_election`](Self::leader_election) when a lease
    /// is lost holds here as well. Of an election and a ring the one that is set last counts.
    ///
    /// An object belongs to the owner it has in the state that a worker takes. One whose controlling owner changes may be
    /// handled by two members at once, until both have seen the change and have ended what they had begun.
    ///
    /// A key that is enqueued in a process to which it does not belong is not handled there. A deletion that is not yet
    /// handled when its key moves, or happens meanwhile, is not handled: cleanup that has to happen takes a finalizer.
    ///
    /// ```no_run
    /// use lariat_controller::{Lease, Sharding, SharedControllerFactory};
    ///
    /// # fn example(client: kube::Client) {
    /// let factory = SharedControllerFactory::builder(client)
    ///     .sharding(Sharding::new(Lease::new("shop-operator")))
    ///     .build();
    /// # let _ = factory; }
    /// ```
    pub fn sharding(mut self, ring: impl Into<Sharding>) -> Self {
        let member = RingMember::new(self.client.clone(), ring.into());
        self.options.election = Some(match member {
            Ok(member) => Election::Ring(Arc::new(member)),
            Err(error) => Election::Invalid(error),
        });
        self
    }

    /// Records what caches, queues and handlers do, in a file of fixed size (default: nothing is recorded).
    ///
    /// The file says afterwards what the process saw and decided, also if it was killed: `lariat replay FILE` shows it.
    /// Contents of objects, labels, annotations and the texts of errors are not recorded. What a record costs and what is
    /// in the file is said in `docs/flight-recorder.md`.
    ///
    /// ```no_run
    /// use lariat_controller::{FlightRecorder, SharedControllerFactory};
    ///
    /// # fn example(client: kube::Client) {
    /// let factory = SharedControllerFactory::builder(client)
    ///     .flight_recorder(FlightRecorder::file("/var/run/op.flight").bytes(8 << 20))
    ///     .build();
    /// # let _ = factory; }
    /// ```
    pub fn flight_recorder(self, recorder: FlightRecorder) -> Self {
        self.caches(|caches| caches.flight_recorder(recorder))
    }

    /// Configures the caches: how much memory they may hold together, whether they are kept for the next start,
    /// how long a kind nobody uses goes on. For the cache of a kind see [`ControllerOptions::cache`].
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
        let caches = match self.options.shards() {
            Some(shards) => self.caches.content_filter(self.options.content_of(shards)),
            None => self.caches,
        };
        SharedControllerFactory::new(caches, self.options)
    }
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryBuilder")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
