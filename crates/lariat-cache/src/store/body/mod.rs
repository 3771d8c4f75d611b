//! The content of a cached object, as bytes in one of several forms.

mod codec;
mod dictionary;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

pub(super) use codec::{Codec, Course, SAMPLES};
use dictionary::Dictionary;

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

/// The JSON of an object, or of its metadata alone.
pub(super) struct Body {
    bytes: Bytes,
    /// Whether this is a `PartialObjectMetadata`.
    partial: bool,
}

enum Bytes {
    Plain(Box<[u8]>),
    Packed {
        bytes: Box<[u8]>,
        /// How long the JSON is.
        length: u32,
        dictionary: Arc<Dictionary>,
    },
}

impl Body {
    pub(super) fn plain(json: Box<[u8]>, partial: bool) -> Self {
        Self {
            bytes: Bytes::Plain(json),
            partial,
        }
    }

    pub(super) fn is_partial(&self) -> bool {
        self.partial
    }

    /// Returns the JSON; `None` if it cannot be unpacked, which would be a defect of the memory.
    pub(super) fn json(&self) -> Option<Cow<'_, [u8]>> {
        match &self.bytes {
            Bytes::Plain(json) => Some(Cow::Borrowed(json)),
            Bytes::Packed {
                bytes,
                length,
                dictionary,
            } => dictionary.unpack(bytes, *length as usize).map(Cow::Owned),
        }
    }

    /// Returns the bytes held.
    pub(super) fn len(&self) -> usize {
        match &self.bytes {
            Bytes::Plain(json) => json.len(),
            Bytes::Packed { bytes, .. } => bytes.len(),
        }
    }

    /// Returns the length of the JSON.
    pub(super) fn json_len(&self) -> usize {
        match &self.bytes {
            Bytes::Plain(json) => json.len(),
            Bytes::Packed { length, .. } => *length as usize,
        }
    }

    /// Returns whether it is packed.
    pub(super) fn is_packed(&self) -> bool {
        matches!(self.bytes, Bytes::Packed { .. })
    }
}
