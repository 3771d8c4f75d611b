//! The informer of a kind, as the handle of one use.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use lariat_core::{Gvk, LabelSelector, ObjectKey, Uid};

use super::changes::Changes;
use super::core::{Core, Wanted};
use super::load;
use super::reads::LoadError;
use crate::client::KindClient;
use crate::publish::{ContentHold, KindStatus, Subscriber, Subscription, User};
use crate::selection::Selection;
use crate::store::{CachedObject, Content, Query, Store};
use crate::view::View;
use crate::warm::{WarmIdentity, WarmSource};

/// The informer of one kind: one watch and one store, however many use it.
///
/// A clone is the same informer. Informers, caches, subscriptions and streams of changes are uses of the kind. After
/// the last use has ended, the watch continues for a grace period; then it ends and the memory is freed.
///
/// As long as all uses need metadata only, only metadata is watched. The first use that needs content upgrades the
/// watch: readers of metadata go on with the cached one and do not wait, while readers of content wait for the list.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat::cache::SharedCacheFactory;
/// use lariat::Gvk;
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

    /// Returns the client of the kind; its writes are applied to the cache.
    #[must_use]
    pub fn client(&self) -> &Arc<KindClient> {
        &self.core.client
    }

    /// Returns the store of raw objects; holding it is not a use of the kind.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.core.store
    }

    /// Returns the same informer as an optional use.
    ///
    /// A start neither waits for optional uses nor fails if their kind is not served.
    ///
    /// ```no_run
    /// use lariat::cache::SharedCacheFactory;
    /// use lariat::Gvk;
    ///
    /// # fn example(factory: SharedCacheFactory) {
    /// // A kind that only some clusters have.
    /// let monitors = Gvk::new("monitoring.coreos.com", "v1", "ServiceMonitor");
    /// let monitors = factory.for_kind(monitors).optional();
    /// # drop(monitors);
    /// # }
    /// ```
    #[must_use]
    pub fn optional(&self) -> Self {
        Self::optional_of(Arc::clone(&self.core))
    }

    /// Returns the same informer as a required use, for which a start waits.
    ///
    /// The informers that a factory returns are required uses.
    #[must_use]
    pub fn required(&self) -> Self {
        Self::new(Arc::clone(&self.core))
    }

    /// Returns whether this is an optional use.
    #[must_use]
    pub fn is_optional(&self) -> bool {
        self.user.is_optional()
    }

    /// Loads the cache at its first start from objects that are stored elsewhere.
    ///
    /// Such a source may be a database. The watch continues from the version of its objects; the kind is listed only if
    /// that version has expired. The cache counts as synced as after a [warm
    /// restart](crate::CacheFactoryBuilder::warm_restart), whose file is used if the source has no objects. An informer
    /// that runs already does not read the source.
    pub fn warm_from(&self, source: Arc<dyn WarmSource>) {
        self.core.warm_from(source);
    }

    /// Returns the identity under which a later run may use objects saved now.
    ///
    /// The identity contains the cluster, the selection, and how objects are changed before they are cached. Returns
    /// `None` if a later run must list in any case, because the kind is restricted to namespaces, transformed by a
    /// function, or cached without content; and as long as the cluster is not [known](Self::cluster_is_known).
    #[must_use]
    pub fn warm_identity(&self) -> Option<WarmIdentity> {
        self.core.warm_identity()
    }

    /// Waits until the API server has identified its cluster.
    ///
    /// The uid of the namespace `kube-system` identifies a cluster. Returns `false` if the program may not read this
    /// namespace, or the server keeps answering with errors. If the server does not answer, this waits until it does.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing.
    pub async fn cluster_is_known(&self) -> bool {
        self.core.shared.cluster.wait().await
    }

    /// Declares that the kind is read as `K`; watches the content if `K` needs it.
    ///
    /// A running informer then lists the kind again, with content. Until it has, the cache contains metadata; see
    /// [`load`](Self::load).
    pub fn need<K: View>(&self) {
        // Checked first, because every read through a cache calls this.
        if K::NEEDS_CONTENT && !self.core.wanted.borrow().content {
            self.want(|wanted| wanted.content = true);
        }
    }

    /// Declares that content is read, and keeps the content of all objects cached.
    ///
    /// A hold is for readers that need the content of every state, also of states that were replaced or deleted, which
    /// nobody can fetch any more. Relations and [indexes](crate::Cache::add_index) that read content hold it. Until the
    /// hold is dropped, a kind that is stored [on demand](crate::Storage::OnDemand), by its options or because of a
    /// memory budget, is stored [compressed](crate::Storage::Compressed), and a budget makes it no smaller than that. A
    /// [`ContentFilter`](crate::ContentFilter) still applies.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::cache::Informer;
    ///
    /// # async fn example(pods: &Informer) {
    /// let hold = pods.hold_content();
    /// pods.content_synced().await;
    /// println!("{} readable pods", pods.cache::<Pod>().list().flatten().count());
    /// drop(hold);
    /// # }
    /// ```
    pub fn hold_content(&self) -> ContentHold {
        self.want(|wanted| wanted.content = true);
        self.core.hold_content()
    }

    /// Keeps the content of all objects cached for an index.
    pub(crate) fn index_content(&self) {
        self.core.index_content();
    }

    /// Changes the selection or content to read.
    ///
    /// With another selection the cache counts as not synced until it has been read. If only content is added, its
    /// metadata stays current.
    fn want(&self, change: impl FnOnce(&mut Wanted)) {
        self.core.wanted.send_if_modified(|wanted| {
            let before = wanted.clone();
            change(wanted);
            let changes = *wanted != before;
            if changes {
                self.core.generation.fetch_add(1, Ordering::SeqCst);
                if wanted.selection == before.selection {
                    self.core.progress.upgrade();
                } else {
                    self.core.progress.behind();
                }
            }
            changes
        });
    }

    /// Sets which objects are cached from now on, for all users of the kind.
    ///
    /// Objects that are no longer selected are deleted from the cache, and their deletion is published. Newly selected
    /// objects are read; the cache counts as not synced until they are.
    ///
    /// ```no_run
    /// use lariat::cache::Informer;
    /// use lariat::Selection;
    ///
    /// # fn example(pods: &Informer) -> Result<(), lariat::core::SelectorError> {
    /// pods.select(Selection::all().with_labels("app in (web, api)".parse()?));
    /// # Ok(())
    /// # }
    /// ```
    pub fn select(&self, selection: Selection) {
        self.want(|wanted| wanted.selection = selection);
    }

    /// Lists all objects again, as after a watch that expired.
    ///
    /// Returns whether the informer runs. If it does not, it lists at its next start anyway, or continues its watch.
    ///
    /// The cache keeps its objects and counts as synced meanwhile, and only differences are published. The list begins
    /// after this call: a list in progress is finished first, and followed by another. Several calls before that list
    /// begins lead to one list. A list that fails is retried until it succeeds. [`KindStatus::loads`] counts the lists
    /// that have ended.
    ///
    /// ```no_run
    /// use lariat::cache::SharedCacheFactory;
    /// use lariat::Gvk;
    ///
    /// # fn example(factory: SharedCacheFactory) {
    /// let pods = factory.existing(&Gvk::new("", "v1", "Pod"));
    /// let relists = pods.is_some_and(|pods| pods.relist());
    /// # let _ = relists;
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
    /// This includes everything below the value; the empty pointer stands for the whole object. A value is not cached
    /// unchanged if the kind's [`Transform`](crate::Transform) may remove or change some of it, or if objects come from
    /// a [`Source`](crate::Source) of the caller. A write that depends on such a value must read the object from the
    /// API server first: the version of a cached object does not show that something is missing.
    ///
    /// This applies to objects [with content](CachedObject::has_content). `metadata.managedFields`, which are removed
    /// by default, are not considered.
    #[must_use]
    pub fn caches_unchanged(&self, pointer: &str) -> bool {
        self.core.caches_unchanged(pointer)
    }

    /// Subscribes to changes, beginning with the existing objects.
    ///
    /// The existing objects are published before this returns. The task that changes the cache calls the subscriber, so
    /// it must be quick; slow readers use [`changes`](Self::changes). Objects have no content as long as no use
    /// [needs](Self::need) it.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use lariat::cache::{Change, Informer, Subscriber};
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
    ///
    /// See [`Changes`].
    pub fn changes(&self) -> Changes {
        let unread = Arc::default();
        let subscription = self.subscribe(Arc::clone(&unread) as Arc<dyn Subscriber>);
        Changes::new(unread, subscription)
    }

    /// Returns an object with its content, fetching the content if it is not cached.
    ///
    /// Returns `None` if the object is not cached, or is deleted meanwhile. Fetched content is not stored in the cache.
    /// A fetched object is never older than the cached one: if that changes during the request, it is fetched again. If
    /// it is newer, its metadata is cached at once, as that of an own write is. The request goes to the API server, also for a kind that is read from a
    /// [`Source`](crate::Source) of the caller.
    ///
    /// ```no_run
    /// use lariat::cache::{Informer, LoadError};
    /// use lariat::ObjectKey;
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
    /// Fails if the API server does not answer, or answers with an error or with something else than an object of the
    /// kind.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the request in flight and loses nothing else.
    pub async fn load(&self, key: &ObjectKey) -> Result<Option<Arc<CachedObject>>, LoadError> {
        self.load_within(key, load::UPGRADE_WAIT).await
    }

    /// Loads an object, with a timeout for waiting on an upgrade of the watch.
    ///
    /// This is [`load`](Self::load) with another timeout than 20 seconds. While a watch is being upgraded to content,
    /// waiting for it is better than one request for each object. Zero fetches immediately.
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
        timeout: Duration,
    ) -> Result<Option<Arc<CachedObject>>, LoadError> {
        self.core.load(key, timeout).await
    }

    /// Returns the objects that a query selects, with their content.
    ///
    /// This is [`load`](Self::load) for many objects. If more than a few lack content, they are fetched by one list of
    /// the namespace and the labels of the query (one for each namespace of the [selection](Self::selection)), in pages
    /// of 500. If the query is for the objects of an owner, and these are few among those listed, each is fetched by
    /// itself.
    ///
    /// # Errors
    ///
    /// As for [`load`](Self::load).
    ///
    /// # Cancel safety
    ///
    /// As for [`load`](Self::load).
    pub async fn load_all(&self, query: &Query) -> Result<Vec<Arc<CachedObject>>, LoadError> {
        self.core.load_all(query).await
    }

    /// Reads an object from the API server and applies its state to the cache.
    ///
    /// A refresh is for writes whose answers do not contain the object, such as an eviction: like answers of other
    /// writes, the state is applied before the watch reports it. An object that does not exist any more is removed.
    /// Nothing is applied before the first start, nor if a field selector may exclude the object, nor to a kind that is
    /// read from a [`Source`](crate::Source) of the caller.
    ///
    /// ```no_run
    /// use lariat::cache::{Informer, LoadError};
    /// use lariat::ObjectKey;
    ///
    /// # async fn example(pods: &Informer) -> Result<(), LoadError> {
    /// pods.refresh(&ObjectKey::namespaced("shop", "web-0")).await
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the API server does not answer within 30 seconds, or refuses the read. The watch reports the state
    /// later.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the request in flight and loses nothing else.
    pub async fn refresh(&self, key: &ObjectKey) -> Result<(), LoadError> {
        self.core.refresh(key).await
    }

    /// Reads objects with some labels from the API server and applies their states.
    ///
    /// This is [`refresh`](Self::refresh) for the objects of a namespace, or of all, that have certain labels. Objects
    /// with a uid in `deleted` that do not exist any more are removed. Others that were not found may have other labels
    /// now, which the watch reports.
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
    ) -> Result<(), LoadError> {
        self.core.refresh_all(namespace, labels, deleted).await
    }

    /// Returns whether the content is being read, after an upgrade or again.
    #[must_use]
    pub fn is_upgrading(&self) -> bool {
        self.core.is_upgrading()
    }

    /// Returns how long the content has been read for; `None` unless it [is](Self::is_upgrading).
    #[must_use]
    pub fn upgrading_for(&self) -> Option<Duration> {
        self.core.upgrading_for()
    }

    /// Returns whether the cache follows the API server now.
    ///
    /// See [`Cache::is_current`](crate::Cache::is_current).
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.core.is_followed()
    }

    /// Returns the status and totals of the kind.
    #[must_use]
    pub fn status(&self) -> KindStatus {
        self.core.status()
    }

    /// Waits until the cache has synced: its metadata is current.
    ///
    /// Its content may still be on its way, if a use has [needed](Self::need) it since;
    /// [`content_synced`](Self::content_synced) waits for that too. Returns `false` if the API server does not serve
    /// the kind and the cache does not wait for it, or if the kind cannot be watched.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing.
    pub async fn synced(&self) -> bool {
        self.synced_as(Content::MetadataOnly).await
    }

    /// Waits until the cache has synced, with the content that its uses need.
    ///
    /// Content that is not cached, as [on demand](crate::Storage::OnDemand), is not waited for. Returns `false` as
    /// [`synced`](Self::synced) does.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing.
    pub async fn content_synced(&self) -> bool {
        self.synced_as(Content::Whole).await
    }

    pub(crate) async fn synced_as(&self, read: Content) -> bool {
        self.core.synced(read).await
    }

    /// See [`Cache::readable`](crate::Cache::readable).
    pub(crate) async fn readable(&self, read: Content) -> bool {
        self.core.readable(read).await
    }

    /// See [`Cache::readable_within`](crate::Cache::readable_within).
    pub(crate) async fn readable_within(&self, read: Content, timeout: Duration) -> Option<bool> {
        self.core.readable_within(read, timeout).await
    }

    /// Waits until the cache has synced, even if the kind is not served for now.
    #[cfg(feature = "kube-runtime")]
    pub(crate) async fn filled<K: View>(&self) {
        self.core.filled(content_of::<K>()).await;
    }

    /// Returns whether two handles are of the same informer.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }
}

/// Returns the part of the objects that is read as `K`.
pub(crate) fn content_of<K: View>() -> Content {
    if K::NEEDS_CONTENT {
        Content::Whole
    } else {
        Content::MetadataOnly
    }
}

impl fmt::Debug for Informer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Informer")
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
