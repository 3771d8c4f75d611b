//! The handle of a kind.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lariat_core::{Gvk, LabelSelector, ObjectKey, Uid};

use super::changes::Changes;
use super::core::{Core, Wanted};
use super::load::{self, LoadError};
use super::refresh::RefreshError;
use crate::client::KindClient;
use crate::publish::{KindStatus, Subscriber, Subscription, User};
use crate::selection::Selection;
use crate::store::{CachedObject, Store};
use crate::view::View;
use crate::warm::{WarmIdentity, WarmSource};

/// The informer of one kind: one watch and one store, however many use it.
///
/// A clone is the same informer. Informers, caches, subscriptions and streams of changes are uses of the kind. After
/// the last use, the watch continues for a grace period; then it ends and the memory is freed.
///
/// As long as all uses need metadata only, only metadata is watched. The first that needs content upgrades the watch;
/// other uses are not affected.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat_cache::SharedCacheFactory;
/// use lariat_core::Gvk;
///
/// # async fn example(factory: SharedCacheFactory) {
/// let informer = factory.for_kind(Gvk::new("", "v1", "Pod"));
/// let pods = informer.cache::<Pod>();
/// if informer.synced().await {
///     println!("{} pods, {}", pods.len(), informer.status().phase);
/// }
/// # }
/// ```
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

    /// Returns the store of raw objects. Holding it is not a use of the kind.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.core.store
    }

    /// Returns the same informer as an optional use, for which no start waits.
    ///
    /// A start does not fail either if the kind is not served.
    #[must_use]
    pub fn optional(&self) -> Self {
        Self::optional_of(Arc::clone(&self.core))
    }

    /// Returns the same informer as a required use, for which starts wait.
    ///
    /// A factory returns required uses.
    #[must_use]
    pub fn required(&self) -> Self {
        Self::new(Arc::clone(&self.core))
    }

    /// Returns whether this is an optional use.
    #[must_use]
    pub fn is_optional(&self) -> bool {
        self.user.is_optional()
    }

    /// Loads the cache at its first start from objects stored elsewhere.
    ///
    /// For example in a database.
    ///
    /// The watch continues from their version; the kind is listed only if that has expired. It counts as synced as
    /// after a [warm restart](crate::CacheFactoryBuilder::warm_restart), whose file is used if the source has nothing.
    /// An informer that is running does not read the source.
    pub fn warm_from(&self, source: Arc<dyn WarmSource>) {
        self.core.warm_from(source);
    }

    /// Returns the identity under which a later run may use objects saved now.
    ///
    /// It contains the cluster, the selection, and what is done with objects before they are cached. `None` if a later
    /// run has to list in any case, because the kind is restricted to namespaces, transformed by a function, or cached
    /// without content; and as long as the cluster is not [known](Self::cluster_is_known).
    #[must_use]
    pub fn warm_identity(&self) -> Option<WarmIdentity> {
        self.core.warm_identity()
    }

    /// Waits until the API server has identified its cluster.
    ///
    /// Returns `false` if the program may not get the namespace `kube-system`, whose uid identifies the cluster, or the
    /// server keeps answering with errors. A server that does not answer is asked until it does.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn cluster_is_known(&self) -> bool {
        self.core.cluster.wait().await
    }

    /// Declares that the kind is read as `K`: its content is watched if `K` needs it.
    ///
    /// An informer that runs then reads everything again. Until it has, the cache contains metadata; see
    /// [`load`](Self::load).
    pub fn need<K: View>(&self) {
        // Checked first, because this is called with every look at the cache.
        if K::NEEDS_CONTENT && !self.core.wanted.borrow().content {
            self.want(|wanted| wanted.content = true);
        }
    }

    /// Changes what is read.
    ///
    /// Until it has been read, the cache does not count as synced.
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

    /// Sets which objects are cached from now on, for all users of the kind.
    ///
    /// Objects that are no longer selected are deleted from the cache, with changes that say so; newly selected objects
    /// are read.
    ///
    /// ```no_run
    /// use lariat_cache::{Informer, Selection};
    ///
    /// # fn example(pods: &Informer) -> Result<(), lariat_core::SelectorError> {
    /// pods.select(Selection::all().with_labels("app in (web, api)".parse()?));
    /// # Ok(())
    /// # }
    /// ```
    pub fn select(&self, selection: Selection) {
        self.want(|wanted| {
            wanted.selected = selection;
            wanted.reselect();
        });
    }

    /// Limits whatever is [selected](Self::select) by labels, for all users of the kind (default: no limit).
    ///
    /// It is for replicas that divide the objects by a label: each watches its own part. A new limit replaces the one
    /// before. The cache does not count as [synced](Self::synced) until what it has gained is read; objects that it has
    /// lost are deleted from it, with changes that say so.
    ///
    /// ```no_run
    /// use lariat_cache::Informer;
    ///
    /// # fn example(pods: &Informer) -> Result<(), lariat_core::SelectorError> {
    /// pods.narrow("example.com/shard in (0, 2)".parse()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn narrow(&self, labels: LabelSelector) {
        self.want(|wanted| {
            wanted.narrowed = labels;
            wanted.reselect();
        });
    }

    /// Reads all objects again, as after a watch that expired; returns whether the informer runs.
    ///
    /// The cache keeps its objects and counts as synced meanwhile, and only what differs is published. The list begins
    /// after this call: one that is under way is finished first, and followed by another. Calls before that list begins
    /// lead to one list. A list that fails is tried again until it succeeds. [`KindStatus::loads`] counts the lists that
    /// have ended. An informer that does not run reads everything at its next start anyway, or watches from where it was.
    ///
    /// ```no_run
    /// use lariat_cache::SharedCacheFactory;
    /// use lariat_core::Gvk;
    ///
    /// # fn example(factory: SharedCacheFactory) {
    /// let pods = factory.existing(&Gvk::new("", "v1", "Pod"));
    /// let asked = pods.is_some_and(|pods| pods.relist());
    /// # }
    /// ```
    #[must_use = "without a running informer nothing is read"]
    pub fn relist(&self) -> bool {
        self.core.relist()
    }

    /// Returns the selection of cached objects.
    pub fn selection(&self) -> Selection {
        self.core.wanted.borrow().selection.clone()
    }

    /// Returns whether the value at a JSON pointer (`/status`) is cached unchanged.
    ///
    /// This includes everything below it, and for the empty pointer the whole object. It is not, if the kind's [`Transform`](crate::Transform) may remove or change
    /// some of it, or if objects come from a source of the caller's. A write that depends on the value must then read
    /// the object from the API server first: the version of a cached object does not show that something is missing.
    ///
    /// This applies to objects [with content](CachedObject::has_content). `metadata.managedFields`, which is cut out by
    /// default, is not considered.
    #[must_use]
    pub fn keeps(&self, pointer: &str) -> bool {
        self.core.keeps(pointer)
    }

    /// Subscribes to changes; existing objects are published before this returns.
    ///
    /// The subscriber is called by the task that changes the cache, so it must be quick; for slow readers there is
    /// [`changes`](Self::changes). Objects are as they are watched: without content, as long as no use
    /// [needs](Self::need) it.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use lariat_cache::{Change, Informer, Subscriber};
    ///
    /// struct Print;
    ///
    /// impl Subscriber for Print {
    ///     fn changed(&self, changes: &[Change]) {
    ///         changes.iter().for_each(|change| println!("{} {}", change.key(), change.cause()));
    ///     }
    /// }
    ///
    /// # fn example(pods: &Informer) {
    /// let subscription = pods.subscribe(Arc::new(Print));
    /// // Dropping it ends the subscription.
    /// drop(subscription);
    /// # }
    /// ```
    pub fn subscribe(&self, subscriber: Arc<dyn Subscriber>) -> Subscription {
        self.core
            .publisher
            .subscribe(subscriber, Arc::clone(&self.user))
    }

    /// Subscribes to changes as a stream, which begins with the existing objects.
    pub fn changes(&self) -> Changes {
        let unread = Arc::default();
        let subscription = self.subscribe(Arc::clone(&unread) as Arc<dyn Subscriber>);
        Changes::new(unread, subscription)
    }

    /// Returns an object with its content, which is fetched if only metadata is cached.
    ///
    /// Returns `None` if the object is not cached, or is deleted meanwhile. The cache does not store a fetched object.
    /// The object may be newer than the cached one, and is never older: if the cached one changes during the request,
    /// it is fetched again. The request goes to the API server, also for kinds that are read from a source of the
    /// caller's.
    ///
    /// ```no_run
    /// use lariat_cache::{Informer, LoadError};
    /// use lariat_core::ObjectKey;
    ///
    /// # async fn example(secrets: &Informer) -> Result<(), LoadError> {
    /// let key = ObjectKey::namespaced("shop", "database");
    /// if let Some(secret) = secrets.load(&key).await? {
    ///     println!("{} at {}", secret.key(), secret.version());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The API server does not answer, or not with an object of the kind.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the request under way and loses nothing else.
    pub async fn load(&self, key: &ObjectKey) -> Result<Option<Arc<CachedObject>>, LoadError> {
        self.load_within(key, load::UPGRADE_PATIENCE).await
    }

    /// Returns an object with its content, with a limit on waiting for an upgrade.
    ///
    /// As [`load`](Self::load), which waits 20 seconds for a watch that is being upgraded to content before it fetches
    /// an object. Zero fetches immediately.
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

    /// Reads an object from the API server and shows its state in the cache.
    ///
    /// It is for writes whose answers do not show the object, such as an eviction: like the answers of other writes, the
    /// state is shown ahead of the watch. An object that is not there any more is removed. Nothing is shown before the
    /// first start, nor if a field selector may leave the object out.
    ///
    /// ```no_run
    /// use lariat_cache::{Informer, RefreshError};
    /// use lariat_core::ObjectKey;
    ///
    /// # async fn example(pods: &Informer) -> Result<(), RefreshError> {
    /// pods.refresh(&ObjectKey::namespaced("shop", "web-0")).await
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The API server does not answer within 30 seconds, or refuses the read.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the request under way and loses nothing else.
    pub async fn refresh(&self, key: &ObjectKey) -> Result<(), RefreshError> {
        self.core.refresh(key).await
    }

    /// Reads objects from the API server and shows their states in the cache.
    ///
    /// As [`refresh`](Self::refresh), for the objects of a namespace, or of all, that have some labels. Of the objects
    /// that are not there any more, those with a uid in `deleted` are removed; others may have other labels now, which
    /// the watch shows.
    ///
    /// # Errors
    ///
    /// As for [`refresh`](Self::refresh).
    ///
    /// # Cancel safety
    ///
    /// As for [`refresh`](Self::refresh).
    pub async fn refresh_all(
        &self,
        namespace: Option<&str>,
        labels: &LabelSelector,
        deleted: &[Uid],
    ) -> Result<(), RefreshError> {
        self.core.refresh_all(namespace, labels, deleted).await
    }

    /// Returns whether the content is being read, after an upgrade or again.
    #[must_use]
    pub fn is_upgrading(&self) -> bool {
        self.core.is_upgrading()
    }

    /// Returns the status and totals.
    #[must_use]
    pub fn status(&self) -> KindStatus {
        self.core.status()
    }

    /// Waits until the cache has synced.
    ///
    /// Returns `false` if the kind is not served and the cache does not wait for it.
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

    /// Waits until the cache has synced, even if the kind is not served for now.
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
