//! The cache of one kind, read as some type.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use lariat_core::{Gvk, ObjectKey};

use crate::informer::{Informer, LoadError};
use crate::publish::KindStatus;
use crate::store::{CachedObject, DecodeError, IndexError, Query, Snapshot, Store};
use crate::view::View;

/// The cache of one kind, read as `K`; a clone is the same cache.
///
/// What it shows is what the watch has reported: never older than what a handler of the kind was called
/// for, nor than what was written through the factory's clients, and possibly older than what the API
/// server has by now. Objects are shared, not copied; lists are in key order and of one moment.
pub struct Cache<K> {
    informer: Informer,
    view: PhantomData<fn() -> K>,
}

impl Informer {
    /// Returns the cache, read as `K`.
    ///
    /// The content is watched from now on if `K` needs it.
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

    /// Returns the same cache, read as another type; if only metadata is watched and `V` needs more, the
    /// content is watched from now on.
    #[must_use]
    pub fn view<V: View>(&self) -> Cache<V> {
        self.informer.cache()
    }

    /// Returns state and totals of the kind, which all its caches share.
    #[must_use]
    pub fn status(&self) -> KindStatus {
        self.informer.status()
    }

    /// Waits until the cache is filled; `false` if the kind is not served and not waited for.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn synced(&self) -> bool {
        self.informer.synced().await
    }

    /// Waits until the cache can be read; `false` if the kind is not served and not waited for.
    ///
    /// Other than [`synced`](Self::synced) this does not wait for a cache that was filled and is stopped, which is how
    /// handlers find theirs while they finish what is due: it is as it was then.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn readable(&self) -> bool {
        self.informer.readable().await
    }

    /// Waits like [`readable`](Self::readable), for a limited time.
    ///
    /// Returns `None` if the cache cannot be read in time.
    ///
    /// The patience counts from when a reader of the kind first found the cache not filled, so that later ones wait
    /// for the rest of it, and those that come after its end do not wait. It counts again from the next start of the
    /// kind, or once the cache was filled. Zero means not to wait.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn readable_within(&self, patience: Duration) -> Option<bool> {
        self.informer.readable_within(patience).await
    }

    /// Returns the raw objects.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        self.informer.store()
    }

    /// Returns an object, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// The object does not fit the type; others are as readable as before.
    pub fn get(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, DecodeError> {
        let object = self.store().get(key);
        object
            .map(|object| self.store().read(&object, self.gvk()))
            .transpose()
    }

    /// Returns an object with its content, which is fetched if only metadata is cached; see [`Informer::load`].
    ///
    /// # Errors
    ///
    /// The API server does not answer, or not with an object of the kind.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing but the request under way.
    pub async fn load(&self, key: &ObjectKey) -> Result<Option<Arc<CachedObject>>, LoadError> {
        self.informer.load(key).await
    }

    /// Iterates over all objects, in key order, as they are when this is called.
    ///
    /// Each is decoded when it is its turn; one that does not fit the type is an error among the others.
    pub fn list(&self) -> impl Iterator<Item = Result<Arc<K>, DecodeError>> + use<K> {
        let objects: Vec<_> = self.snapshot().iter().cloned().collect();
        self.read(objects)
    }

    /// Iterates over the objects that are wanted, in key order, as they are when this is called.
    pub fn select(
        &self,
        query: &Query,
    ) -> impl Iterator<Item = Result<Arc<K>, DecodeError>> + use<K> {
        self.read(self.store().select(query))
    }

    /// Returns how many objects are wanted, without decoding any.
    #[must_use]
    pub fn count(&self, query: &Query) -> usize {
        self.store().count(query)
    }

    /// Returns the raw objects as they are at this moment.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.store().snapshot()
    }

    /// Adds an index: for each object, `function` returns the values under which it is to be found.
    ///
    /// It holds what is cached by then, and follows from then on; it can be added at any time. The function
    /// is called once for each state of an object, by whoever changes the cache: it must be prompt, and
    /// must not read this cache. An object that does not decode is found nowhere, nor is one of which only
    /// metadata is cached, as in kinds that are kept [`OnDemand`](crate::Storage::OnDemand) and of what a
    /// [`ContentFilter`](crate::ContentFilter) leaves out.
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
    /// The kind has an index of that name already.
    pub fn add_index(
        &self,
        name: &str,
        function: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Result<(), IndexError> {
        let gvk = self.gvk().clone();
        // Not the store, which keeps the function.
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

    /// Iterates over the objects that an index finds under a value, in key order.
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

    /// Returns how many objects an index finds under a value.
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

    /// Returns how many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.store().len()
    }

    /// Returns whether there is no object.
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
