//! The informer of a kind: its reflector, its store and its subscribers.

mod progress;
mod publisher;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Gvk, ResourceKind, describe};
use tokio::sync::Mutex;
use tokio::time;
use tokio_util::sync::CancellationToken;

use crate::client::KindClient;
use crate::reflector::{Endpoint, Reflector, Source};
use crate::store::Store;
use crate::view::{Cache, View};

pub(crate) use progress::Progress;
pub use progress::{KindStatus, Phase};
pub(crate) use publisher::Publisher;
pub use publisher::{Subscriber, Subscription};

/// What a start does about a kind the API server does not serve.
///
/// Either way the kind is asked for every few seconds, and its cache fills once it is served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MissingKind {
    /// Let the start fail at once, with an error that names the kind.
    #[default]
    Refuse,
    /// Let the start wait for it, as when its CustomResourceDefinition is being installed.
    Wait,
}

/// How often a kind that is not served is asked for.
pub(crate) const MISSING_KIND_PERIOD: Duration = Duration::from_secs(2);

/// How often discovery is asked again that did not answer, doubling up to ten times as long.
const DISCOVERY_PERIOD: Duration = Duration::from_secs(1);

/// One kind: one watch and one store, whoever and however many use it.
pub struct Informer {
    client: Arc<KindClient>,
    store: Arc<Store>,
    publisher: Arc<Publisher>,
    progress: Arc<Progress>,
    missing: MissingKind,
    source: Option<Arc<dyn Source>>,
    /// Held while the informer runs, so that a run that was told to stop ends before the next begins.
    run: Mutex<()>,
}

impl Informer {
    pub(crate) fn new(
        client: Arc<KindClient>,
        missing: MissingKind,
        source: Option<Arc<dyn Source>>,
    ) -> Self {
        let store = Arc::new(Store::default());
        Self {
            progress: Arc::new(Progress::new(client.gvk().clone())),
            publisher: Arc::new(Publisher::new(client.gvk().clone(), Arc::clone(&store))),
            store,
            client,
            missing,
            source,
            run: Mutex::default(),
        }
    }

    /// Returns the kind.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        self.client.gvk()
    }

    /// Returns the client of the kind.
    #[must_use]
    pub fn client(&self) -> &Arc<KindClient> {
        &self.client
    }

    /// Returns the raw objects.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns the cache, read as `K`.
    #[must_use]
    pub fn cache<K: View>(&self) -> Cache<K> {
        Cache::new(Arc::clone(&self.store), self.gvk().clone())
    }

    /// Subscribes to changes; what exists now is told first, before this returns.
    pub fn subscribe(&self, subscriber: Arc<dyn Subscriber>) -> Subscription {
        self.publisher.subscribe(subscriber)
    }

    /// Returns state and totals.
    #[must_use]
    pub fn status(&self) -> KindStatus {
        self.progress.status(self.store.len(), self.store.bytes())
    }

    /// Waits until the cache has been filled; `false` if the kind is not served and not waited for.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn synced(&self) -> bool {
        let mut phases = self.progress.phases();
        let gives_up = self.missing == MissingKind::Refuse;
        let settled = |phase: &Phase| match phase {
            Phase::Synced => true,
            Phase::Missing => gives_up,
            _ => false,
        };
        phases
            .wait_for(settled)
            .await
            .is_ok_and(|phase| *phase == Phase::Synced)
    }

    /// Notes that a run is about to begin: the cache counts as filled only when that run has filled it.
    pub(crate) fn begin(&self) {
        self.progress.enter(Phase::Resolving);
    }

    /// Keeps the cache up to date until told to stop.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let _alone = self.run.lock().await;
        self.progress.enter(Phase::Resolving);
        let source = match &self.source {
            Some(source) => Arc::clone(source),
            None => match self.resolve(&stop).await {
                Some(resource) => Arc::new(Endpoint::new(self.client.client().clone(), &resource)),
                None => return,
            },
        };
        let publisher = Arc::clone(&self.publisher);
        Reflector::new(source, publisher, Arc::clone(&self.progress))
            .run(stop)
            .await;
        self.progress.enter(Phase::Idle);
    }

    /// Finds out where the kind is served, however long that takes; `None` if the informer stops.
    async fn resolve(&self, stop: &CancellationToken) -> Option<ResourceKind> {
        let mut retry = DISCOVERY_PERIOD;
        loop {
            let error = match stop.run_until_cancelled(self.client.resource()).await {
                None => break,
                Some(Ok(resource)) => return Some(resource.clone()),
                Some(Err(error)) => error,
            };
            let delay = if error.is_unknown() {
                MISSING_KIND_PERIOD
            } else {
                retry
            };
            retry = (retry * 2).min(10 * DISCOVERY_PERIOD);
            self.progress.failed(describe(&error), delay);
            self.progress.enter(if error.is_unknown() {
                Phase::Missing
            } else {
                Phase::Resolving
            });
            if stop.run_until_cancelled(time::sleep(delay)).await.is_none() {
                break;
            }
        }
        self.progress.enter(Phase::Idle);
        None
    }
}

impl fmt::Debug for Informer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
