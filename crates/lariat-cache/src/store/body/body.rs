//! Content in one of several forms.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::dictionary::Dictionary;

/// The form in which a kind's objects are stored.
///
/// Every view can read every object in any form; the forms differ in memory and in the cost of reading an object for
/// the first time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Storage {
    /// Only metadata is watched and stored; content is fetched on demand.
    ///
    /// Handlers get the whole object as always, for one request each. Synchronous reads of a cache fail with a
    /// [`DecodeError`](crate::DecodeError) that says [`is_no_content`](crate::DecodeError::is_no_content).
    OnDemand,
    /// JSON, compressed with a dictionary trained from the kind's own objects.
    ///
    /// It is small, and the first read costs a microsecond or two more.
    Compressed,
    /// JSON as the server sent it.
    Plain,
    /// JSON, and every value decoded from it until the object changes.
    ///
    /// It is fast to read repeatedly, and several times as large.
    Decoded,
    /// [`Plain`](Self::Plain) or, for larger kinds, [`Compressed`](Self::Compressed).
    ///
    /// A kind is compressed once it has more than a megabyte, if that makes it smaller.
    #[default]
    Auto,
}

/// The JSON of an object, in one of two forms.
pub(crate) enum Body {
    /// Shared with its readers. Boxed, because the box of the JSON is used without a copy.
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

    /// Returns the JSON.
    ///
    /// `None` if it cannot be unpacked, which would be damaged memory.
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

    /// Returns the size in bytes.
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

    /// Returns whether it is packed.
    #[cfg(test)]
    pub(crate) fn is_packed(&self) -> bool {
        matches!(self, Self::Packed { .. })
    }
}

/// The JSON of a cached object, shared with the cache or unpacked from it.
///
/// Dereferences to the bytes. The text stays the same, whatever happens to the object meanwhile.
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
