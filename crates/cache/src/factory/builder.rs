//! The options of a factory and its builder.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use kube::Client;
use lariat_client::CountedClient;
use lariat_core::Gvk;
use lariat_seal::Sealing;
use parking_lot::Mutex;

use super::factory::{FactoryCore, SHARDS, SharedCacheFactory};
use super::own_writes::OwnWrites;
use crate::client::SharedClientFactory;
use crate::content_filter::ContentFilter;
use crate::informer::Shared;
use crate::options::{KindOptions, MissingKind};
use crate::publish::SharedBudget;
use crate::reflector::{SharedServer, Starts};
use crate::warm::{ClusterUid, WarmStore};

/// How long an unused kind is kept.
const IDLE_GRACE: Duration = Duration::from_secs(60);

/// The options of a factory.
#[derive(Debug, Clone)]
pub(super) struct Options {
    missing: MissingKind,
    pub(super) idle_grace: Duration,
    default: KindOptions,
    kinds: BTreeMap<Gvk, KindOptions>,
    budget: Option<usize>,
    warm: Option<PathBuf>,
    sealing: Option<Sealing>,
    filter: Option<ContentFilter>,
    answer_timeout: Option<Duration>,
    starts: Starts,
}

impl Options {
    /// Returns the options of a kind.
    pub(super) fn of(&self, gvk: &Gvk) -> KindOptions {
        self.kinds.get(gvk).unwrap_or(&self.default).clone()
    }
}

/// Configures a [`SharedCacheFactory`].
///
/// ```no_run
/// use std::time::Duration;
/// use lariat::cache::{MissingKind, SharedCacheFactory};
/// use lariat::{Gvk, KindOptions, Storage};
///
/// # fn example(client: kube::Client) {
/// let factory = SharedCacheFactory::builder(client)
///     .missing_kind(MissingKind::Wait)
///     .kind_options(
///         Gvk::new("", "v1", "Secret"),
///         KindOptions::default().storage(Storage::OnDemand),
///     )
///     .idle_grace(Duration::from_secs(300))
///     .build();
/// # let _ = factory; }
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct CacheFactoryBuilder {
    client: CountedClient,
    options: Options,
}

impl CacheFactoryBuilder {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client: CountedClient::new(client),
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
                starts: Starts::default(),
            },
        }
    }

    /// Returns a client whose requests are counted with those of the factory.
    ///
    /// See [`SharedClientFactory::requests`]. The client sends requests as the one does that the builder was created
    /// with: no gate is called, and its writes are not applied to caches. Outside a tokio runtime it does not count.
    #[must_use]
    pub fn counting_client(&self) -> Client {
        self.client.to_kube()
    }

    /// Sets what happens at a start if a kind is not served.
    ///
    /// The default is [`MissingKind::Refuse`].
    pub fn missing_kind(mut self, missing: MissingKind) -> Self {
        self.options.missing = missing;
        self
    }

    /// Sets the options of all kinds that have no options of their own.
    pub fn default_options(mut self, options: KindOptions) -> Self {
        self.options.default = options;
        self
    }

    /// Sets the options of a kind, which replace the default options as a whole.
    ///
    /// ```no_run
    /// use lariat::cache::{SharedCacheFactory, Transform};
    /// use lariat::{Gvk, KindOptions};
    ///
    /// # fn example(client: kube::Client) {
    /// // The other kinds keep the default options.
    /// let factory = SharedCacheFactory::builder(client)
    ///     .kind_options(Gvk::new("", "v1", "Pod"), KindOptions::default().transform(Transform::drop(["/status"])))
    ///     .build();
    /// # let _ = factory; }
    /// ```
    pub fn kind_options(mut self, gvk: impl Into<Gvk>, options: KindOptions) -> Self {
        self.options.kinds.insert(gvk.into(), options);
        self
    }

    /// Sets a memory budget in bytes for all kinds together (default: no limit).
    ///
    /// If they exceed it, the largest kind that has a smaller form is stored in it; see [`KindOptions::memory_budget`].
    ///
    /// ```no_run
    /// use lariat::cache::SharedCacheFactory;
    ///
    /// # fn example(client: kube::Client) {
    /// let factory = SharedCacheFactory::builder(client).memory_budget(256 << 20).build();
    /// # let _ = factory; }
    /// ```
    pub fn memory_budget(mut self, bytes: usize) -> Self {
        self.options.budget = Some(bytes);
        self
    }

    /// Sets how long an unused kind is kept (default one minute).
    ///
    /// Zero ends its watch and frees its memory immediately.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use lariat::cache::SharedCacheFactory;
    ///
    /// # fn example(client: kube::Client) {
    /// let factory = SharedCacheFactory::builder(client)
    ///     .idle_grace(Duration::from_secs(300))
    ///     .build();
    /// # let _ = factory; }
    /// ```
    pub fn idle_grace(mut self, grace: Duration) -> Self {
        self.options.idle_grace = grace;
        self
    }

    /// Sets the timeout for answers to the program's requests (default 65 seconds).
    ///
    /// Zero means no limit. See [`SharedClientFactory::with_answer_timeout`]. Reflectors have their own timeouts.
    pub fn answer_timeout(mut self, timeout: Duration) -> Self {
        self.options.answer_timeout = Some(timeout);
        self
    }

    /// Sets how many loads and new watches run at once (default 20).
    ///
    /// Zero counts as one. One kind takes at most half of them. A request counts until it is answered, a load until all
    /// objects are read, but none for more than ten seconds, so that a kind which is large or is not answered does not
    /// delay the others for longer. Watches count while they are being opened.
    ///
    /// ```no_run
    /// use lariat::cache::SharedCacheFactory;
    ///
    /// # fn example(client: kube::Client) {
    /// let factory = SharedCacheFactory::builder(client).concurrent_starts(50).build();
    /// # let _ = factory; }
    /// ```
    pub fn concurrent_starts(mut self, most: usize) -> Self {
        self.options.starts = Starts::new(most);
        self
    }

    /// Saves caches in a folder on stop and loads them on start (default: off).
    ///
    /// A kind whose file is of the same cluster and the same options is loaded from the file, and its watch continues
    /// from the version of the file. If that version has expired, the kind is listed. The kind counts as synced once
    /// the watch has sent something, or has been open for a second without a failure.
    ///
    /// A file that is damaged, or of another cluster, is not used: the kind is listed, and the log names the file and
    /// the reason. Kinds that are restricted to namespaces, transformed by a function, or read with content under a
    /// [`content_filter`](Self::content_filter), are always listed.
    ///
    /// Files contain what the cache contains, and only their owner can read them. Secrets are never saved as plain
    /// text: they are saved if [`seal_warm_files`](Self::seal_warm_files) provides a key, and listed at every start
    /// otherwise.
    ///
    /// ```no_run
    /// use lariat::cache::SharedCacheFactory;
    ///
    /// # fn example(client: kube::Client) {
    /// let factory = SharedCacheFactory::builder(client).warm_restart("/var/cache/operator").build();
    /// # let _ = factory; }
    /// ```
    pub fn warm_restart(mut self, folder: impl Into<PathBuf>) -> Self {
        self.options.warm = Some(folder.into());
        self
    }

    /// Encrypts the files of [`warm_restart`](Self::warm_restart) (default: plain text).
    ///
    /// Without encryption, Secrets are not saved. With it, they are always encrypted, whichever kinds are selected.
    /// Each run generates new data keys, and each file contains them in an envelope that the wrapping key opens. After
    /// a rotation of the wrapping key, files that were sealed with the old key are used as long as the wrapper has it;
    /// the next stop seals with the new one.
    ///
    /// The wrapper is called once when the factory starts and once for each earlier run that left files, for at most
    /// ten seconds. If it fails, sealed kinds are listed.
    ///
    /// Plain files of a run without a key are removed when their kind is next used, those of Secrets always. The
    /// replacement of a file by an earlier one of the same kind is not detected; the kind then continues from the
    /// earlier version, or is listed if that version has expired.
    ///
    /// ```no_run
    /// use lariat::cache::SharedCacheFactory;
    /// use lariat::seal::{LocalKeys, Sealing};
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

    /// Sets which objects are cached with their content (default: all).
    ///
    /// The filter applies to kinds whose content is in use. See [`ContentFilter`] for reads of other objects, and for
    /// the cost of a change of the filter.
    pub fn content_filter(mut self, filter: ContentFilter) -> Self {
        self.options.filter = Some(filter);
        self
    }

    /// Creates the factory, without sending anything.
    #[must_use]
    pub fn build(self) -> SharedCacheFactory {
        let Self { client, options } = self;
        let cluster = ClusterUid::new(client.clone());
        let warm = options.warm.as_deref();
        let warm_store = |folder| WarmStore::new(folder, cluster.clone(), options.sealing.clone());
        let common = Shared {
            missing: options.missing,
            budget: SharedBudget::new(options.budget),
            warm: warm.map(warm_store),
            filter: options.filter.clone(),
            server: SharedServer::new(options.starts.clone()),
            updates: Arc::default(),
            idle: Arc::default(),
            missed: Arc::default(),
            cluster,
        };
        let shared = Arc::new(FactoryCore {
            clients: SharedClientFactory::counting(client, options.answer_timeout),
            options,
            common,
            kinds: DashMap::with_shard_amount(SHARDS),
            running: Mutex::default(),
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
