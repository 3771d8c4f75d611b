//! Content in one of several forms.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::dictionary::Dictionary;

/// In which form a kind's objects are kept.
///
/// Whatever the form, every view reads every object; forms differ in memory and in what a first look at an
/// object costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Storage {
    /// Only metadata is watched and kept; content is fetched when somebody asks for it.
    ///
    /// Handlers are given the whole object as always, for one request each. Reads of a cache that are not
    /// asynchronous fail with [`DecodeError`](super::DecodeError) for want of content.
    OnDemand,
    /// JSON, compressed with a dictionary that is made from the kind's own objects: small, and a first look
    /// costs a microsecond or two more.
    Compressed,
    /// JSON as the server sent it.
    Plain,
    /// JSON, and every value that was decoded from it, until the object changes: fast to read again and
    /// again, and several times as large.
    Decoded,
    /// [`Plain`](Self::Plain) for kinds that hold little, and [`Compressed`](Self::Compressed) once they
    /// hold more than a megabyte, if that helps.
    #[default]
    Auto,
}

/// The JSON of an object, in one of two forms.
pub(crate) enum Body {
    /// Shared with those who read it. Boxed, for it came in a box, and is not copied into another block.
    Plain(Arc<Text>),
    Packed {
        bytes: Box<[u8]>,
        /// How long the JSON is.
        length: u32,
        dictionary: Arc<Dictionary>,
    },
}

pub(crate) struct Text(Box<[u8]>);

impl Body {
    pub(crate) fn plain(json: Box<[u8]>) -> Self {
        Self::Plain(Arc::new(Text(json)))
    }

    /// Returns the JSON; `None` if it cannot be unpacked, which would be a defect of the memory.
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

    /// Returns the bytes held.
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
/// It dereferences to the bytes. The text stays the same, whatever happens to the object meanwhile.
#[derive(Clone, Default)]
pub struct ObjectJson(Form);

#[derive(Clone)]
enum Form {
    Shared(Arc<Text>),
    Owned(Vec<u8>),
}

impl ObjectJson {
    /// Returns the bytes, copied if the cache has them, too.
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
    /// Shows the length; the content stays out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectJson")
            .field("bytes", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
