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

/// A cached state of an object: metadata, content as bytes, and links to decoded values.
///
/// A value is decoded on demand, directly to the requested type, and shared by all readers as long as one of them has
/// it: all handlers of one run share one decode. Dereferences to [`ObjectMetadata`].
///
/// ```
/// use std::sync::Arc;
/// use lariat_cache::CachedObject;
/// use lariat_core::{Gvk, RawObject};
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
    /// Whether the content is a `PartialObjectMetadata`.
    partial: bool,
    /// Whether decoded values are kept even if they are not in use.
    retains: AtomicBool,
    /// The mark of the last list that contained the object.
    seen_by: AtomicU32,
    content: Mutex<Held>,
}

/// The content and the values decoded from it.
///
/// The content may change its form but not its meaning.
struct Held {
    body: Body,
    decoded: Decoded,
}

impl CachedObject {
    /// Wraps a raw object.
    #[must_use]
    pub fn new(raw: RawObject) -> Self {
        let (metadata, json) = raw.into_parts();
        Self::from_parts(metadata, Body::plain(json), false)
    }

    /// Wraps a raw object and the value from which it was created.
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
            seen_by: AtomicU32::new(0),
            content: Mutex::new(Held { body, decoded }),
        }
    }

    /// Stores an object as plain JSON, whatever form was chosen for its kind.
    pub(super) fn plain(raw: RawObject, partial: bool, retains: bool) -> Self {
        let (metadata, json) = raw.into_parts();
        let object = Self::from_parts(metadata, Body::plain(json), partial);
        object.retains.store(retains, Ordering::Relaxed);
        object
    }

    /// Stores an object in the form that was chosen for its kind.
    pub(super) fn packed(raw: RawObject, partial: bool, codec: &Codec) -> Self {
        let (metadata, json) = raw.into_parts();
        let object = Self::from_parts(metadata, codec.body(json), partial);
        object.retains.store(codec.retains(), Ordering::Relaxed);
        object
    }

    /// Returns the same state without its content.
    pub(super) fn without_content(&self, codec: &Codec) -> Option<Self> {
        let body = codec.body(metadata_of(&self.json()?)?.into());
        let object = Self::from_parts(self.metadata.clone(), body, true);
        object.retains.store(codec.retains(), Ordering::Relaxed);
        object.see(self.seen_by());
        Some(object)
    }

    /// Changes the content to the form that is now chosen for the kind.
    pub(super) fn repack(&self, codec: &Codec) {
        let content = self.content.lock();
        if codec.is_current(&content.body) {
            return;
        }
        let json = content.body.json();
        drop(content);
        if let Some(json) = json {
            self.content.lock().body = codec.body(json.into_owned().into());
        }
    }

    /// Returns the packed content.
    ///
    /// `None` if it is packed already, or would not become smaller.
    pub(super) fn packed_with(&self, dictionary: &Arc<Dictionary>) -> Option<Body> {
        let json = match &self.content.lock().body {
            Body::Plain(json) => Arc::clone(json),
            Body::Packed { .. } => return None,
        };
        // Outside the lock, because handlers may be reading the object.
        pack(dictionary, &json)
    }

    /// Replaces the form of the content.
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
    /// It has no `metadata.managedFields`, unless the kind keeps them. `None` only if memory was damaged.
    #[must_use]
    pub fn json(&self) -> Option<ObjectJson> {
        self.content.lock().body.json()
    }

    /// Returns whether the content equals a JSON, with members in any order.
    ///
    /// Lists and watches order members differently. For an object without content only the metadata is compared: the
    /// API server sends it as `PartialObjectMetadata`, and what this process wrote or reduced to metadata has the kind
    /// of the whole object.
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

    /// Returns the size of this object in bytes.
    ///
    /// It includes everything that the object owns on the heap, but not decoded values, which belong to their users.
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

    /// Returns how many decoded values are kept for it.
    pub(super) fn retained(&self) -> usize {
        self.content.lock().decoded.kept()
    }

    /// Returns whether it has links to decoded values, dead ones included.
    #[cfg(test)]
    pub(super) fn remembers(&self) -> bool {
        !self.content.lock().decoded.is_empty()
    }

    /// Sets whether decoded values are kept from now on.
    pub(crate) fn retain(&self, retains: bool) {
        self.retains.store(retains, Ordering::Relaxed);
        if !retains {
            self.content.lock().decoded.let_go();
        }
    }

    pub(super) fn see(&self, list: u32) {
        self.seen_by.store(list, Ordering::Relaxed);
    }

    pub(super) fn seen_by(&self) -> u32 {
        self.seen_by.load(Ordering::Relaxed)
    }

    /// Returns the annotations; empty if they cannot be read.
    ///
    /// They are decoded from the JSON by each call, because caches keep nothing of them.
    ///
    /// ```
    /// use lariat_cache::CachedObject;
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
    /// The object cannot be decoded as the type; the error contains the kind, the key and the field. Or its content is
    /// not cached: see [`has_content`](Self::has_content).
    pub fn decode<K>(self: &Arc<Self>, gvk: &Gvk) -> Result<Arc<K>, DecodeError>
    where
        K: DeserializeOwned + Send + Sync + 'static,
    {
        // Locked while decoding, so that two concurrent readers do not both decode.
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

    /// Frees the memory of values that are no longer in use.
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
