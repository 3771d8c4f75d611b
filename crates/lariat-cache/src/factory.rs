//! The factory of caches: one informer per kind.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use kube::Client;
use lariat_core::{Gvk, ResourceKind};
use parking_lot::Mutex;
use tokio::time;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::client::SharedClientFactory;
use crate::error::{SyncError, Unsynced};
use crate::informer::{Informer, KindStatus, MissingKind, Phase};
use crate::reflector::Source;

/// Gives out one [`Informer`] per kind; a clone is the same factory.
///
/// Nothing is sent before [`start`](Self::start); a kind that is asked for afterwards starts by itself.
/// A factory that was stopped can be started again: caches keep what they had, and catch up.
#[derive(Clone)]
pub struct SharedCacheFactory {
    shared: Arc<Shared>,
}

struct Shared {
    clients: SharedClientFactory,
    missing: MissingKind,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    informers: BTreeMap<Gvk, Arc<Informer>>,
    running: Option<Running>,
}

/// What runs between a start and a stop.
struct Running {
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl SharedCacheFactory {
    /// Makes a factory whose caches read through a client.
    #[must_use]
    pub fn new(client: Client, missing: MissingKind) -> Self {
        Self {
            shared: Arc::new(Shared {
                clients: SharedClientFactory::new(client),
                missing,
                state: Mutex::default(),
            }),
        }
    }

    /// Returns the factory of clients.
    #[must_use]
    pub fn clients(&self) -> &SharedClientFactory {
        &self.shared.clients
    }

    /// Returns the informer of a kind; asking twice returns the same.
    #[must_use]
    pub fn for_kind(&self, gvk: impl Into<Gvk>) -> Arc<Informer> {
        self.informer(gvk.into(), None)
    }

    /// Returns the informer of a kind that is read from a source of the caller's.
    ///
    /// Whoever asks for a kind first decides: if there is an informer already, it is returned.
    #[must_use]
    pub fn for_source(&self, gvk: impl Into<Gvk>, source: Arc<dyn Source>) -> Arc<Informer> {
        self.informer(gvk.into(), Some(source))
    }

    fn informer(&self, gvk: Gvk, source: Option<Arc<dyn Source>>) -> Arc<Informer> {
        let mut state = self.shared.state.lock();
        if let Some(informer) = state.informers.get(&gvk) {
            return Arc::clone(informer);
        }
        let client = self.shared.clients.for_kind(&gvk);
        let informer = Arc::new(Informer::new(client, self.shared.missing, source));
        state.informers.insert(gvk, Arc::clone(&informer));
        if let Some(running) = &state.running {
            running.spawn(&informer);
        }
        informer
    }

    /// Returns the informer of a kind whose resource is known, so that discovery is not needed.
    #[must_use]
    pub fn for_resource_kind(&self, resource: &ResourceKind) -> Arc<Informer> {
        let _ = self.shared.clients.for_resource_kind(resource);
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
        let running = Running {
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        for informer in state.informers.values() {
            running.spawn(informer);
        }
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
            running.stop.cancel();
            running.tasks.close();
            running.tasks.wait().await;
        }
    }

    /// Stops every kind without waiting for its tasks; what is cached can still be read.
    pub fn abort(&self) {
        if let Some(running) = self.shared.state.lock().running.take() {
            running.stop.cancel();
        }
    }

    /// Waits until the caches of all kinds that were asked for are filled.
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
        let informers: Vec<Arc<Informer>> = self.informers();
        let (kinds, after) = match time::timeout(timeout, refused(&informers)).await {
            Ok(missing) => (missing, None),
            Err(_) => (unsynced(&informers), Some(timeout)),
        };
        if kinds.is_empty() {
            return Ok(());
        }
        Err(SyncError { kinds, after })
    }

    /// Returns state and totals of every kind that was asked for, by kind.
    #[must_use]
    pub fn status(&self) -> Vec<KindStatus> {
        self.informers()
            .iter()
            .map(|informer| informer.status())
            .collect()
    }

    fn informers(&self) -> Vec<Arc<Informer>> {
        self.shared
            .state
            .lock()
            .informers
            .values()
            .cloned()
            .collect()
    }
}

impl Running {
    fn spawn(&self, informer: &Arc<Informer>) {
        informer.begin();
        self.tasks
            .spawn(Arc::clone(informer).run(self.stop.clone()));
    }
}

/// Waits until all kinds are filled, or until one is not served: that decides, and the others need not
/// be waited for. Returns the kinds that are not served.
async fn refused(informers: &[Arc<Informer>]) -> Vec<Unsynced> {
    loop {
        let filled = informers.iter().map(|informer| async {
            let filled = informer.synced().await;
            filled.then_some(()).ok_or(())
        });
        if try_join_all(filled).await.is_ok() {
            return Vec::new();
        }
        let mut missing = unsynced(informers);
        missing.retain(|kind| kind.phase == Phase::Missing);
        // None, if the kind came to be served at this very moment.
        if !missing.is_empty() {
            return missing;
        }
    }
}

fn unsynced(informers: &[Arc<Informer>]) -> Vec<Unsynced> {
    let statuses = informers.iter().map(|informer| informer.status());
    statuses
        .filter(|status| status.phase != Phase::Synced)
        .map(|status| Unsynced {
            gvk: status.gvk,
            phase: status.phase,
            last_error: status.last_error,
        })
        .collect()
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(running) = &self.state.lock().running {
            running.stop.cancel();
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
