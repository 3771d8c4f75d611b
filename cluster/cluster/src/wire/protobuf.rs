//! Objects of built-in kinds in protobuf.

use bytes::Bytes;
use lariat_apimachinery::object::Object;
use lariat_apimachinery::protobuf::{self, Envelope};
use serde_json::Value;

use crate::status::ApiError;
use crate::wire::document::{Document, Duplicates};

/// Whether this build answers in protobuf.
pub(crate) const IS_BUILT: bool = true;

/// The media types in which objects of built-in kinds are accepted.
pub(crate) const ACCEPTED: &str =
    "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// Decodes an object as the type that the body names, or as the given one.
pub(crate) fn read(
    body: &[u8],
    wanted_kind: &str,
    wanted_version: &str,
) -> Result<Document, ApiError> {
    let mut envelope = Envelope::open(body).map_err(|error| {
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {wanted_kind}): {error}"
        ))
    })?;
    if envelope.kind.is_empty() {
        envelope.kind = wanted_kind.into();
    }
    if envelope.api_version.is_empty() {
        envelope.api_version = wanted_version.into();
    }
    let object = envelope.object().map_err(|error| {
        let version = envelope.api_version.rsplit('/').next().unwrap_or_default();
        ApiError::bad_request(format!(
            "{} in version {version:?} cannot be handled as a {wanted_kind}: {error}",
            envelope.kind
        ))
    })?;
    Ok(Document {
        value: Value::Object(object),
        duplicates: Duplicates::none(),
        has_float: false,
    })
}

/// Returns the size of an object in protobuf; `None` for custom kinds.
pub(crate) fn size(object: &Object) -> Option<usize> {
    protobuf::encode(object).map(|encoded| encoded.len())
}

/// Encodes an answer that is one JSON document; `None` for custom kinds.
pub(crate) fn write(json: &[u8]) -> Option<Bytes> {
    let object: Object = serde_json::from_slice(json).ok()?;
    protobuf::encode(&object).map(Bytes::from)
}

/// Writes a list; `json` is the same without its items.
pub(crate) fn write_list(json: &[u8], items: impl Iterator<Item = Object>) -> Option<Bytes> {
    let list: Object = serde_json::from_slice(json).ok()?;
    protobuf::encode_list(&list, items).map(Bytes::from)
}

/// Writes an event of a watch, given as its line.
///
/// An incomplete line, of a watch that was cut, becomes a length without a message.
pub(crate) fn write_event(line: &[u8]) -> Bytes {
    let event: Option<Object> = serde_json::from_slice(line).ok();
    let frame = event.and_then(|event| {
        let object = event.get("object")?.as_object()?;
        protobuf::encode_event(event.get("type")?.as_str()?, object)
    });
    frame.map_or(Bytes::from_static(&[0, 0, 1, 0]), Bytes::from)
}
