//! Views: the ways to look at the raw objects of one store.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use lariat_core::Gvk;
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
    /// Whether reading needs the content of an object, rather than its metadata alone.
    const NEEDS_CONTENT: bool;

    /// Reads an object of a kind.
    ///
    /// # Errors
    ///
    /// The object does not fit this view.
    fn view(object: &Arc<CachedObject>, gvk: &Gvk) -> Result<Arc<Self>, DecodeError>;
}

impl<K: DeserializeOwned + Send + Sync + 'static> View for K {
    const NEEDS_CONTENT: bool = true;

    fn view(object: &Arc<CachedObject>, gvk: &Gvk) -> Result<Arc<Self>, DecodeError> {
        object.decode(gvk)
    }
}

impl Store {
    /// Reads one of its objects of a kind, and counts it if that took decoding.
    ///
    /// # Errors
    ///
    /// The object does not fit the view.
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
/// It dereferences to the cached object, whose key, labels, owners and so on are at hand.
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
