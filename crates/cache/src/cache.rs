//! The cache of one kind, read as a type.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};

use crate::informer::{Informer, LoadError, content_of};
use crate::publish::KindStatus;
use crate::store::{CachedObject, DecodeError, IndexError, Query, Snapshot, Store};
use crate::view::View;

/// A read handle to the cache of one kind, whose objects it returns as `K`.
///
/// A clone is the same cache. Reads are synchronous and need no request. Objects are shared, not copied; lists are in
/// key order and show the state of one moment.
///
/// The cache follows the watch, so it may be older than the API server's state. Unless the server is restored from a
/// backup, it is not older than the state for which a handler of the kind was called, nor than an answer to a write by
/// the factory's clients if the cache is known to select the object: it has no [`Source`](crate::Source) of the caller,
/// and no field selector with other fields than name and namespace. [`is_current`](Self::is_current) says whether it
/// follows the API server now.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat::{Cache, ObjectKey};
///
/// fn is_running(pods: &Cache<Pod>, key: &ObjectKey) -> bool {
///     let pod = pods.get(key).ok().flatten();
///     let phase = pod.and_then(|pod| pod.status.as_ref()?.phase.clone());
///     phase.as_deref() == Some("Running")
/// }
/// # let _ = is_running;
/// ```
pub struct Cache<K> {
    informer: Informer,
    view: PhantomData<fn() -> K>,
}

impl Informer {
    /// Returns the cache of the kind, which reads objects as `K`.
    ///
    /// If `K` needs content and only metadata is watched so far, the content is watched from now on.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::Cache;
    /// use lariat::cache::Informer;
    ///
    /// fn pods(informer: &Informer) -> Cache<Pod> {
    ///     informer.cache()
    /// }
    /// # let _ = pods;
    /// ```
    #[must_use]
    pub fn cache<K: View>(&self) -> Cache<K> {
        self.need::<K>();
        Cache::new(self.clone())
    }
}

impl<K: View> Cache<K> {
    pub(crate) fn new(informer: Informer) -> Self {
        Self {
            informer,
            view: PhantomData,
        }
    }

    /// Returns the kind of the objects.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        self.informer.gvk()
    }

    /// Returns the same cache with objects as another type.
    ///
    /// If only metadata is watched and `V` needs content, the content is watched from now on.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::{Cache, Metadata};
    ///
    /// fn names_only(pods: &Cache<Pod>) -> Cache<Metadata> {
    ///     pods.view()
    /// }
    /// # let _ = names_only;
    /// ```
    #[must_use]
    pub fn view<V: View>(&self) -> Cache<V> {
        self.informer.cache()
    }

    /// Returns the status and totals of the kind; all its caches share them.
    #[must_use]
    pub fn status(&self) -> KindStatus {
        self.informer.status()
    }

    /// Returns whether the cache follows the API server now.
    ///
    /// It has synced, the kind is served, and a watch was open within the last five seconds. Otherwise the cache keeps
    /// the objects of an earlier moment, so that their absence or presence is no evidence: ask this before you
    /// conclude from a cache that objects do not exist. A handler is called in either case.
    ///
    /// ```
    /// use lariat::{Cache, Metadata};
    ///
    /// /// Returns whether there is certainly no tenant left, up to the delay of the watch.
    /// fn is_deserted(tenants: &Cache<Metadata>) -> bool {
    ///     tenants.is_current() && tenants.is_empty()
    /// }
    /// # let _ = is_deserted;
    /// ```
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.informer.is_current()
    }

    /// Waits until the cache has synced, with content if `K` needs it.
    ///
    /// Returns `false` if the API server does not serve the kind and the cache does not wait for it, or if the kind
    /// cannot be watched.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::Cache;
    ///
    /// # async fn example(pods: Cache<Pod>) {
    /// let synced = tokio::time::timeout(Duration::from_secs(30), pods.synced()).await;
    /// assert_eq!(synced, Ok(true));
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing.
    pub async fn synced(&self) -> bool {
        self.informer.synced_as(content_of::<K>()).await
    }

    /// Waits until the cache can be read.
    ///
    /// Unlike [`synced`](Self::synced), this also returns for a cache that has synced and was stopped since: handlers
    /// that finish their work during a stop read its last state. Returns `false` if the API server does not serve the
    /// kind and the cache does not wait for it.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing.
    pub async fn readable(&self) -> bool {
        self.informer.readable(content_of::<K>()).await
    }

    /// Waits like [`readable`](Self::readable), up to a timeout.
    ///
    /// Returns `None` if the cache cannot be read in time. All readers of a kind share the timeout: it begins when the
    /// first reader finds the cache not synced, so later readers wait for the rest of it, and readers after its end do
    /// not wait. It begins again with the next start of the kind, and after the cache has synced. Zero means not to
    /// wait.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing.
    pub async fn readable_within(&self, timeout: Duration) -> Option<bool> {
        self.informer
            .readable_within(content_of::<K>(), timeout)
            .await
    }

    /// Returns the store of raw objects that the cache reads.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        self.informer.store()
    }

    /// Returns an object, or `None` if the cache has no object of the key.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use lariat::cache::DecodeError;
    /// use lariat::{Cache, ObjectKey};
    ///
    /// fn color(maps: &Cache<ConfigMap>) -> Result<Option<String>, DecodeError> {
    ///     let map = maps.get(&ObjectKey::namespaced("shop", "settings"))?;
    ///     Ok(map.and_then(|map| map.data.as_ref()?.get("color").cloned()))
    /// }
    /// # let _ = color;
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the object cannot be decoded as `K`. Other objects, and other views of this one, remain readable.
    pub fn get(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, DecodeError> {
        let object = self.store().get(key);
        object
            .map(|object| self.store().read(&object, self.gvk()))
            .transpose()
    }

    /// Returns an object with its content, fetching the content if it is not cached.
    ///
    /// See [`Informer::load`].
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
        self.informer.load(key).await
    }

    /// Returns the informer that fills the cache.
    #[must_use]
    pub fn informer(&self) -> &Informer {
        &self.informer
    }

    /// Iterates over a snapshot of all objects, in key order.
    ///
    /// Each object is decoded when the iterator reaches it. An object that cannot be decoded as `K` yields an error,
    /// and the iteration continues.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::Cache;
    ///
    /// fn print(pods: &Cache<Pod>) {
    ///     for pod in pods.list() {
    ///         match pod {
    ///             Ok(pod) => println!("{:?}", pod.metadata.name),
    ///             Err(error) => println!("{error}"),
    ///         }
    ///     }
    /// }
    /// # let _ = print;
    /// ```
    pub fn list(&self) -> impl Iterator<Item = Result<Arc<K>, DecodeError>> + use<K> {
        let objects: Vec<_> = self.snapshot().iter().cloned().collect();
        self.read(objects)
    }

    /// Iterates over a snapshot of the objects that match a query, in key order.
    ///
    /// Objects are decoded and errors yielded as by [`list`](Self::list).
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::{Cache, Query};
    ///
    /// fn names(pods: &Cache<Pod>) -> Vec<String> {
    ///     let shop = pods.select(&Query::in_namespace("shop"));
    ///     shop.flatten().filter_map(|pod| pod.metadata.name.clone()).collect()
    /// }
    /// # let _ = names;
    /// ```
    pub fn select(
        &self,
        query: &Query,
    ) -> impl Iterator<Item = Result<Arc<K>, DecodeError>> + use<K> {
        self.read(self.store().select(query))
    }

    /// Returns how many objects match a query, without decoding any.
    ///
    /// ```
    /// use lariat::{Cache, Metadata, Query};
    ///
    /// fn running(pods: &Cache<Metadata>, app: &str) -> Result<usize, lariat::core::SelectorError> {
    ///     Ok(pods.count(&Query::all().labels(format!("app={app}").parse()?)))
    /// }
    /// # let _ = running;
    /// ```
    #[must_use]
    pub fn count(&self, query: &Query) -> usize {
        self.store().count(query)
    }

    /// Returns a snapshot of the raw objects.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.store().snapshot()
    }

    /// Adds an index: `function` returns the values under which an object is found.
    ///
    /// An index can be added at any time; objects that are already cached are indexed too. The function is called once
    /// for each state of an object, by the task that changes the cache and under its lock: it must be quick, and must
    /// not read this cache. If it panics, the error is logged and the object is not indexed.
    ///
    /// The index leaves out objects that cannot be decoded, and objects whose content a
    /// [`ContentFilter`](crate::ContentFilter) does not cache. If `K` is more than [`Metadata`](crate::Metadata), the
    /// index [keeps the content](Informer::hold_content) of the kind cached from now on.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat::cache::{DecodeError, IndexError};
    /// use lariat::Cache;
    ///
    /// fn pods_on(pods: &Cache<Pod>, node: &str) -> Result<usize, IndexError> {
    ///     pods.by_index("node", node).map(Iterator::count)
    /// }
    ///
    /// fn index(pods: &Cache<Pod>) -> Result<(), IndexError> {
    ///     pods.add_index("node", |pod| {
    ///         let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    ///         node.into_iter().collect()
    ///     })
    /// }
    /// # let _ = (pods_on, index);
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the kind already has an index of that name.
    pub fn add_index(
        &self,
        name: &str,
        function: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Result<(), IndexError> {
        let gvk = self.gvk().clone();
        // The closure owns the decoder only: the store owns the closure, so a reference to the store would be a cycle.
        let decoding = self.store().decoding().clone();
        let read = move |object: &Arc<CachedObject>| decoding.of(|| K::view(object, &gvk));
        let raw = move |object: &Arc<CachedObject>| match read(object) {
            Ok(object) => function(&object),
            Err(error) => {
                if !error.is_no_content() {
                    tracing::warn!(%error, "an object cannot be decoded and is not indexed");
                }
                Vec::new()
            }
        };
        self.store().add_index(self.gvk(), name, Arc::new(raw))?;
        if K::NEEDS_CONTENT {
            self.informer.index_content();
        }
        Ok(())
    }

    /// Iterates over the objects that an index has under a value, in key order.
    ///
    /// # Errors
    ///
    /// Fails if the kind has no index of that name.
    pub fn by_index(
        &self,
        name: &str,
        value: &str,
    ) -> Result<impl Iterator<Item = Result<Arc<K>, DecodeError>> + use<K>, IndexError> {
        Ok(self.read(self.store().by_index(self.gvk(), name, value)?))
    }

    /// Returns how many objects an index has under a value.
    ///
    /// # Errors
    ///
    /// Fails if the kind has no index of that name.
    pub fn count_by_index(&self, name: &str, value: &str) -> Result<usize, IndexError> {
        self.store().count_by_index(self.gvk(), name, value)
    }

    fn read(
        &self,
        objects: Vec<Arc<CachedObject>>,
    ) -> impl Iterator<Item = Result<Arc<K>, DecodeError>> + use<K> {
        let (store, gvk) = (Arc::clone(self.store()), self.gvk().clone());
        objects
            .into_iter()
            .map(move |object| store.read(&object, &gvk))
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.store().len()
    }

    /// Returns whether the cache is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.store().is_empty()
    }
}

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self {
            informer: self.informer.clone(),
            view: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Cache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("gvk", self.informer.gvk())
            .field("objects", &self.informer.store().len())
            .finish_non_exhaustive()
    }
}
