//! Reads objects of built-in kinds from bodies in protobuf.

use lariat_apimachinery::protobuf::Envelope;
use serde_json::Value;

use crate::status::ApiError;
use crate::wire::document::Document;

/// The media types in which objects of built-in kinds are accepted.
pub(super) const ACCEPTED: &str =
    "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// Reads an object as the type that the body says it is of, by default the wanted one.
pub(super) fn read(
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
        duplicates: Vec::new(),
    })
}
