//! One cached state of an object, and the values decoded from it.

use std::any::{Any, TypeId};
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use lariat_core::{Gvk, RawObject};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use super::error::DecodeError;

/// A state of an object as the cache holds it: the raw object, and weak links to what was decoded.
///
/// A value is decoded on demand, straight to the wanted type, and shared by everybody who asks while
/// somebody still has it: all handlers of one run see one decode.
pub struct CachedObject {
    raw: RawObject,
    /// At most one value of each type; empty for most objects, which nobody looks into.
    decoded: Mutex<Vec<Decoded>>,
}

/// A value decoded to some type, while anybody has it.
type Decoded = (TypeId, Weak<dyn Any + Send + Sync>);

impl CachedObject {
    /// Wraps a raw object.
    #[must_use]
    pub fn new(raw: RawObject) -> Self {
        Self {
            raw,
            decoded: Mutex::default(),
        }
    }

    /// Wraps a raw object and the value it was made from.
    #[must_use]
    pub fn with_value<K: Send + Sync + 'static>(raw: RawObject, value: &Arc<K>) -> Self {
        let object = Self::new(raw);
        let shared: Arc<dyn Any + Send + Sync> = Arc::<K>::clone(value);
        object
            .decoded
            .lock()
            .push((TypeId::of::<K>(), Arc::downgrade(&shared)));
        object
    }

    /// Returns the object as a type, decoded unless somebody has it already.
    ///
    /// # Errors
    ///
    /// The object does not fit the type; the error names the kind, the key and the field.
    pub fn decode<K>(&self, gvk: &Gvk) -> Result<Arc<K>, DecodeError>
    where
        K: DeserializeOwned + Send + Sync + 'static,
    {
        // Held while decoding, so that two who ask at once do not both decode.
        let mut decoded = self.decoded.lock();
        let wanted = TypeId::of::<K>();
        let known = decoded
            .iter()
            .find(|(id, _)| *id == wanted)
            .and_then(|(_, weak)| weak.upgrade());
        if let Some(Ok(value)) = known.map(Arc::downcast::<K>) {
            return Ok(value);
        }
        let value = Arc::new(self.decode_anew::<K>(gvk)?);
        let shared: Arc<dyn Any + Send + Sync> = Arc::<K>::clone(&value);
        decoded.retain(|(id, weak)| *id != wanted && weak.strong_count() > 0);
        decoded.push((wanted, Arc::downgrade(&shared)));
        Ok(value)
    }

    fn decode_anew<K: DeserializeOwned>(&self, gvk: &Gvk) -> Result<K, DecodeError> {
        // The path costs time, so it is looked for only once decoding has failed.
        serde_json::from_slice(self.raw.json()).map_err(|_| {
            let mut json = serde_json::Deserializer::from_slice(self.raw.json());
            let located: Result<K, _> = serde_path_to_error::deserialize(&mut json);
            DecodeError::new(gvk, self.raw.key(), located.err())
        })
    }
}

impl Deref for CachedObject {
    type Target = RawObject;

    fn deref(&self) -> &RawObject {
        &self.raw
    }
}

impl fmt::Debug for CachedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.fmt(f)
    }
}
