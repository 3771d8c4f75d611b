//! The options of a factory.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use lariat_core::Gvk;
use lariat_flight::{FlightRecorder, Recorder};
use lariat_seal::Sealing;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::factory::FactoryState;
use super::own_writes::OwnWrites;
use super::{FactoryCore, SharedCacheFactory};
use crate::client::SharedClientFactory;
use crate::content_filter::ContentFilter;
use crate::options::{KindOptions, MissingKind};
use crate::publish::SharedBudget;
use crate::reflector::SharedServer;
use crate::warm::{ClusterUid, WarmStore};

/// How long a kind nobody uses goes on.
const IDLE_GRACE: Duration = Duration::from_secs(60);

/// What was chosen for a factory.
#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) missing: MissingKind,
    pub(super) idle_grace: Duration,
    default: KindOptions,
    kinds: BTreeMap<Gvk, KindOptions>,
    budget: Option<usize>,
    warm: Option<PathBuf>,
    sealing: Option<Sealing>,
    pub(super) filter: Option<ContentFilter>,
    answer_timeout: Option<Duration>,
    flight: Option<FlightRecorder>,
}

impl Options {
    /// Returns the options of a kind.
    pub(super) fn of(&self, gvk: &Gvk) -> KindOptions {
        self.kinds.get(gvk).unwrap_or(&self.default).clone()
    }
}

/// Configures a [`SharedCacheFactory`].
#[must_use = "a builder does nothing until it is built"]
pub struct CacheFactoryBuilder {
    client: Client,
    options: Options,
}

impl CacheFactoryBuilder {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            options: Options {
                missing: MissingKind::default(),
                idle_grace: IDLE_GRACE,
                default: KindOptions::default(),
                kinds: BTreeMap::new(),
                budget: None,
                warm: None,
                sealing: None,
                filter: None,
                answer_timeout: None,
                flight: None,
            },
        }
    }

    /// Sets what happens to a start if a kind is not served (default [`MissingKind::Refuse`]).
    pub fn missing_kind(mut self, missing: MissingKind) -> Self {
        self.options.missing = missing;
        self
    }

    /// Sets the options of all kinds that have none of their own.
    pub fn default_options(mut self, options: KindOptions) -> Self {
        self.options.default = options;
        self
    }

    /// Sets the options of a kind, instead of the default ones.
    pub fn kind_options(mut self, gvk: impl Into<Gvk>, options: KindOptions) -> Self {
        self.options.kinds.insert(gvk.into(), options);
        self
    }

    /// Sets how many bytes all kinds may hold together (default: any number).
    ///
    /// When they hold more, the kind that holds most steps down; see
    /// [`KindOptions::memory_budget`].
    pub fn memory_budget(mut self, bytes: usize) -> Self {
        self.options.budget = Some(bytes);
        self
    }

    /// Sets how long a kind that nobody uses any more goes on (default one minute; zero ends it at once).
    pub fn idle_grace(mut self, grace: Duration) -> Self {
        self.options.idle_grace = grace;
        self
    }

    /// Sets how long a request of the program may take until its answer begins (default 65 seconds; zero waits for
    /// ever); see [`SharedClientFactory::with_answer_timeout`]. How caches are filled has limits of its own.
    pub fn answer_timeout(mut self, timeout: Duration) -> Self {
        self.options.answer_timeout = Some(timeout);
        self
    }

    /// Leaves what is cached in a folder when the factory stops, and goes on from there when it starts
    /// (default: every start lists).
    ///
    /// A kind whose file is of the same cluster and the same options is filled from it, and its watch goes
    /// on from the version of the file; where that has expired, the kind is listed. It counts as filled when
    /// the watch has sent something, or has been open for a second without a failure.
    /// A file that is damaged, or of another cluster,
    /// is not used: the kind is listed, and the log names the file and the reason. Kinds that are restricted to
    /// namespaces, changed by a function, or read with content under a [`content_filter`](Self::content_filter), are always
    /// listed.
    ///
    /// Files hold what the cache does, and only their owner can read them. Secrets are never in them as plain text: they
    /// are kept if [`seal_warm_files`](Self::seal_warm_files) gives a key, and listed at every start without one.
    pub fn warm_restart(mut self, folder: impl Into<PathBuf>) -> Self {
        self.options.warm = Some(folder.into());
        self
    }

    /// Encrypts the files of [`warm_restart`](Self::warm_restart) (default: plain text, and none of Secrets).
    ///
    /// Secrets are sealed whichever kinds are chosen. Each run makes new data keys, and each file has them in an envelope
    /// that the wrapper's key opens. After the wrapping key is rotated, files that were sealed with the old key are used if
    /// the wrapper still has it; the next stop seals with the new one. The wrapper is asked once when the factory starts and
    /// once for each earlier run that left files, for ten seconds at most. If it fails, sealed kinds are listed.
    ///
    /// Files in plain text that a run without a key left are removed when their kind is next used, those of Secrets always. A
    /// file that was replaced by an earlier one of the same kind is not noticed; the kind then goes on from the earlier
    /// version, or is listed if that has expired.
    ///
    /// ```no_run
    /// use lariat_cache::SharedCacheFactory;
    /// use lariat_seal::{LocalKeys, Sealing};
    ///
    /// # fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let key = LocalKeys::from_file("/etc/operator/key")?;
    /// let factory = SharedCacheFactory::builder(client)
    ///     .warm_restart("/var/cache/operator")
    ///     .seal_warm_files(Sealing::of_everything(key))
    ///     .build();
    /// # let _ = factory; Ok(()) }
    /// ```
    pub fn seal_warm_files(mut self, sealing: Sealing) -> Self {
        self.options.sealing = Some(sealing);
        self
    }

    /// Sets of which objects the content is cached (default: of all objects, in kinds whose content is in use).
    ///
    /// See [`ContentFilter`] for what can be read of the others, and for what a change of the filter costs.
    pub fn content_filter(mut self, filter: ContentFilter) -> Self {
        self.options.filter = Some(filter);
        self
    }

    /// Records what caches, queues and handlers do, in a file of fixed size (default: nothing is recorded).
    ///
    /// The file says afterwards what the process saw and decided, also if it was killed: `lariat replay FILE` shows it.
    /// Contents of objects, labels, annotations and the texts of errors are not recorded. The file is opened when the
    /// first records are written; if that fails the log says so, and everything else goes on.
    ///
    /// ```no_run
    /// use lariat_cache::{FlightRecorder, SharedCacheFactory};
    ///
    /// # fn example(client: kube::Client) {
    /// let factory = SharedCacheFactory::builder(client)
    ///     .flight_recorder(FlightRecorder::file("/var/run/op.flight").bytes(8 << 20))
    ///     .build();
    /// # let _ = factory; }
    /// ```
    pub fn flight_recorder(mut self, recorder: FlightRecorder) -> Self {
        self.options.flight = Some(recorder);
        self
    }

    /// Makes the factory. Nothing is sent.
    #[must_use]
    pub fn build(self) -> SharedCacheFactory {
        let cluster = ClusterUid::new(self.client.clone());
        let warm = self.options.warm.as_deref();
        let warm = warm.map(|folder| {
            let sealing = self.options.sealing.clone();
            WarmStore::new(folder, cluster.clone(), sealing)
        });
        let clients = match self.options.answer_timeout {
            Some(timeout) => SharedClientFactory::with_answer_timeout(self.client, timeout),
            None => SharedClientFactory::new(self.client),
        };
        let shared = Arc::new(FactoryCore {
            flight: self.options.flight.clone().map(Recorder::new),
            clients,
            budget: SharedBudget::new(self.options.budget),
            options: self.options,
            warm,
            cluster,
            server: SharedServer::default(),
            idle: Arc::new(Notify::new()),
            state: Mutex::new(FactoryState::default()),
        });
        shared.clients.observe(Arc::new(OwnWrites {
            factory: Arc::downgrade(&shared),
        }));
        SharedCacheFactory { shared }
    }
}

impl fmt::Debug for CacheFactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheFactoryBuilder")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
