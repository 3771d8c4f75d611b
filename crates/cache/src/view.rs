//! Views: the types that the objects of a store can be read as.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use lariat_core::Gvk;
use serde::de::DeserializeOwned;

use crate::store::{CachedObject, DecodeError, Store};

/// A type that cached objects can be read as.
///
/// The trait is implemented for every type that can be deserialized: typed objects, kube's `DynamicObject`, or a struct
/// of the few fields that a handler needs. [`Metadata`] is the view that decodes nothing.
///
/// ```
/// use lariat::cache::Informer;
/// use lariat::Cache;
///
/// #[derive(serde::Deserialize)]
/// struct Replicas { spec: Spec }
/// #[derive(serde::Deserialize)]
/// struct Spec { replicas: Option<i32> }
///
/// fn replicas(deployments: &Informer) -> Cache<Replicas> {
///     deployments.cache()
/// }
/// # let _ = replicas;
/// ```
#[diagnostic::on_unimplemented(
    message = "cached objects cannot be read as `{Self}`",
    note = "derive `serde::Deserialize` for `{Self}`, or use `DynamicObject` or `Metadata`"
)]
pub trait View: Send + Sync + Sized + 'static {
    /// Whether reading needs the content of an object, rather than only its metadata.
    const NEEDS_CONTENT: bool;

    /// Reads an object of a kind.
    ///
    /// # Errors
    ///
    /// Fails if the object cannot be read as this type.
    fn view(object: &Arc<CachedObject>, gvk: &Gvk) -> Result<Arc<Self>, DecodeError>;
}

impl<K: DeserializeOwned + Send + Sync + 'static> View for K {
    const NEEDS_CONTENT: bool = true;

    fn view(object: &Arc<CachedObject>, gvk: &Gvk) -> Result<Arc<Self>, DecodeError> {
        object.decode(gvk)
    }
}

impl Store {
    /// Reads an object of this store as a type, and counts a decode or a cache hit.
    ///
    /// # Errors
    ///
    /// Fails if the object cannot be read as this type.
    pub fn read<K: View>(
        &self,
        object: &Arc<CachedObject>,
        gvk: &Gvk,
    ) -> Result<Arc<K>, DecodeError> {
        self.decoding().of(|| K::view(object, gvk))
    }
}

/// The metadata of an object, read without decoding anything.
///
/// Dereferences to the [`CachedObject`], with its key, labels, owners and finalizers.
///
/// ```
/// use lariat::{Cache, Metadata, ObjectKey};
///
/// fn is_being_deleted(pods: &Cache<Metadata>, key: &ObjectKey) -> bool {
///     let pod = pods.get(key).ok().flatten();
///     pod.is_some_and(|pod| pod.is_deleting())
/// }
/// # let _ = is_being_deleted;
/// ```
#[derive(Clone)]
pub struct Metadata(Arc<CachedObject>);

impl View for Metadata {
    const NEEDS_CONTENT: bool = false;

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
