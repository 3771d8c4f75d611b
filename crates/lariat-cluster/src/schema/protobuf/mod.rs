//! Bodies in protobuf, which typed clients send for built-in kinds.
//!
//! Messages are read by the table of types, as JSON is; what the fields are numbered is in it too. Source:
//! `k8s.io/apimachinery/pkg/runtime/serializer/protobuf`.

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod encode;
mod message;
mod scalar;
#[cfg(test)]
mod tests;
mod wire;

use std::borrow::Cow;

use serde_json::{Map, Value};

use self::message::Reader;
pub(super) use self::scalar::is_zero;
use self::wire::Message;
use super::builtin;

/// What every body begins with.
const PREFIX: &[u8] = b"k8s\0";

/// How deep messages may be nested; schemas of definitions are what is deep.
const DEPTH: usize = 100;

/// Why a body cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    Prefix,
    #[error("unexpected EOF")]
    Cut,
    #[error("proto: integer overflow")]
    Overflow,
    #[error("proto: illegal tag {number} (wire type {wire_type})")]
    Tag { number: u64, wire_type: u8 },
    #[error("proto: illegal wireType {0}")]
    WireType(u8),
    #[error("proto: wrong wireType = {0}")]
    OtherWireType(u8),
    #[error("proto: wrong wireType = {wire_type} for field {field}")]
    Field { wire_type: u8, field: String },
    #[error("proto: messages are nested deeper than {DEPTH}")]
    TooDeep,
    #[error("proto: a time is out of range")]
    Time,
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    Kind { api_version: String, kind: String },
    #[error("a raw value is not JSON: {0}")]
    Raw(#[from] serde_json::Error),
}

/// What is around an object: the `runtime.Unknown` that says of which kind it is.
#[derive(Debug)]
pub(crate) struct Envelope<'a> {
    pub(crate) api_version: Cow<'a, str>,
    pub(crate) kind: Cow<'a, str>,
    raw: &'a [u8],
    /// How many envelopes and messages it is in.
    depth: usize,
}

impl<'a> Envelope<'a> {
    /// Opens a body; what it does not say about its type is empty.
    ///
    /// # Errors
    ///
    /// Those of the envelope; the object is not looked at.
    pub(crate) fn open(body: &'a [u8]) -> Result<Self, Unreadable> {
        Self::open_at(body, 0)
    }

    fn open_at(body: &'a [u8], depth: usize) -> Result<Self, Unreadable> {
        let unknown = body.strip_prefix(PREFIX).ok_or(Unreadable::Prefix)?;
        let mut envelope = Self {
            api_version: Cow::Borrowed(""),
            kind: Cow::Borrowed(""),
            raw: &[],
            depth,
        };
        for field in Message::of(unknown) {
            match field? {
                (1, payload) => envelope.read_type(payload.bytes()?)?,
                (2, payload) => envelope.raw = payload.bytes()?,
                // The encoding and the content type, which no client sets.
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type(&mut self, message: &'a [u8]) -> Result<(), Unreadable> {
        for field in Message::of(message) {
            match field? {
                (1, payload) => self.api_version = String::from_utf8_lossy(payload.bytes()?),
                (2, payload) => self.kind = String::from_utf8_lossy(payload.bytes()?),
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads the object, with its kind and version.
    ///
    /// # Errors
    ///
    /// The kind is not a built-in one, or the message is none of its type.
    pub(crate) fn object(&self) -> Result<Map<String, Value>, Unreadable> {
        let (api_version, kind) = (&*self.api_version, &*self.kind);
        let schema = builtin::builtin(api_version, kind)
            .or_else(|| builtin::of_every_group(kind))
            .ok_or_else(|| Unreadable::Kind {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
            })?;
        let mut object = Map::new();
        Reader::new(schema.root(), self.depth)?.read(self.raw, &mut object)?;
        object.insert("kind".to_owned(), kind.into());
        object.insert("apiVersion".to_owned(), api_version.into());
        Ok(object)
    }
}
