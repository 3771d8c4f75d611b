//! The factory of caches: informers by kind, starts and stops.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dashmap::{DashMap, Entry};
use kube::Client;
use lariat_core::{Gvk, ObjectKey, ResourceKind, ResourceVersion, TableSize};
use parking_lot::Mutex;

use super::builder::{CacheFactoryBuilder, Options};
use super::running::{Kind, RunningInformers};
use super::waits::{log_waits, refused, too_late, unsynced};
use crate::client::SharedClientFactory;
use crate::error::{SyncError, Unsynced};
use crate::informer::{Core, Informer, Shared};
use crate::publish::KindStatus;
use crate::reflector::Source;

/// A factory of caches: one [`Informer`] per kind.
///
/// A clone is the same factory. Nothing is sent before [`start`](Self::start); kinds that are requested later start
/// immediately. A stopped factory can be started again: caches keep their objects, and catch up.
///
/// A kind without any informer, cache, subscription or stream of changes is unused. It is kept for a [grace
/// period](CacheFactoryBuilder::idle_grace); then its watch ends and its memory is freed. When the last clone of the
/// factory is dropped, all watches end.
///
/// ```no_run
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat::cache::SharedCacheFactory;
/// use lariat::Gvk;
///
/// # async fn example(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
/// let factory = SharedCacheFactory::new(client);
/// let pods = factory.for_kind(Gvk::new("", "v1", "Pod")).cache::<Pod>();
/// factory.start();
/// factory.wait_for_sync(Duration::from_secs(30)).await?;
/// println!("{} pods", pods.len());
/// factory.stop().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct SharedCacheFactory {
    pub(super) shared: Arc<FactoryCore>,
}

pub(crate) struct FactoryCore {
    pub(super) clients: SharedClientFactory,
    pub(super) options: Options,
    pub(super) common: Shared,
    /// The requested kinds.
    ///
    /// A kind is inserted under the lock of `running`, so that a start misses none. `running` is locked first.
    pub(super) kinds: DashMap<Gvk, Kind>,
    pub(super) running: Mutex<Option<RunningInformers>>,
}

/// The number of shards of the kinds; an iteration locks each of them.
pub(super) const SHARDS: usize = 8;

impl SharedCacheFactory {
    /// Creates a factory with default options, over a client.
    ///
    /// Use a client that [`connect`](lariat_client::connect) or [`from_config`](lariat_client::from_config) creates:
    /// one that kube creates silently retries refused requests for minutes, and opens a connection for each watch.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self::builder(client).build()
    }

    /// Returns a builder of a factory over a client.
    pub fn builder(client: Client) -> CacheFactoryBuilder {
        CacheFactoryBuilder::new(client)
    }

    /// Returns the factory of clients, whose writes caches show immediately.
    #[must_use]
    pub fn clients(&self) -> &SharedClientFactory {
        &self.shared.clients
    }

    /// Returns whether [warm restarts](CacheFactoryBuilder::warm_restart) are enabled.
    ///
    /// If so, the program reads the namespace `kube-system`, whose uid identifies the cluster.
    #[must_use]
    pub fn restarts_warm(&self) -> bool {
        self.shared.common.warm.is_some()
    }

    /// Returns the informer of a kind; all calls for a kind return the same one.
    #[must_use]
    pub fn for_kind(&self, gvk: impl Into<Gvk>) -> Informer {
        self.informer(gvk.into(), None)
    }

    /// Returns the informer of a kind that is read from a [`Source`] of the caller.
    ///
    /// If the kind already has an informer, that one is returned, with the source that it has.
    #[must_use]
    pub fn for_source(&self, gvk: impl Into<Gvk>, source: Arc<dyn Source>) -> Informer {
        self.informer(gvk.into(), Some(source))
    }

    /// Returns the informer of a kind in use, as an [optional](Informer::optional) use.
    ///
    /// Returns `None` if the kind was never requested, or has ended because it was unused.
    ///
    /// ```no_run
    /// use lariat::cache::SharedCacheFactory;
    /// use lariat::Gvk;
    ///
    /// # fn example(factory: SharedCacheFactory) {
    /// if let Some(pods) = factory.existing(&Gvk::new("", "v1", "Pod")) {
    ///     println!("{}", pods.status().objects);
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn existing(&self, gvk: &Gvk) -> Option<Informer> {
        let kind = self.shared.kinds.get(gvk)?;
        Some(Informer::optional_of(Arc::clone(&kind.core)))
    }

    fn informer(&self, gvk: Gvk, source: Option<Arc<dyn Source>>) -> Informer {
        let shared = &self.shared;
        if let Some(kind) = shared.kinds.get(&gvk) {
            return Informer::new(Arc::clone(&kind.core));
        }
        // Locked before the entry of the kind, in the same order as in `start`.
        let running = shared.running.lock();
        let entry = match shared.kinds.entry(gvk) {
            Entry::Occupied(entry) => return Informer::new(Arc::clone(&entry.get().core)),
            Entry::Vacant(entry) => entry,
        };
        let client = shared.clients.for_kind(entry.key());
        let options = shared.options.of(entry.key());
        let core = Arc::new(Core::new(client, source, options, shared.common.clone()));
        let informer = Informer::new(Arc::clone(&core));
        let mut kind = Kind::new(core);
        if let Some(running) = &*running {
            running.spawn(&mut kind);
        }
        entry.insert(kind);
        informer
    }

    /// Returns the informer of a kind whose resource is known, without discovery.
    #[must_use]
    pub fn for_resource_kind(&self, resource: &ResourceKind) -> Informer {
        // Kept until the informer refers to it.
        let _handle = self.shared.clients.for_resource_kind(resource);
        self.for_kind(resource.gvk())
    }

    /// Starts every requested kind; does nothing if the factory is running.
    ///
    /// Returns immediately; [`wait_for_sync`](Self::wait_for_sync) waits for the caches.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime.
    pub fn start(&self) {
        let shared = &self.shared;
        let mut started = shared.running.lock();
        if started.is_some() {
            return;
        }
        let running = RunningInformers::new();
        for gvk in shared.gvks() {
            if let Some(mut kind) = shared.kinds.get_mut(&gvk) {
                running.spawn(&mut kind);
            }
        }
        running.watch_use(shared);
        *started = Some(running);
    }

    /// Stops every kind and waits for its tasks; the caches remain readable.
    ///
    /// ```no_run
    /// use lariat::cache::SharedCacheFactory;
    /// use lariat::Gvk;
    ///
    /// # async fn example(client: kube::Client) {
    /// let factory = SharedCacheFactory::new(client);
    /// let pods = factory.for_kind(Gvk::new("", "v1", "Pod"));
    /// factory.start();
    /// pods.synced().await;
    /// factory.stop().await;
    /// println!("{} pods at the stop", pods.store().len());
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait only; the factory still stops.
    pub async fn stop(&self) {
        let running = self.shared.running.lock().take();
        if let Some(running) = running {
            running.stop().await;
        }
    }

    /// Stops every kind without waiting for its tasks; the caches remain readable.
    pub fn abort(&self) {
        if let Some(running) = self.shared.running.lock().take() {
            running.abort();
        }
    }

    /// Waits until the caches of all kinds in use have synced.
    ///
    /// [Optional](Informer::optional) uses do not count, nor kinds whose last use ends meanwhile. A wait of more than
    /// three seconds is logged with the kinds that have not synced, and again at growing intervals.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use lariat::cache::SharedCacheFactory;
    ///
    /// # async fn example(factory: SharedCacheFactory) {
    /// if let Err(error) = factory.wait_for_sync(Duration::from_secs(30)).await {
    ///     for kind in &error.kinds {
    ///         println!("{}: {}, {:?}", kind.gvk, kind.phase, kind.last_error);
    ///     }
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails at once if a kind is not served, or is served without `list` and `watch`; the error contains this kind.
    /// Fails if `timeout` has passed; the error
    /// contains all kinds that have not synced, with their phase and last error. The factory continues to run in both
    /// cases, so the caller may wait again.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing.
    pub async fn wait_for_sync(&self, timeout: Duration) -> Result<(), SyncError> {
        let mut cores = self.cores();
        cores.retain(|core| core.usage().is_required());
        let (kinds, after) = tokio::select! {
            biased;
            missing = refused(&cores) => (missing, None),
            limit = too_late(&cores, timeout) => (unsynced(&cores), Some(limit)),
            never = log_waits(&cores) => match never {},
        };
        if kinds.is_empty() {
            return Ok(());
        }
        Err(SyncError { kinds, after })
    }

    /// Returns the kinds in use that cannot be read, because they have never synced.
    ///
    /// They are sorted by kind; optional uses do not count, as in [`wait_for_sync`](Self::wait_for_sync). Unlike there,
    /// a cache that has synced once is not among them, whatever has happened since: it can be read, and is as old as
    /// the end of its watch. [`KindStatus::blind`] and [`KindStatus::is_stale`] report that.
    #[must_use]
    pub fn unreadable(&self) -> Vec<Unsynced> {
        let mut cores = self.cores();
        cores.retain(|core| !core.was_filled());
        unsynced(&cores)
    }

    /// Returns the status and totals of every kind in use, sorted by kind.
    ///
    /// ```no_run
    /// # fn example(factory: lariat::cache::SharedCacheFactory) {
    /// for kind in factory.status() {
    ///     println!("{}: {}, {} objects, {} bytes", kind.gvk, kind.phase, kind.objects, kind.bytes);
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn status(&self) -> Vec<KindStatus> {
        self.cores().iter().map(|core| core.status()).collect()
    }

    /// Keeps the last updates of objects, up to a number of bytes over all kinds.
    ///
    /// Zero is the default and keeps none; a smaller number than before drops the oldest. With these updates,
    /// [`changed_fields`](Self::changed_fields) can return what an update changed. An update counts with the
    /// [`bytes`](crate::CachedObject::bytes) of the states before and after it.
    ///
    /// In ten seconds about as many bytes are added as are kept. Updates that come faster are remembered in part, so
    /// that the remembered ones can still be read some seconds later.
    ///
    /// ```no_run
    /// # fn example(factory: lariat::cache::SharedCacheFactory) {
    /// factory.remember_changes(4 * 1024 * 1024);
    /// # }
    /// ```
    pub fn remember_changes(&self, bytes: usize) {
        self.shared.common.updates.set_limit(bytes);
    }

    /// Returns the paths of the fields that differ between two versions of an object.
    ///
    /// At most twenty paths are returned; see [`lariat_core::changed_fields`] for their form. No path contains a value.
    /// Returns `None` unless an update from the one version and an update to the other are
    /// [remembered](Self::remember_changes). If only metadata is cached, only metadata is compared. Both states are
    /// decoded by this call, and its cost grows with the number of remembered updates.
    #[must_use]
    pub fn changed_fields(
        &self,
        gvk: &Gvk,
        key: &ObjectKey,
        from: &ResourceVersion,
        to: &ResourceVersion,
    ) -> Option<Vec<String>> {
        self.shared.common.updates.changed(gvk, key, from, to)
    }

    /// Returns the sizes and bounds of long-lived structures other than the objects.
    ///
    /// The sizes are for checks, and for gauges of long-running programs. Locks are held briefly, and the cost does not
    /// grow with the number of objects.
    ///
    /// | `name` | keyed by | bound |
    /// |---|---|---|
    /// | `cached objects` | object key | objects of the kind (the table for reads by key beside the tree for lists) |
    /// | `own writes` | object key, and uid for deletions | 1,024, or twice the writes of the last minute (deletions: up to eleven, while watches are reopened) and of the time since a list in progress began |
    /// | `collections` | namespace | selected namespaces, or one |
    /// | `label indexes` | label | 8 |
    /// | `indexed objects` | object, in each index of a label or function | objects of the kind, times indexes |
    /// | `client handles` | kind and identity | handles in use |
    /// | `budgeted kinds` | kind | kinds in use |
    /// | `updates` | object key and version | the bytes of [`remember_changes`](Self::remember_changes) |
    ///
    /// A kind's structures are freed with the kind, [a grace period](crate::CacheFactoryBuilder::idle_grace) after its
    /// last use. Two structures are not listed, because counting them would take as long as there are objects: the
    /// index of owners (objects times their owners), and links to decoded values (types that were read of an object;
    /// unused links are removed with the object, and within 64 further decodes as a rule). A stream of
    /// [`Changes`](crate::Changes) reports how much is [unread](crate::Changes::unread): at most one change for each
    /// object that its reader has seen and for each that exists.
    #[must_use]
    pub fn table_sizes(&self) -> Vec<TableSize> {
        let cores = self.cores();
        let mut all = Vec::with_capacity(5 * cores.len() + 4);
        for core in &cores {
            all.extend(core.store().table_sizes().map(|each| each.of(core.gvk())));
        }
        all.push(self.shared.clients.table_size());
        // Kinds may end at any time, so the counted kinds are read before the existing ones.
        let budgeted = self.shared.common.budget.kinds();
        all.push(TableSize::new(
            "budgeted kinds",
            budgeted,
            self.cores().len(),
        ));
        let (updates, most) = self.shared.common.updates.table_sizes();
        all.push(TableSize::new("updates", updates, most));
        all
    }

    /// Returns the kinds in order.
    fn cores(&self) -> Vec<Arc<Core>> {
        let kinds = self.shared.kinds.iter();
        let mut cores: Vec<Arc<Core>> = kinds.map(|kind| Arc::clone(&kind.core)).collect();
        cores.sort_by(|a, b| a.gvk().cmp(b.gvk()));
        cores
    }
}

impl FactoryCore {
    /// Returns the kinds in order, which is the same in each run.
    pub(super) fn gvks(&self) -> Vec<Gvk> {
        let mut gvks: Vec<Gvk> = self.kinds.iter().map(|kind| kind.key().clone()).collect();
        gvks.sort();
        gvks
    }
}

impl Drop for FactoryCore {
    fn drop(&mut self) {
        if let Some(running) = self.running.get_mut().take() {
            running.abort();
        }
    }
}

impl fmt::Debug for SharedCacheFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedCacheFactory")
            .field("kinds", &self.status())
            .finish()
    }
}
