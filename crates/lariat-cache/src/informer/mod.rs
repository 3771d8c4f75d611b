//! The informer of a kind: its reflectors, its store and its subscribers.

mod budget;
mod changes;
mod load;
mod progress;
mod publisher;
mod run;
mod status;
mod user;

use std::fmt;
use std::sync::Arc;

use lariat_core::{Gvk, ObjectKey, RawObject, ResourceKind, ResourceVersion, Uid};
use tokio::sync::{Mutex, Notify, watch};

use crate::cache::Cache;
use crate::client::KindClient;
use crate::options::{KindOptions, MissingKind};
use crate::reflector::Source;
use crate::selection::Selection;
use crate::store::{CachedObject, Storage, Store};
use crate::view::View;

use budget::Budget;
pub(crate) use budget::SharedBudget;
pub use changes::Changes;
pub use load::LoadError;
pub(crate) use progress::{Progress, Segment};
pub(crate) use publisher::Publisher;
pub use publisher::{Subscriber, Subscription};
pub use status::{KindStatus, Phase};
pub(crate) use user::{Usage, User};

/// One kind: one watch and one store, whoever and however many use it; a clone is the same informer.
///
/// Informers, caches, subscriptions and streams of changes are uses of the kind. When the last of them is
/// gone, the watch goes on for a grace time, then it ends and the memory is freed.
///
/// As long as everybody is content with metadata, only metadata is watched. The first who needs content
/// upgrades the watch, without anybody else noticing.
#[derive(Clone)]
pub struct Informer {
    core: Arc<Core>,
    user: Arc<User>,
}

/// What all users of a kind share.
pub(crate) struct Core {
    client: Arc<KindClient>,
    store: Arc<Store>,
    publisher: Arc<Publisher>,
    progress: Arc<Progress>,
    missing: MissingKind,
    options: KindOptions,
    source: Option<Arc<dyn Source>>,
    wanted: watch::Sender<Wanted>,
    /// The form in which the kind has to be kept.
    storage: watch::Sender<Storage>,
    usage: Arc<Usage>,
    /// The version at which the store was found on disk.
    resume: parking_lot::Mutex<Option<ResourceVersion>>,
    /// Held while the informer runs, so that a run that was told to stop ends before the next begins.
    run: Mutex<()>,
}

/// What users want to be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    selection: Selection,
    /// Whether anybody needs more than metadata.
    content: bool,
}

/// What a factory gives its informers.
pub(crate) struct Surroundings {
    pub(crate) missing: MissingKind,
    pub(crate) budget: SharedBudget,
    /// Told when a kind is not used any more.
    pub(crate) idle: Arc<Notify>,
}

impl Core {
    pub(crate) fn new(
        client: Arc<KindClient>,
        source: Option<Arc<dyn Source>>,
        options: KindOptions,
        surroundings: Surroundings,
    ) -> Self {
        let store = Arc::new(Store::default());
        store.set_storage(options.storage);
        let storage = watch::Sender::new(options.storage);
        let budget = Budget::new(options.budget, surroundings.budget, storage.clone());
        budget.enter(client.gvk(), &store);
        let publisher = Publisher::new(client.gvk().clone(), Arc::clone(&store), budget);
        Self {
            progress: Arc::new(Progress::new(client.gvk().clone())),
            publisher: Arc::new(publisher),
            store,
            client,
            missing: surroundings.missing,
            wanted: watch::Sender::new(Wanted {
                selection: options.selection.clone(),
                content: false,
            }),
            options,
            source,
            storage,
            usage: Usage::new(surroundings.idle),
            resume: parking_lot::Mutex::default(),
            run: Mutex::default(),
        }
    }

    pub(crate) fn gvk(&self) -> &Gvk {
        self.client.gvk()
    }

    pub(crate) fn usage(&self) -> &Arc<Usage> {
        &self.usage
    }

    pub(crate) fn status(&self) -> KindStatus {
        self.progress.status(&self.store)
    }

    pub(crate) fn objects(&self) -> usize {
        self.store.len()
    }

    /// Returns where the kind is served, if that is known.
    pub(crate) fn resource(&self) -> Option<ResourceKind> {
        self.client.known_resource()
    }

    /// Waits until the cache has been filled; `false` if the kind is not served and not waited for.
    pub(crate) async fn synced(&self) -> bool {
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
        self.progress.begin(0);
    }

    /// Takes in the answer to a write of this process, if it belongs into the cache for certain.
    pub(crate) fn wrote(&self, object: RawObject) {
        // Before the cache is filled, or once it is not kept up to date, it would be an only object.
        if self.progress.phase() != Phase::Synced {
            return;
        }
        let selection = self.wanted.borrow().selection.clone();
        let object = match &self.options.transform {
            Some(transform) => transform.apply(object),
            None => object,
        };
        if selection.surely_holds(&object) {
            self.publisher.wrote(object);
        }
    }

    /// Takes in that this process deleted an object.
    pub(crate) fn deleted(&self, key: &ObjectKey, uid: Option<&Uid>) {
        if self.progress.phase() == Phase::Synced {
            self.publisher.deleted(key, uid);
        }
    }
}

impl Informer {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        let user = core.usage.begin();
        Self { core, user }
    }

    /// Returns the kind.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        self.core.gvk()
    }

    /// Returns the client of the kind.
    #[must_use]
    pub fn client(&self) -> &Arc<KindClient> {
        &self.core.client
    }

    /// Returns the raw objects. Having them is no use of the kind.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.core.store
    }

    /// Returns the cache, read as `K`; the content is watched from now on if `K` needs it.
    #[must_use]
    pub fn cache<K: View>(&self) -> Cache<K> {
        self.need::<K>();
        Cache::new(self.clone())
    }

    /// Says that somebody reads the kind as `K`: the content is watched from now on if that needs it.
    ///
    /// An informer that runs reads everything again then. Until it has, what is cached is metadata; see
    /// [`load`](Self::load).
    pub fn need<K: View>(&self) {
        if K::NEEDS_CONTENT {
            self.want(|wanted| wanted.content = true);
        }
    }

    /// Changes what is read; until it has been read, the cache does not count as filled.
    fn want(&self, change: impl FnOnce(&mut Wanted)) {
        self.core.wanted.send_if_modified(|wanted| {
            let before = wanted.clone();
            change(wanted);
            let changes = *wanted != before;
            if changes {
                self.core.progress.behind();
            }
            changes
        });
    }

    /// Chooses which objects are cached from now on, for everybody who uses the kind.
    ///
    /// What is not selected any more is deleted from the cache, with changes that say so; what is selected
    /// now is read.
    pub fn select(&self, selection: Selection) {
        self.want(|wanted| wanted.selection = selection);
    }

    /// Returns which objects are cached.
    pub fn selection(&self) -> Selection {
        self.core.wanted.borrow().selection.clone()
    }

    /// Subscribes to changes; what exists now is told first, before this returns.
    ///
    /// The subscriber is called by whoever changes the cache, so it must be prompt. For readers that take
    /// their time there is [`changes`](Self::changes). Objects are as they are watched: without content, as
    /// long as nobody [needs](Self::need) it.
    pub fn subscribe(&self, subscriber: Arc<dyn Subscriber>) -> Subscription {
        self.core
            .publisher
            .subscribe(subscriber, Arc::clone(&self.user))
    }

    /// Subscribes to changes, to be read at any speed; what exists now comes first.
    pub fn changes(&self) -> Changes {
        let unread = Arc::default();
        let subscription = self.subscribe(Arc::clone(&unread) as Arc<dyn Subscriber>);
        Changes::new(unread, subscription)
    }

    /// Returns an object with its content, which is fetched if only metadata is cached; `None` if there is
    /// no such object.
    ///
    /// What is fetched is not kept, and may be newer than the cache.
    ///
    /// # Errors
    ///
    /// The API server does not answer, or not with an object of the kind.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing but the request under way.
    pub async fn load(&self, key: &ObjectKey) -> Result<Option<Arc<CachedObject>>, LoadError> {
        self.core.load(key).await
    }

    /// Returns state and totals.
    #[must_use]
    pub fn status(&self) -> KindStatus {
        self.core.status()
    }

    /// Waits until the cache has been filled; `false` if the kind is not served and not waited for.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn synced(&self) -> bool {
        self.core.synced().await
    }

    /// Returns whether two handles are the same informer.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }
}

impl fmt::Debug for Informer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
