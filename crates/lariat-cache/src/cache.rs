//! The cache of one kind, read as a type.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};

use crate::informer::{Informer, LoadError};
use crate::publish::KindStatus;
use crate::store::{CachedObject, DecodeError, IndexError, Query, Snapshot, Store};
use crate::view::View;

/// A read handle to the cache of one kind, whose objects it returns as `K`.
///
/// A clone is the same cache. The cache follows the watch: it is never older than what a handler of the kind was called
/// for or what was written through the factory's clients, and it may be older than the API server's state. Objects are
/// shared, not copied; lists are in key order and show one moment.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use lariat_cache::Cache;
/// use lariat_core::ObjectKey;
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
    /// Returns the cache, with objects as `K`.
    ///
    /// If `K` needs content, the content is watched from now on.
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

    /// Returns the kind.
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
    /// use lariat_cache::{Cache, Metadata};
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

    /// Returns the status and totals of the kind, which all its caches share.
    #[must_use]
    pub fn status(&self) -> KindStatus {
        self.informer.status()
    }

    /// Waits until the cache has synced.
    ///
    /// Returns `false` if the kind is not served and the cache does not wait for it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn synced(&self) -> bool {
        self.informer.synced().await
    }

    /// Waits until the cache can be read.
    ///
    /// Unlike [`synced`](Self::synced), this does not wait for a cache that has synced and was stopped: handlers that
    /// finish their work during a stop read it as it was then. Returns `false` if the kind is not served and the cache
    /// does not wait for it.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn readable(&self) -> bool {
        self.informer.readable().await
    }

    /// Waits like [`readable`](Self::readable), for a limited time.
    ///
    /// Returns `None` if the cache cannot be read in time. The time limit counts from when a reader of the kind first
    /// found the cache not synced: later readers wait for the rest of it, and readers after its end do not wait. It
    /// starts again with the next start of the kind, and once the cache has synced. Zero means not to wait.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn readable_within(&self, patience: Duration) -> Option<bool> {
        self.informer.readable_within(patience).await
    }

    /// Returns the store of raw objects.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        self.informer.store()
    }

    /// Returns an object, or `None` if it does not exist.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use lariat_cache::{Cache, DecodeError};
    /// use lariat_core::ObjectKey;
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
    /// The object cannot be decoded as `K`; other objects remain readable.
    pub fn get(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, DecodeError> {
        let object = self.store().get(key);
        object
            .map(|object| self.store().read(&object, self.gvk()))
            .transpose()
    }

    /// Returns an object with its content, which is fetched if only metadata is cached.
    ///
    /// See [`Informer::load`].
    ///
    /// # Errors
    ///
    /// The API server does not answer, or not with an object of the kind.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the request under way and loses nothing else.
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
    /// Each object is decoded when it is reached; one that cannot be decoded as `K` is an error among the others.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat_cache::Cache;
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
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat_cache::{Cache, Query};
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
    /// use lariat_cache::{Cache, Metadata, Query};
    ///
    /// fn running(pods: &Cache<Metadata>, app: &str) -> Result<usize, lariat_core::SelectorError> {
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
    /// for each state of an object, by the task that changes the cache: it must be quick, and must not read this cache.
    /// Objects that cannot be decoded are not indexed, nor are objects of which only metadata is cached, as in kinds
    /// that are kept [`OnDemand`](crate::Storage::OnDemand), and those that a [`ContentFilter`](crate::ContentFilter)
    /// leaves out.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use lariat_cache::{Cache, DecodeError, IndexError};
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
    /// The kind already has an index of that name.
    pub fn add_index(
        &self,
        name: &str,
        function: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Result<(), IndexError> {
        let gvk = self.gvk().clone();
        // The decoder, not the store: the store keeps the function, and would keep itself.
        let decoding = self.store().decoding().clone();
        let read = move |object: &Arc<CachedObject>| decoding.of(|| K::view(object, &gvk));
        let raw = move |object: &Arc<CachedObject>| match read(object) {
            Ok(object) => function(&object),
            Err(error) => {
                if !error.is_no_content() {
                    tracing::warn!(%error, "not indexed");
                }
                Vec::new()
            }
        };
        self.store().add_index(self.gvk(), name, Arc::new(raw))
    }

    /// Iterates over the objects that an index has under a value, in key order.
    ///
    /// # Errors
    ///
    /// The kind has no index of that name.
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
    /// The kind has no index of that name.
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
