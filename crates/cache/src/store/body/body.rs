//! Content in one of several forms.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::dictionary::Dictionary;

/// The form in which a kind's objects are stored.
///
/// Views read objects in any form. The forms differ in memory, and in the cost of the first read of an object.
///
/// ```
/// use lariat::{KindOptions, Storage};
///
/// // Many objects that are rarely read.
/// let options = KindOptions::default().storage(Storage::Compressed);
/// # let _ = options;
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Storage {
    /// Only metadata is watched and stored; content is fetched on demand.
    ///
    /// Handlers still get the whole object, for one request each. Synchronous reads of a cache fail with a
    /// [`DecodeError`](crate::DecodeError) for which [`is_no_content`](crate::DecodeError::is_no_content) is true. As
    /// long as a relation or an index [reads content](crate::Informer::hold_content), the kind is stored
    /// [compressed](Self::Compressed) instead.
    OnDemand,
    /// JSON, compressed with a dictionary that is trained from the kind's own objects.
    ///
    /// It is small; the first read of an object costs about 3 µs more.
    Compressed,
    /// JSON as the server sent it.
    Plain,
    /// JSON, and every value decoded from it until the object changes.
    ///
    /// Repeated reads are fast; the kind takes several times as much memory.
    Decoded,
    /// [`Plain`](Self::Plain) or, for larger kinds, [`Compressed`](Self::Compressed).
    ///
    /// A kind is compressed once it takes more than a megabyte, if compression saves enough.
    #[default]
    Auto,
}

/// The JSON of an object, in one of two forms.
pub(crate) enum Body {
    /// Shared with readers: reading it copies nothing.
    Plain(Arc<Text>),
    Packed {
        bytes: Box<[u8]>,
        /// The length of the JSON.
        length: u32,
        dictionary: Arc<Dictionary>,
    },
}

pub(crate) struct Text(Box<[u8]>);

impl Body {
    pub(crate) fn plain(json: Box<[u8]>) -> Self {
        Self::Plain(Arc::new(Text(json)))
    }

    /// Returns the JSON, unpacked if necessary.
    ///
    /// `None` if it cannot be unpacked, which means damaged memory.
    pub(crate) fn json(&self) -> Option<ObjectJson> {
        let form = match self {
            Self::Plain(json) => Form::Shared(Arc::clone(json)),
            Self::Packed {
                bytes,
                length,
                dictionary,
            } => Form::Owned(dictionary.unpack(bytes, *length as usize)?),
        };
        Some(ObjectJson(form))
    }

    /// Returns the size in memory, in bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            // An `Arc` has two counters in front.
            Self::Plain(json) => 16 + size_of::<Text>() + json.len(),
            Self::Packed { bytes, .. } => bytes.len(),
        }
    }

    /// Returns the length of the JSON.
    pub(crate) fn json_len(&self) -> usize {
        match self {
            Self::Plain(json) => json.len(),
            Self::Packed { length, .. } => *length as usize,
        }
    }

    /// Returns whether the body is packed.
    #[cfg(test)]
    pub(crate) fn is_packed(&self) -> bool {
        matches!(self, Self::Packed { .. })
    }
}

/// The JSON of a cached object, shared with the cache or unpacked from it.
///
/// Dereferences to the bytes. The text stays the same when the object changes in the cache.
///
/// ```
/// use lariat::{CachedObject, Gvk, RawObject};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let raw = RawObject::parse(br#"{"metadata":{"name":"a"}}"#, &Gvk::new("", "v1", "Pod"))?;
/// let json = CachedObject::new(raw).json().unwrap_or_default();
/// assert!(json.starts_with(b"{"));
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct ObjectJson(Form);

#[derive(Clone)]
enum Form {
    Shared(Arc<Text>),
    Owned(Vec<u8>),
}

impl ObjectJson {
    /// Returns the bytes, copied if they are shared with the cache.
    #[must_use]
    pub fn into_owned(self) -> Vec<u8> {
        match self.0 {
            Form::Shared(json) => json.to_vec(),
            Form::Owned(json) => json,
        }
    }
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Default for Form {
    fn default() -> Self {
        Self::Owned(Vec::new())
    }
}

impl Deref for ObjectJson {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Form::Shared(json) => json,
            Form::Owned(json) => json,
        }
    }
}

impl AsRef<[u8]> for ObjectJson {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for ObjectJson {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for ObjectJson {}

impl fmt::Debug for ObjectJson {
    /// Prints the length; the content stays out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectJson")
            .field("bytes", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
