//! The handle of a kind.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};

use super::changes::Changes;
use super::core::{Core, Wanted};
use super::load::{self, LoadError};
use crate::client::KindClient;
use crate::publish::{KindStatus, Subscriber, Subscription, User};
use crate::selection::Selection;
use crate::store::{CachedObject, Store};
use crate::view::View;
use crate::warm::{WarmIdentity, WarmSource};

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

impl Informer {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        let user = core.usage.begin(false);
        Self { core, user }
    }

    pub(crate) fn optional_of(core: Arc<Core>) -> Self {
        let user = core.usage.begin(true);
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

    /// Returns the same informer, as a use of the kind for which no start waits, and that makes none fail if the
    /// kind is not served.
    #[must_use]
    pub fn optional(&self) -> Self {
        Self::optional_of(Arc::clone(&self.core))
    }

    /// Returns the same informer, as a use of the kind for which starts wait: what a factory gives out is one.
    #[must_use]
    pub fn required(&self) -> Self {
        Self::new(Arc::clone(&self.core))
    }

    /// Returns whether this is a use of the kind for which no start waits.
    #[must_use]
    pub fn is_optional(&self) -> bool {
        self.user.is_optional()
    }

    /// Fills the cache at its first start from objects that are kept elsewhere, as in a database.
    ///
    /// The watch goes on from their version, and the kind is listed only where that has expired. It counts as filled as after a
    /// [warm restart](crate::CacheFactoryBuilder::warm_restart), whose file is used where the source has nothing. An informer
    /// that runs already does not read it.
    pub fn warm_from(&self, source: Arc<dyn WarmSource>) {
        self.core.warm_from(source);
    }

    /// Returns what must be the same for objects that are kept now to be used by a later run.
    ///
    /// It names the cluster, what is selected and what is done with objects before they are cached. None if a later run has
    /// to list in any case: the kind is restricted to namespaces, changed by a function, or cached without the content of
    /// objects; and until it is [known](Self::cluster_is_known) which cluster this is.
    #[must_use]
    pub fn warm_identity(&self) -> Option<WarmIdentity> {
        self.core.warm_identity()
    }

    /// Waits until the API server has said which cluster this is.
    ///
    /// Returns false if the program may not get the namespace `kube-system`, by whose uid clusters are distinguished, or the server
    /// answers with errors again and again. A server that does not answer is asked until it does.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn cluster_is_known(&self) -> bool {
        self.core.cluster.wait().await
    }

    /// Says that somebody reads the kind as `K`: the content is watched from now on if that needs it.
    ///
    /// An informer that runs reads everything again then. Until it has, what is cached is metadata; see
    /// [`load`](Self::load).
    pub fn need<K: View>(&self) {
        // Asked with every look at the cache.
        if K::NEEDS_CONTENT && !self.core.wanted.borrow().content {
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
                self.core.generation.fetch_add(1, Ordering::SeqCst);
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

    /// Returns whether what is at a JSON pointer, such as `/status`, and all below it, is cached as the API server has it.
    ///
    /// It is not where the kind's [`Transform`](crate::Transform) may leave some of it out or change it, or where
    /// objects come from a source of the caller's. Whoever writes what follows from it then has to read it from the API
    /// server first: the version of a cached object does not show that something is missing.
    ///
    /// It is about objects [with content](CachedObject::has_content). `metadata.managedFields`, which is cut out by
    /// default, is not looked at.
    #[must_use]
    pub fn keeps(&self, pointer: &str) -> bool {
        self.core.keeps(pointer)
    }

    /// Subscribes to changes; what exists now is published first, before this returns.
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

    /// Returns an object with its content, which is fetched if only metadata is cached.
    ///
    /// Returns `None` if the object is not cached, or is deleted meanwhile.
    ///
    /// The cache does not keep a fetched object. The object may be newer than the cached one, and is never older: if
    /// the cached one changes while the request is under way, it is fetched again. The request goes to the API server,
    /// also for kinds that are read from a source of the caller's.
    ///
    /// # Errors
    ///
    /// The API server does not answer, or not with an object of the kind.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing but the request under way.
    pub async fn load(&self, key: &ObjectKey) -> Result<Option<Arc<CachedObject>>, LoadError> {
        self.load_within(key, load::UPGRADE_PATIENCE).await
    }

    /// Returns an object with its content, which is fetched if only metadata is cached.
    ///
    /// [`load`](Self::load) waits 20 seconds for a watch that is being upgraded to content before it fetches; this
    /// waits for `patience`, and zero fetches at once.
    ///
    /// # Errors
    ///
    /// As for [`load`](Self::load).
    ///
    /// # Cancel safety
    ///
    /// As for [`load`](Self::load).
    pub async fn load_within(
        &self,
        key: &ObjectKey,
        patience: Duration,
    ) -> Result<Option<Arc<CachedObject>>, LoadError> {
        self.core.load(key, patience).await
    }

    /// Returns whether the watch is being upgraded from metadata to content, or the content is being read again.
    #[must_use]
    pub fn is_upgrading(&self) -> bool {
        self.core.is_upgrading()
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

    /// As [`Cache::readable`](crate::Cache::readable).
    pub(crate) async fn readable(&self) -> bool {
        self.core.readable().await
    }

    /// As [`Cache::readable_within`](crate::Cache::readable_within).
    pub(crate) async fn readable_within(&self, patience: Duration) -> Option<bool> {
        self.core.readable_within(patience).await
    }

    /// Waits until the cache has been filled, even if the kind is not served for now.
    #[cfg(feature = "kube-runtime")]
    pub(crate) async fn filled(&self) {
        let mut phases = self.core.progress.phases();
        let _ = phases
            .wait_for(|phase| *phase == crate::publish::Phase::Synced)
            .await;
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
