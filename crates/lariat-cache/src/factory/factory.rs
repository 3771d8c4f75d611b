//! A factory of caches.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{select_all, try_join_all};
use kube::Client;
use lariat_core::{Gvk, Remembered, ResourceKind};
use lariat_flight::Recorder;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time;

use super::builder::{CacheFactoryBuilder, Options};
use super::running::{Kind, RunningInformers};
use crate::client::SharedClientFactory;
use crate::error::{SyncError, Unsynced};
use crate::informer::{Core, Informer, Surroundings};
use crate::publish::{KindStatus, Phase, SharedBudget};
use crate::reflector::{SharedServer, Source};
use crate::warm::{ClusterUid, WarmStore};

/// Gives out one [`Informer`] per kind; a clone is the same factory.
///
/// Nothing is sent before [`start`](Self::start); a kind that is asked for afterwards starts by itself.
/// A factory that was stopped can be started again: caches keep what they had, and catch up.
///
/// A kind that nobody uses any more, no informer, cache, subscription or stream of changes, goes on for a
/// grace time; then its watch ends and its memory is freed. When the last clone of the factory is dropped, all
/// watches end.
#[derive(Clone)]
pub struct SharedCacheFactory {
    pub(super) shared: Arc<FactoryCore>,
}

pub(crate) struct FactoryCore {
    pub(super) clients: SharedClientFactory,
    pub(super) options: Options,
    pub(super) budget: SharedBudget,
    pub(super) warm: Option<WarmStore>,
    pub(super) cluster: ClusterUid,
    pub(super) server: SharedServer,
    pub(super) flight: Option<Recorder>,
    /// Notified when a kind is not used any more.
    pub(super) idle: Arc<Notify>,
    pub(super) state: Mutex<FactoryState>,
}

#[derive(Default)]
pub(super) struct FactoryState {
    pub(super) kinds: BTreeMap<Gvk, Kind>,
    pub(super) running: Option<RunningInformers>,
}

impl SharedCacheFactory {
    /// Makes a factory with default options, whose caches read through a client.
    ///
    /// A client of kube's own making tries a refused request again for minutes without a word, and has a
    /// connection for every watch; [`connect`](crate::connect) and [`from_config`](crate::from_config) make
    /// better ones.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self::builder(client).build()
    }

    /// Begins to configure a factory whose caches read through a client.
    pub fn builder(client: Client) -> CacheFactoryBuilder {
        CacheFactoryBuilder::new(client)
    }

    /// Returns the factory of clients. The caches show at once what is written through them.
    #[must_use]
    pub fn clients(&self) -> &SharedClientFactory {
        &self.shared.clients
    }

    /// Returns whether caches are [kept](CacheFactoryBuilder::warm_restart) between two runs, for which the API server
    /// is asked for the namespace `kube-system`: its uid says which cluster it is.
    #[must_use]
    pub fn restarts_warm(&self) -> bool {
        self.shared.warm.is_some()
    }

    /// Returns the informer of a kind; asking twice returns the same.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, if the factory runs and the kind is new.
    #[must_use]
    pub fn for_kind(&self, gvk: impl Into<Gvk>) -> Informer {
        self.informer(gvk.into(), None)
    }

    /// Returns the informer of a kind that is read from a source of the caller's.
    ///
    /// Whoever asks for a kind first decides: if there is an informer already, it is returned.
    ///
    /// # Panics
    ///
    /// As [`for_kind`](Self::for_kind).
    #[must_use]
    pub fn for_source(&self, gvk: impl Into<Gvk>, source: Arc<dyn Source>) -> Informer {
        self.informer(gvk.into(), Some(source))
    }

    /// Returns the informer of a kind that somebody asked for before, as an [optional](Informer::optional) use;
    /// `None` if nobody did, or if it has ended since because nobody used it.
    #[must_use]
    pub fn existing(&self, gvk: &Gvk) -> Option<Informer> {
        let state = self.shared.state.lock();
        let kind = state.kinds.get(gvk)?;
        Some(Informer::optional_of(Arc::clone(&kind.core)))
    }

    fn informer(&self, gvk: Gvk, source: Option<Arc<dyn Source>>) -> Informer {
        let shared = &self.shared;
        let mut state = shared.state.lock();
        if let Some(kind) = state.kinds.get(&gvk) {
            return Informer::new(Arc::clone(&kind.core));
        }
        let surroundings = Surroundings {
            missing: shared.options.missing,
            budget: shared.budget.clone(),
            warm: shared.warm.clone(),
            cluster: shared.cluster.clone(),
            filter: shared.options.filter.clone(),
            server: shared.server.clone(),
            flight: shared.flight.clone(),
            idle: Arc::clone(&shared.idle),
        };
        let client = shared.clients.for_kind(&gvk);
        let options = shared.options.of(&gvk);
        let core = Arc::new(Core::new(client, source, options, surroundings));
        let informer = Informer::new(Arc::clone(&core));
        let mut kind = Kind::new(core);
        if let Some(running) = &state.running {
            running.spawn(&mut kind);
        }
        state.kinds.insert(gvk, kind);
        informer
    }

    /// Returns the informer of a kind whose resource is known, so that discovery is not needed.
    ///
    /// # Panics
    ///
    /// As [`for_kind`](Self::for_kind).
    #[must_use]
    pub fn for_resource_kind(&self, resource: &ResourceKind) -> Informer {
        // Held until the informer has it.
        let _told = self.shared.clients.for_resource_kind(resource);
        self.for_kind(resource.gvk())
    }

    /// Starts every kind that was asked for; does nothing if the factory runs already.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn start(&self) {
        let mut state = self.shared.state.lock();
        if state.running.is_some() {
            return;
        }
        let running = RunningInformers::new();
        if let Some(flight) = self.flight() {
            running.spawn_recorder(flight);
        }
        for kind in state.kinds.values_mut() {
            running.spawn(kind);
        }
        running.watch_use(&self.shared);
        state.running = Some(running);
    }

    /// Stops every kind and waits for its tasks; what is cached can still be read.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the stop back; only the wait is lost.
    pub async fn stop(&self) {
        let running = self.shared.state.lock().running.take();
        if let Some(running) = running {
            running.stop().await;
        }
        // What was recorded after the recorder's task had ended.
        self.flush_flight().await;
    }

    /// Returns the [flight recorder](CacheFactoryBuilder::flight_recorder), if there is one.
    #[must_use]
    pub fn flight(&self) -> Option<&Recorder> {
        self.shared.flight.as_ref()
    }

    /// Writes what the flight recorder has not written yet; does nothing without one.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the write goes on.
    pub async fn flush_flight(&self) {
        if let Some(flight) = self.flight() {
            flight.flush().await;
        }
    }

    /// Stops every kind without waiting for its tasks; what is cached can still be read.
    pub fn abort(&self) {
        if let Some(running) = self.shared.state.lock().running.take() {
            running.abort();
        }
    }

    /// Waits until the caches of all kinds that are in use are filled, but for
    /// [optional](Informer::optional) uses.
    ///
    /// # Errors
    ///
    /// A kind that is not served fails this at once, and is named; so does the end of `timeout`, and
    /// then all kinds that are not filled are named, with their state and what went wrong last.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn wait_for_sync(&self, timeout: Duration) -> Result<(), SyncError> {
        let mut cores = self.cores();
        cores.retain(|core| core.usage().is_required());
        let (kinds, after) = tokio::select! {
            biased;
            missing = refused(&cores) => (missing, None),
            limit = too_late(&cores, timeout) => (unsynced(&cores), Some(limit)),
        };
        if kinds.is_empty() {
            return Ok(());
        }
        Err(SyncError { kinds, after })
    }

    /// Returns state and totals of every kind that is in use, by kind.
    #[must_use]
    pub fn status(&self) -> Vec<KindStatus> {
        self.cores().iter().map(|core| core.status()).collect()
    }

    /// Returns how much is remembered beyond the objects, by structure and kind, with the bound of each: for checks, and
    /// for gauges of programs that run for long. Locks are held for moments, and the cost does not grow with the number of
    /// objects.
    ///
    /// | `what` | keyed by | bound |
    /// |---|---|---|
    /// | `cached objects` | object key | objects of the kind (the table for reads by key beside the tree for lists) |
    /// | `own writes` | object key, and uid for deletions | 1,024, or twice the writes of the last minute and of the time since a list in progress began |
    /// | `collections` | namespace | selected namespaces, or one |
    /// | `label indexes` | label | 8 |
    /// | `indexed objects` | object, in each index of a label or function | objects of the kind, times indexes |
    /// | `client handles` | kind and identity | handles somebody has |
    /// | `clients` | identity | 257 |
    /// | `discovered groups` | group and version | 64, or twice those that are served or were asked for within a second |
    /// | `budgeted kinds` | kind | kinds in use |
    ///
    /// All of a kind go with the kind, [a grace time](crate::CacheFactoryBuilder::idle_grace) after its last use. Not
    /// listed, because to count them would take as long as there are objects, are the index of owners (objects times
    /// their owners) and links to decoded values (types that were read of an object; those nobody has any more are
    /// cleared away with the object, and within 64 further decodes as a rule). A stream of
    /// [`Changes`](crate::Changes) says itself how much is [unread](crate::Changes::unread): at most a change of each
    /// object its reader has seen and of each there is.
    #[must_use]
    pub fn remembered(&self) -> Vec<Remembered> {
        let cores = self.cores();
        let mut all = Vec::with_capacity(5 * cores.len() + 4);
        for core in &cores {
            all.extend(core.store().remembered().map(|each| each.of(core.gvk())));
        }
        all.extend(self.shared.clients.remembered());
        // Kinds end at any time, so those that are counted are asked for before those there are.
        let budgeted = self.shared.budget.kinds();
        all.push(Remembered::new(
            "budgeted kinds",
            budgeted,
            self.cores().len(),
        ));
        all
    }

    fn cores(&self) -> Vec<Arc<Core>> {
        let state = self.shared.state.lock();
        state
            .kinds
            .values()
            .map(|kind| Arc::clone(&kind.core))
            .collect()
    }
}

/// Waits until all kinds are filled, or until one is not served: that decides, and the others need not
/// be waited for. Returns the kinds that are not served.
async fn refused(cores: &[Arc<Core>]) -> Vec<Unsynced> {
    loop {
        let filled = cores.iter().map(|core| async {
            let filled = core.synced().await;
            filled.then_some(()).ok_or(())
        });
        if try_join_all(filled).await.is_ok() {
            return Vec::new();
        }
        let mut missing = unsynced(cores);
        missing.retain(|kind| kind.phase == Phase::Missing);
        // None, if the kind came to be served at this very moment.
        if !missing.is_empty() {
            return missing;
        }
    }
}

/// Waits until some kind has taken longer than a start waits for it; returns how long that was.
async fn too_late(cores: &[Arc<Core>], usual: Duration) -> Duration {
    let late = cores.iter().map(|core| {
        Box::pin(async {
            let limit = core.sync_timeout().unwrap_or(usual);
            if time::timeout(limit, core.synced()).await.is_ok() {
                std::future::pending::<()>().await;
            }
            limit
        })
    });
    if cores.is_empty() {
        std::future::pending().await
    } else {
        select_all(late).await.0
    }
}

fn unsynced(cores: &[Arc<Core>]) -> Vec<Unsynced> {
    let statuses = cores.iter().map(|core| core.status());
    statuses
        .filter(|status| status.phase != Phase::Synced)
        .map(|status| Unsynced {
            gvk: status.gvk,
            phase: status.phase,
            last_error: status.last_error,
        })
        .collect()
}

impl Drop for FactoryCore {
    fn drop(&mut self) {
        if let Some(running) = self.state.get_mut().running.take() {
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
