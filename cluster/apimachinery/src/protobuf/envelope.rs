//! The envelope of an object in a body.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::error::ProtobufError;
use super::message::Reader;
use super::wire::{Message, PREFIX};
use crate::schema;

/// The envelope of an object: the `runtime.Unknown` with its kind.
///
/// ```
/// use lariat_apimachinery::object::Object;
/// use lariat_apimachinery::protobuf::{Envelope, ProtobufError, encode};
/// use serde_json::json;
///
/// let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"color": "red"}});
/// let object: Object = object.as_object().cloned().unwrap_or_default();
/// let body = encode(&object).expect("the kind is built in");
/// let envelope = Envelope::open(&body)?;
/// assert_eq!(envelope.kind, "ConfigMap");
/// assert_eq!(envelope.object()?["data"], object["data"]);
/// # Ok::<(), ProtobufError>(())
/// ```
#[derive(Debug)]
pub struct Envelope<'a> {
    /// Group and version of the object; empty if the body does not say them.
    pub api_version: Cow<'a, str>,
    /// The kind of the object; empty if the body does not say it.
    pub kind: Cow<'a, str>,
    raw: &'a [u8],
    /// The number of envelopes and messages around it.
    depth: usize,
}

impl<'a> Envelope<'a> {
    /// Opens a body; parts of its type that it lacks are empty.
    ///
    /// # Errors
    ///
    /// Those of the envelope; the object is not looked at.
    pub fn open(body: &'a [u8]) -> Result<Self, ProtobufError> {
        Self::open_at(body, 0)
    }

    pub(super) fn open_at(body: &'a [u8], depth: usize) -> Result<Self, ProtobufError> {
        let unknown = body.strip_prefix(PREFIX).ok_or(ProtobufError::Prefix)?;
        let mut envelope = Self {
            api_version: Cow::Borrowed(""),
            kind: Cow::Borrowed(""),
            raw: &[],
            depth,
        };
        for field in Message::of(unknown) {
            match field? {
                (1, payload) => envelope.read_type(payload.bytes()?)?,
                // The last one counts if a field is repeated, as everywhere in protobuf.
                (2, payload) => envelope.raw = payload.bytes()?,
                // The encoding and the content type, which no client sets.
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type(&mut self, message: &'a [u8]) -> Result<(), ProtobufError> {
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
    pub fn object(&self) -> Result<Map<String, Value>, ProtobufError> {
        let (api_version, kind) = (&*self.api_version, &*self.kind);
        let schema = schema::builtin(api_version, kind)
            .or_else(|| schema::of_every_group(kind))
            .ok_or_else(|| ProtobufError::Kind {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
            })?;
        let mut object = Map::new();
        // The type in the envelope is the only one: the message of an object does not have it.
        Reader::new(schema.root(), self.depth)?.read(self.raw, &mut object)?;
        object.insert("kind".to_owned(), kind.into());
        object.insert("apiVersion".to_owned(), api_version.into());
        Ok(object)
    }
}
