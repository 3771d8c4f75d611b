//! One cached state of an object: its metadata, its content in some form, and decoded values.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use lariat_core::{Gvk, ObjectMetadata, RawObject};
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::body::{Body, Codec, Dictionary, ObjectJson, pack};
use super::decoded::{Decoded, decode_anew, note_decoded};
use super::error::DecodeError;
use crate::transform::metadata_of;

/// A cached object: metadata, content as bytes, links to decoded values.
///
/// Dereferences to [`ObjectMetadata`]. A value is decoded on demand, directly to the requested type, and shared by all
/// readers as long as one of them holds it: all handlers of a run share one decode. A change of the object creates
/// another `CachedObject`; this one stays as it is.
///
/// ```
/// use std::sync::Arc;
/// use lariat::{CachedObject, Gvk, RawObject};
///
/// #[derive(serde::Deserialize)]
/// struct Config { data: std::collections::BTreeMap<String, String> }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let kind = Gvk::new("", "v1", "ConfigMap");
/// let raw = RawObject::parse(br#"{"metadata":{"name":"a"},"data":{"color":"red"}}"#, &kind)?;
/// let object = Arc::new(CachedObject::new(raw));
/// let config = object.decode::<Config>(&kind)?;
/// assert_eq!((object.key().name(), &*config.data["color"]), ("a", "red"));
/// # Ok(()) }
/// ```
pub struct CachedObject {
    metadata: ObjectMetadata,
    /// Whether the content is a `PartialObjectMetadata`, that is metadata only.
    partial: bool,
    /// Whether decoded values are kept when no reader uses them.
    retains: AtomicBool,
    /// The mark of the last list that contained the object; see `Listing`.
    listed_by: AtomicU32,
    content: Mutex<ContentState>,
}

/// The content and the values decoded from it.
///
/// The form of the content may change, but not its meaning.
struct ContentState {
    body: Body,
    decoded: Decoded,
}

impl CachedObject {
    /// Creates a cached object from a raw one, outside a cache.
    #[must_use]
    pub fn new(raw: RawObject) -> Self {
        let (metadata, json) = raw.into_parts();
        Self::from_parts(metadata, Body::plain(json), false)
    }

    /// Creates a cached object from a raw one and the value that it was created from.
    ///
    /// Reads as `K` return the value without a decode, as long as it is in use.
    #[must_use]
    pub fn with_value<K: Send + Sync + 'static>(raw: RawObject, value: &Arc<K>) -> Self {
        let object = Self::new(raw);
        object.content.lock().decoded.remember(value, false);
        object
    }

    fn from_parts(metadata: ObjectMetadata, body: Body, partial: bool) -> Self {
        let decoded = Decoded::default();
        Self {
            metadata,
            partial,
            retains: AtomicBool::new(false),
            listed_by: AtomicU32::new(0),
            content: Mutex::new(ContentState { body, decoded }),
        }
    }

    /// Creates an object as plain JSON, whatever form is chosen for its kind.
    pub(super) fn plain(raw: RawObject, partial: bool, retains: bool) -> Self {
        let (metadata, json) = raw.into_parts();
        let object = Self::from_parts(metadata, Body::plain(json), partial);
        object.retains.store(retains, Ordering::Relaxed);
        object
    }

    /// Creates an object in the form that is chosen for its kind.
    pub(super) fn packed(raw: RawObject, partial: bool, codec: &Codec) -> Self {
        let (metadata, json) = raw.into_parts();
        let object = Self::from_parts(metadata, codec.body(json), partial);
        object.retains.store(codec.retains(), Ordering::Relaxed);
        object
    }

    /// Returns the same state with its metadata only.
    pub(super) fn without_content(&self, codec: &Codec) -> Option<Self> {
        let body = codec.body(metadata_of(&self.json()?)?.into());
        let object = Self::from_parts(self.metadata.clone(), body, true);
        object.retains.store(codec.retains(), Ordering::Relaxed);
        object.mark_listed(self.listed_by());
        Some(object)
    }

    /// Changes the content to the form that is chosen for the kind now.
    pub(super) fn repack(&self, codec: &Codec) {
        let content = self.content.lock();
        if codec.is_current(&content.body) {
            return;
        }
        let json = content.body.json();
        // Packed without the lock, so that readers do not wait. Only the writer changes bodies, so this one is still
        // current.
        drop(content);
        if let Some(json) = json {
            self.content.lock().body = codec.body(json.into_owned().into());
        }
    }

    /// Returns the packed content, without storing it.
    ///
    /// `None` if the content is packed already, or would not become smaller.
    pub(super) fn packed_with(&self, dictionary: &Arc<Dictionary>) -> Option<Body> {
        let json = match &self.content.lock().body {
            Body::Plain(json) => Arc::clone(json),
            Body::Packed { .. } => return None,
        };
        // Without the lock: handlers may be reading the object.
        pack(dictionary, &json)
    }

    /// Replaces the content by the same content in another form.
    pub(super) fn set_body(&self, body: Body) {
        let before = std::mem::replace(&mut self.content.lock().body, body);
        // Freed after the lock is released.
        drop(before);
    }

    /// Returns whether the content is cached, rather than the metadata only.
    ///
    /// It is not while only metadata is watched, in kinds that are stored [`OnDemand`](super::Storage::OnDemand), and
    /// for objects that a [`ContentFilter`](crate::ContentFilter) leaves out.
    #[must_use]
    pub fn has_content(&self) -> bool {
        !self.partial
    }

    /// Returns the JSON of the object, or of its metadata if only that is cached.
    ///
    /// The JSON has no `metadata.managedFields`, unless the kind keeps them. Returns `None` only if memory was damaged.
    #[must_use]
    pub fn json(&self) -> Option<ObjectJson> {
        self.content.lock().body.json()
    }

    /// Returns whether the content equals a JSON text, with members in any order.
    ///
    /// Lists and watches order members differently. For an object without content only the metadata is compared: the
    /// API server sends it with the kind `PartialObjectMetadata`, while an object that this process wrote or reduced
    /// has the kind of the whole object.
    pub(crate) fn has_same_content(&self, json: &[u8]) -> bool {
        let is_partial = self.partial;
        let value = |json: &[u8]| {
            let mut value = serde_json::from_slice::<serde_json::Value>(json).ok()?;
            if is_partial {
                value.get_mut("metadata").map(serde_json::Value::take)
            } else {
                Some(value)
            }
        };
        self.json().is_some_and(|known| {
            known[..] == *json || value(&known).is_some_and(|known| value(json) == Some(known))
        })
    }

    /// Returns the size of this object in memory, in bytes.
    ///
    /// The size includes everything that the object owns on the heap, but not decoded values, which belong to their
    /// readers.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // An `Arc` has two counters in front.
        16 + size_of::<Self>() + self.metadata.heap_bytes() + self.content.lock().body.len()
    }

    /// Returns the length of the content as JSON.
    #[must_use]
    pub fn json_bytes(&self) -> usize {
        self.content.lock().body.json_len()
    }

    /// Returns how many decoded values the object keeps alive.
    pub(super) fn retained(&self) -> usize {
        self.content.lock().decoded.kept()
    }

    /// Returns whether the object has links to decoded values, dead ones included.
    #[cfg(test)]
    pub(super) fn remembers(&self) -> bool {
        !self.content.lock().decoded.is_empty()
    }

    /// Sets whether decoded values are kept alive from now on.
    pub(crate) fn retain(&self, retains: bool) {
        self.retains.store(retains, Ordering::Relaxed);
        if !retains {
            self.content.lock().decoded.release();
        }
    }

    pub(super) fn mark_listed(&self, list: u32) {
        self.listed_by.store(list, Ordering::Relaxed);
    }

    pub(super) fn listed_by(&self) -> u32 {
        self.listed_by.load(Ordering::Relaxed)
    }

    /// Returns the annotations; empty if they cannot be read.
    ///
    /// Each call decodes them from the JSON, because the cache stores them only there.
    ///
    /// ```
    /// use lariat::CachedObject;
    ///
    /// fn is_paused(object: &CachedObject) -> bool {
    ///     object.annotations().contains_key("example.com/paused")
    /// }
    /// # let _ = is_paused;
    /// ```
    #[must_use]
    pub fn annotations(&self) -> BTreeMap<String, String> {
        #[derive(Deserialize)]
        struct Object {
            metadata: Metadata,
        }
        #[derive(Deserialize)]
        struct Metadata {
            annotations: Option<BTreeMap<String, String>>,
        }
        let json = self.json().unwrap_or_default();
        let read = serde_json::from_slice::<Object>(&json).ok();
        read.and_then(|object| object.metadata.annotations)
            .unwrap_or_default()
    }

    /// Returns the object as a type; decodes it unless a decoded value is in use.
    ///
    /// # Errors
    ///
    /// Fails if the object cannot be decoded as the type; the error names the kind, the key and the field. Also fails
    /// if the content is not cached: see [`has_content`](Self::has_content).
    pub fn decode<K>(self: &Arc<Self>, gvk: &Gvk) -> Result<Arc<K>, DecodeError>
    where
        K: DeserializeOwned + Send + Sync + 'static,
    {
        // Locked during the decode, so that two concurrent readers do not both decode.
        let mut content = self.content.lock();
        if let Some(value) = content.decoded.get::<K>() {
            return Ok(value);
        }
        if self.partial {
            return Err(DecodeError::no_content(gvk, self.key()));
        }
        let json = content.body.json().unwrap_or_default();
        let value = decode_anew::<K>(&json, gvk, self.key()).map(Arc::new)?;
        let retains = self.retains.load(Ordering::Relaxed);
        content.decoded.remember(&value, retains);
        drop(content);
        note_decoded(self);
        Ok(value)
    }

    /// Removes links to values that are no longer in use.
    pub(super) fn forget_dead(&self) {
        self.content.lock().decoded.forget_dead();
    }
}

impl Deref for CachedObject {
    type Target = ObjectMetadata;

    fn deref(&self) -> &ObjectMetadata {
        &self.metadata
    }
}

impl fmt::Debug for CachedObject {
    /// Prints the metadata; the content stays out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedObject")
            .field("key", self.key())
            .field("uid", self.uid())
            .field("version", self.version())
            .field("has_content", &self.has_content())
            .finish_non_exhaustive()
    }
}
