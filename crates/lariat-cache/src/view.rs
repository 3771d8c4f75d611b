//! Views: the ways to look at the raw objects of one store.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use lariat_core::{Gvk, LabelSelector, ObjectKey};
use serde::de::DeserializeOwned;

use crate::store::{CachedObject, DecodeError, Store};

/// A type as which cached objects can be read.
///
/// Every type that can be deserialized is one: typed objects, kube's `DynamicObject`, a struct of the
/// two fields a handler needs. [`Metadata`] is the view that decodes nothing.
#[diagnostic::on_unimplemented(
    message = "cached objects cannot be read as `{Self}`",
    note = "derive `serde::Deserialize` for `{Self}`, or use `DynamicObject` or `Metadata`"
)]
pub trait View: Send + Sync + Sized + 'static {
    /// Reads an object of a kind.
    ///
    /// # Errors
    ///
    /// The object does not fit this view.
    fn view(object: &Arc<CachedObject>, gvk: &Gvk) -> Result<Arc<Self>, DecodeError>;
}

impl<K: DeserializeOwned + Send + Sync + 'static> View for K {
    fn view(object: &Arc<CachedObject>, gvk: &Gvk) -> Result<Arc<Self>, DecodeError> {
        object.decode(gvk)
    }
}

/// The metadata of an object, read without decoding anything.
///
/// It dereferences to the cached object, whose key, labels, owners and so on are at hand.
#[derive(Clone)]
pub struct Metadata(Arc<CachedObject>);

impl View for Metadata {
    fn view(object: &Arc<CachedObject>, _: &Gvk) -> Result<Arc<Self>, DecodeError> {
        Ok(Arc::new(Self(Arc::clone(object))))
    }
}

impl Deref for Metadata {
    type Target = CachedObject;

    fn deref(&self) -> &CachedObject {
        &self.0
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metadata")
            .field("key", self.key())
            .field("version", self.version())
            .finish_non_exhaustive()
    }
}

/// The cache of one kind, read as `K`; a clone is the same cache.
///
/// What it shows is what the watch has told: never older than what a handler of the kind was called
/// for, and possibly older than what the API server has by now. Objects are shared, not copied.
pub struct Cache<K> {
    store: Arc<Store>,
    gvk: Gvk,
    view: PhantomData<fn() -> K>,
}

impl<K: View> Cache<K> {
    pub(crate) fn new(store: Arc<Store>, gvk: Gvk) -> Self {
        Self {
            store,
            gvk,
            view: PhantomData,
        }
    }

    /// Returns the kind.
    #[must_use]
    pub fn gvk(&self) -> &Gvk {
        &self.gvk
    }

    /// Returns the same cache, read as another type.
    #[must_use]
    pub fn view<V: View>(&self) -> Cache<V> {
        Cache::new(Arc::clone(&self.store), self.gvk.clone())
    }

    /// Returns the raw objects.
    #[must_use]
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns an object, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// The object does not fit the type; others are as readable as before.
    pub fn get(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, DecodeError> {
        self.store
            .get(key)
            .map(|object| K::view(&object, &self.gvk))
            .transpose()
    }

    /// Iterates over all objects, in key order, as they are when this is called.
    ///
    /// An object that does not fit the type is an error among the others.
    pub fn list(&self) -> impl Iterator<Item = Result<Arc<K>, DecodeError>> + use<K> {
        self.read(self.store.snapshot())
    }

    /// Iterates over the objects of one namespace, in key order, as they are when this is called.
    pub fn list_in(
        &self,
        namespace: &str,
    ) -> impl Iterator<Item = Result<Arc<K>, DecodeError>> + use<K> {
        self.read(self.store.snapshot_in(namespace))
    }

    /// Iterates over the objects whose labels match; only those are decoded.
    pub fn list_matching(
        &self,
        selector: &LabelSelector,
    ) -> impl Iterator<Item = Result<Arc<K>, DecodeError>> + use<K> {
        let mut objects = self.store.snapshot();
        objects.retain(|object| selector.matches(object.labels()));
        self.read(objects)
    }

    fn read(
        &self,
        objects: Vec<Arc<CachedObject>>,
    ) -> impl Iterator<Item = Result<Arc<K>, DecodeError>> + use<K> {
        let gvk = self.gvk.clone();
        objects
            .into_iter()
            .map(move |object| K::view(&object, &gvk))
    }

    /// Returns how many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Returns whether there is no object.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.store.is_empty()
    }
}

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            gvk: self.gvk.clone(),
            view: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Cache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache")
            .field("gvk", &self.gvk)
            .field("objects", &self.store.len())
            .finish_non_exhaustive()
    }
}
